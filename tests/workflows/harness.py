"""Runs workflows as GitHub would, by `act`: each job in a container, third-party actions replaced by stand-ins."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from uv import find_uv_bin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
ACTIONS = Path(__file__).parent / "actions"
OURS = "wheelmill/wheelmill"
# Labels of runners, and what runs in their place.
RUNNERS = ("ubuntu-24.04", "self-hosted")
IDENTITY = ("-c", "user.name=A Stranger", "-c", "user.email=stranger@example.org")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job that ran: its id in the workflow, its matrix, what became of it and of its steps, and its summary."""

    id: str
    matrix: Mapping[str, Any]
    result: str
    steps: Mapping[str, str]
    summary: str = field(repr=False)
    log: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a workflow. `succeeded` is act's own verdict; a job that was skipped is not among `jobs`."""

    succeeded: bool
    jobs: tuple[Job, ...]
    output: str = field(repr=False)

    def of(self, name: str) -> tuple[Job, ...]:
        return tuple(job for job in self.jobs if job.id == name)

    def faults(self) -> str:
        """What the jobs that failed printed last, and act itself."""
        logs = [f"{job.id}: {job.log[-2000:]}" for job in self.jobs if job.result != "success"]
        return "\n".join([*logs, *(line for line in self.output.splitlines()[-20:] if not line.startswith("{"))])

    def results(self) -> dict[str, list[str]]:
        """What became of the jobs of each id."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            found.setdefault(job.id, []).append(job.result)
        return found


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where workflows run: the image of the jobs, and a folder that containers see at the same path."""

    image: str
    folder: Path
    shared: Path

    @property
    def engine(self) -> Path:
        return self.folder / "engine"


def uv_cache() -> Path:
    said = subprocess.run([find_uv_bin(), "cache", "dir"], text=True, capture_output=True, check=True)
    return Path(said.stdout.strip())


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *IDENTITY, *arguments], text=True, capture_output=True, check=True)
    return done.stdout.strip()


def export(target: Path) -> None:
    """The repository's files as a tag would hold them, without what was built among them."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def uses(document: Any) -> Iterator[str]:
    """Every `uses` of a workflow or an action."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "uses" and isinstance(value, str):
                yield value
            else:
                yield from uses(value)
    elif isinstance(document, list):
        for value in document:
            yield from uses(value)


def stand_ins(engine: Path) -> dict[str, Path]:
    """`OWNER/NAME@REF` of each action that the repository's workflows use → the folder that stands for it."""
    files = [*(engine / ".github" / "workflows").glob("*.yml"), *(engine / ".github" / "actions").glob("*/action.yml")]
    found = {f"{OURS}@v1": engine}
    for use in (use for file in files for use in uses(yaml.safe_load(file.read_text()))):
        name, _, ref = use.partition("@")
        owner, *rest = name.split("/")
        if ref and f"{owner}/{rest[0]}" != OURS:
            found[f"{owner}/{rest[0]}@{ref}"] = ACTIONS / rest[0]
    return found


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A stranger's repository, with the artifacts of its run and the caches between its runs."""

    site: Site
    folder: Path
    artifacts: Path = field(init=False)
    caches: Path = field(init=False)

    def __post_init__(self) -> None:
        for name in ("artifacts", "caches"):
            object.__setattr__(self, name, self.folder.with_name(f"{self.folder.name}.{name}"))
            getattr(self, name).mkdir()

    def commit(self, message: str) -> str:
        """Commit all there is, and return the commit's name."""
        if not (self.folder / ".git").exists():
            git(self.folder, "init", "--quiet", "--initial-branch", "main")
            git(self.folder, "remote", "add", "origin", "https://github.com/stranger/shift-clip.git")
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--allow-empty", "--message", message)
        return git(self.folder, "rev-parse", "HEAD")

    def act(
        self, event: str = "push", payload: Mapping[str, Any] | None = None, *, workflow: str = "wheels.yml"
    ) -> Run:
        """Run the workflow for that event, whose payload GitHub would give it."""
        origin = self.folder.with_name(f"{self.folder.name}.git")
        shutil.rmtree(origin, ignore_errors=True)
        git(self.folder, "clone", "--quiet", "--bare", ".", str(origin))
        disk = self.folder.with_name(f"{self.folder.name}.disk")
        shutil.rmtree(disk, ignore_errors=True)
        disk.mkdir()
        told = self.folder.with_name(f"{self.folder.name}.event.json")
        told.write_text(json.dumps(payload or {}))
        args = [event, "--workflows", f".github/workflows/{workflow}", "--eventpath", str(told), *self._options()]
        env = {
            "WORKFLOW_ARTIFACTS": self.artifacts,
            "WORKFLOW_CACHES": self.caches,
            "WORKFLOW_DISK": disk,
            "WORKFLOW_REPOSITORY": origin,
            "UV_CACHE_DIR": uv_cache(),
            # As on a site that reaches a Debian mirror and no registry: the engine's documented variables.
            "WHEELMILL_BASE": "debian",
            "WHEELMILL_NETWORK": "host",
            **{name: value for name, value in os.environ.items() if name in {"PIP_INDEX_URL", "UV_DEFAULT_INDEX"}},
        }
        args += [f"--env={name}={value}" for name, value in env.items()]
        program = Path(sys.executable).with_name("act")
        done = subprocess.run([program, *args], cwd=self.folder, text=True, capture_output=True, check=False)
        shutil.rmtree(disk, ignore_errors=True)
        return Run(succeeded=done.returncode == 0, jobs=tuple(_jobs(done.stdout)), output=done.stdout + done.stderr)

    def _options(self) -> list[str]:
        mapped = {**stand_ins(self.site.engine)}
        return [
            *("--json", "--rm", "--pull=false", "--no-cache-server", "--no-skip-checkout", "--strict"),
            *("--network", "host", "--action-cache-path", str(self.site.folder / "act")),
            *(f"--local-repository={name}={folder}" for name, folder in mapped.items()),
            *(f"--platform={label}={self.site.image}" for label in RUNNERS),
            f"--container-options=--volume {self.site.shared}:{self.site.shared}",
        ]


def _jobs(output: str) -> Iterator[Job]:
    """The jobs of act's log, a JSON object a line."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in output.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            if "jobID" in row:
                rows.setdefault(row["job"], []).append(row)
    for some in rows.values():
        results = [row["jobResult"] for row in some if "jobResult" in row]
        if results:
            yield Job(
                id=some[0]["jobID"],
                matrix=some[0].get("matrix") or {},
                result=results[-1],
                steps={row["step"]: row["stepResult"] for row in some if "stepResult" in row and "step" in row},
                summary="".join(row["content"] for row in some if row.get("command") == "summary"),
                log="".join(row["msg"] for row in some if row.get("raw_output")),
            )
