"""The repository for less: a kernel takes as long to compile for each target, and not every test needs them all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SM = {"cu130": ["9.0+PTX", "9.0a"], "cu121": ["5.0"], "cu124": ["5.0"]}


def narrowed(folder: Path, project: Path = ROOT, **more: list[str]) -> Path:
    """A matrix file in the folder: the repository's but for the project's path and `sm`, also of a CUDA named."""
    stated = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    stated["project"]["path"] = str(project)
    stated["sm"] |= SM | more
    file = folder / "matrix.yaml"
    file.write_text(yaml.safe_dump(stated))
    return file


def checkout(folder: Path) -> Path:
    """The repository's files, without what was built in it: its matrix for fewer targets, and two operators."""
    list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(list_files, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    narrowed(folder, project=Path(), cu124=["9.0", "9.0a"])
    cmake = folder / "CMakeLists.txt"
    text, count = re.subn(r"set\(operators [^)]*\)", "set(operators clip_add matmul)", cmake.read_text())
    assert count == 1
    cmake.write_text(text)
    return folder
