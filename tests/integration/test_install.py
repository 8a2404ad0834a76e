"""Installing from an index over HTTP: the oldest and the newest pip and uv, in clean environments.

torch is a tiny wheel of that name and version: what is tested is what resolvers choose and fetch, and that an installed
torch stays.
"""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from tests.index_wheels import add, members, packed
from uv import find_uv_bin

from wheelmill import folder
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The oldest that takes PEP 658's metadata in place of a wheel; older ones install too, and fetch the wheel to read it.
OLDEST = "pip==22.3" if sys.version_info < (3, 12) else "pip==23.2"  # Python 3.12 has no older one
INSTALLERS = [OLDEST, "pip", "uv"]
# By environment, the torch that is installed there and the wheel that is right.
RIGHT = {
    "cu130-torch2.11": ("2.11.0+cu130", "1.0+cu130"),
    "cu130-torch2.12": ("2.12.1", "1.0+cu130"),
    "cpu-torch2.11": ("2.11.0+cpu", "1.0+cpu"),
    "cu121-torch2.4": ("2.4.1+cu121", "1.0+cu121.torch2.4"),
}


@dataclass
class Server:
    """A file server on loopback and the paths that were asked of it."""

    address: str
    asked: list[str] = field(default_factory=list)

    def wheels(self) -> set[str]:
        return {path.rpartition("/")[2] for path in self.asked if path.endswith(".whl")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release for each kind of environment, an older one, and a newer one that is for none of them."""
    made = tmp_path_factory.mktemp("dist")
    stable = ["cu130-torch2.11", "cu130-torch2.12"]
    for version in ("0.9", "1.0"):
        add(made, f"{version}+cu130", stable, requires=("torch>=2.10",))
        add(made, f"{version}+cpu", ["cpu-torch2.11"], requires=("torch>=2.10",))
        add(made, f"{version}+cu121.torch2.4", ["cu121-torch2.4"], requires=("torch==2.4.*",))
    add(made, "2.0+cu132", ["cu132-torch2.13"], requires=("torch>=2.13",))
    return made


def torch(folder_: Path, version: str) -> Path:
    """A wheel of torch's name without anything inside."""
    folder_.mkdir(parents=True, exist_ok=True)
    path = folder_ / f"torch-{version}-py3-none-any.whl"
    path.write_bytes(packed(members("torch", version, (), "py3-none-any")))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, dist: Path) -> Iterator[Server]:
    """The index under /site/, and under /pypi/ what stands for the default index: torch alone, a newer one too."""
    root = tmp_path_factory.mktemp("served")
    folder.write(dist, Folder(root / "site"), variants=True)
    files = [torch(root / "pypi/torch", version).name for version in ("2.4.1", "2.11.0", "2.12.1", "2.99.0")]
    links = "".join(f'<a href="{file}">{file}</a>' for file in files)
    (root / "pypi/torch/index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    made = Server("")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            made.asked.append(unquote(self.path.partition("#")[0]))

    handler = functools.partial(Handler, directory=root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        made.address = f"http://127.0.0.1:{httpd.server_port}"
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield made
        httpd.shutdown()


@pytest.fixture
def asked(server: Server) -> Server:
    server.asked.clear()
    return server


def clean(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of this machine's settings reaches an installer."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("PIP_", "UV_", "VIRTUAL_ENV")) and not name.upper().endswith("_PROXY")
    }
    ours = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_NO_CACHE_DIR": "1"}
    return {**kept, **ours, "UV_CACHE_DIR": str(tmp_path / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(command: list[str | Path], env: dict[str, str], cwd: Path | None = None) -> str:
    result = subprocess.run(command, env=env, cwd=cwd, text=True, capture_output=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


class Place:
    """A clean virtual environment with a torch and an installer."""

    def __init__(self, path: Path, installer: str, version: str) -> None:
        self.python = path / "env/bin/python"
        self.installer = installer
        self.env = clean(path)
        run([find_uv_bin(), "venv", "-q", "--python", sys.executable, path / "env"], dict(os.environ))
        wanted = [torch(path / "own", version), *([installer] if installer != "uv" else [])]
        # The installers come from this machine's own index and cache.
        run([find_uv_bin(), "pip", "install", "-q", "--python", self.python, *map(str, wanted)], dict(os.environ))

    def install(self, *arguments: str | Path) -> None:
        if self.installer == "uv":
            run([find_uv_bin(), "pip", "install", "--python", self.python, *arguments], self.env)
        else:
            run([self.python, "-m", "pip", "install", *arguments], self.env)

    def versions(self) -> tuple[str, str]:
        """What is installed of (demo, torch), as they say themselves."""
        said = run([self.python, "-c", "import demo, torch; print(demo.version, torch.version)"], self.env)
        demo, installed = said.split()
        return demo, installed


def hashed(dist: Path, folder_: Path, version: str) -> Path:
    """A requirements file in hash-checking mode."""
    (wheel,) = dist.glob(f"demo-{version}-*.whl")
    path = folder_ / "requirements.txt"
    path.write_text(f"demo=={version} --hash=sha256:{file_sha256(wheel)}\n")
    return path


@pytest.mark.parametrize("environment", RIGHT)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_find_links_gives_the_right_wheel_alone_and_leaves_torch(
    tmp_path: Path, asked: Server, installer: str, environment: str
) -> None:
    version, right = RIGHT[environment]
    place = Place(tmp_path, installer, version)
    page = f"{asked.address}/site/{environment}.html"
    place.install("demo", "--find-links", page, "--index-url", f"{asked.address}/pypi/")
    assert place.versions() == (right, version)
    file = f"demo-{right}-py3-none-manylinux_2_28_x86_64.whl"
    assert asked.wheels() == {file}
    assert f"/site/files/{file}.metadata" in asked.asked


@pytest.mark.parametrize("environment", RIGHT)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_an_extra_index_gives_the_right_wheel_by_its_hash(
    tmp_path: Path, dist: Path, asked: Server, installer: str, environment: str
) -> None:
    version, right = RIGHT[environment]
    place = Place(tmp_path, installer, version)
    index = ["--index-url", f"{asked.address}/pypi/", "--extra-index-url", f"{asked.address}/site/{environment}/"]
    # What uv or pip checks is every requirement with a hash; torch is there and is not asked for.
    place.install("--require-hashes", "--no-deps", "-r", hashed(dist, tmp_path, right), *index)
    assert place.versions() == (right, version)
    assert asked.wheels() == {f"demo-{right}-py3-none-manylinux_2_28_x86_64.whl"}


@pytest.mark.parametrize("installer", INSTALLERS)
def test_other_bytes_than_the_page_says_are_refused(tmp_path: Path, dist: Path, asked: Server, installer: str) -> None:
    place = Place(tmp_path, installer, "2.11.0+cpu")
    requirements = hashed(dist, tmp_path, "1.0+cpu")
    requirements.write_text("demo==1.0+cpu --hash=sha256:" + "0" * 64)
    page = ["--find-links", f"{asked.address}/site/cpu-torch2.11.html", "--index-url", f"{asked.address}/pypi/"]
    with pytest.raises(AssertionError, match=r"(?i)hash"):
        place.install("--require-hashes", "--no-deps", "-r", requirements, *page)


@pytest.mark.parametrize("environment", RIGHT)
def test_an_explicit_index_of_uv_locks_and_installs_the_right_wheel(
    tmp_path: Path, asked: Server, environment: str
) -> None:
    version, right = RIGHT[environment]
    project = tmp_path / "project"
    project.mkdir()
    public = version.partition("+")[0]
    (project / "pyproject.toml").write_text(
        f"""
[project]
name = "user"
version = "1"
requires-python = "=={sys.version_info[0]}.{sys.version_info[1]}.*"
dependencies = ["demo", "torch=={public}"]

[tool.uv]
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]

[tool.uv.sources]
demo = {{ index = "ours" }}

[[tool.uv.index]]
name = "ours"
url = "{asked.address}/site/{environment}/"
explicit = true

[[tool.uv.index]]
url = "{asked.address}/pypi/"
default = true
"""
    )
    env = clean(tmp_path)
    del env["UV_NO_CONFIG"]  # the project's file is a configuration too
    run([find_uv_bin(), "sync", "--python", sys.executable], env, project)
    said = run([project / ".venv/bin/python", "-c", "import demo, torch; print(demo.version, torch.version)"], env)
    assert said.split() == [right, public]
    file = f"demo-{right}-py3-none-manylinux_2_28_x86_64.whl"
    assert {name for name in asked.wheels() if name.startswith("demo")} == {file}
    assert f"/site/files/{file}.metadata" in asked.asked
    assert "sha256:" in (project / "uv.lock").read_text()


def test_the_page_of_all_wheels_does_what_its_warning_says(tmp_path: Path, asked: Server) -> None:
    """Pip takes the newest that resolves there, whatever torch is installed."""
    place = Place(tmp_path, "pip", "2.11.0+cu130")
    place.install("demo", "--find-links", f"{asked.address}/site/all.html", "--index-url", f"{asked.address}/pypi/")
    assert place.versions() == ("2.0+cu132", "2.99.0")
