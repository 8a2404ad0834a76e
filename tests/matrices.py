"""The repository's matrix for fewer targets: a kernel takes as long to compile for each."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def narrowed(folder: Path, sm: dict[str, list[str]], project: Path = ROOT) -> Path:
    """A matrix file in the folder that is the repository's but for the `sm` of some CUDAs and the project's path."""
    stated = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    stated["project"]["path"] = str(project)
    stated["sm"] |= sm
    file = folder / "matrix.yaml"
    file.write_text(yaml.safe_dump(stated))
    return file
