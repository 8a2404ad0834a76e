"""The repository's matrix for fewer targets: a kernel takes as long to compile for each."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def narrowed(folder: Path, *sm: str, project: Path = ROOT) -> Path:
    """A matrix file in the folder that is the repository's but for `sm`, and names the project's folder."""
    stated = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    stated["project"]["path"] = str(project)
    stated["sm"] = {"default": list(sm)}
    file = folder / "matrix.yaml"
    file.write_text(yaml.safe_dump(stated))
    return file
