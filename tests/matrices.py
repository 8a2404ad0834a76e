"""The repository's matrix for fewer targets: a kernel takes as long to compile for each."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
# Of cu130 one list for all tests, so that what one has built the store has for the next.
SM = {"cu130": ["9.0+PTX", "9.0a"], "cu132": ["8.0+PTX"]} | {
    cuda: ["5.0", "9.0", "9.0a"] for cuda in ("cu121", "cu124")
}


def narrowed(folder: Path, project: Path = ROOT) -> Path:
    """A matrix file in the folder that is the repository's but for `sm` and the project's path."""
    stated = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    stated["project"]["path"] = str(project)
    stated["sm"] |= SM
    file = folder / "matrix.yaml"
    file.write_text(yaml.safe_dump(stated))
    return file
