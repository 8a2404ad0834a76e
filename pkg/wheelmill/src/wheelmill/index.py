"""The wheels of a folder: what the manifest and the cover report beside each say of where it works."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from pydantic import BaseModel, Field

from wheelmill import records  # noqa: TC001  pydantic reads it
from wheelmill.errors import InputError
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST, COVER = ".manifest.json", ".cover.json"
NAME = ".dist-info/METADATA"
LARGEST = 16 << 20
REMEDY = "build it with `wheelmill build`, which writes the wheel and its manifest"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A wheel file and the environments that list it. `proven` tells whether these very bytes loaded.

    The environments are those that its manifest names, and where a cover report of these bytes lies beside it, of
    those the ones in which they were measured to work.
    """

    path: Path
    project: str
    sha256: str
    metadata: bytes
    requires_python: str | None
    environments: tuple[str, ...]
    proven: bool
    toolkit: str | None


def metadata(path: Path) -> bytes:
    """The METADATA of a wheel. Raises what `zipfile` raises, and ValueError for none, several or a huge one."""
    with zipfile.ZipFile(path) as archive:
        (one,) = [n for n in archive.infolist() if n.filename.count("/") == 1 and n.filename.endswith(NAME)]
        if one.file_size > LARGEST:
            raise ValueError(f"{one.filename} has {one.file_size} bytes, and installers read it whole")
        return archive.read(one)


def _requires_python(metadata: bytes) -> str | None:
    for line in metadata.split(b"\n\n", 1)[0].decode(errors="replace").splitlines():
        if line.lower().startswith("requires-python:"):
            return line.split(":", 1)[1].strip()
    return None


class _Proof(BaseModel):
    sha256: str


class _Toolkit(BaseModel):
    version: str = Field(pattern=r"^\d+\.\d+$")


class Manifest(BaseModel):
    """What the index needs of the manifest beside a wheel. It is read from a folder, so it is not trusted."""

    wheel: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    environments: list[Annotated[str, Field(pattern=r"^(cpu|cu\d+)-torch\d+\.\d+$")]]
    proof: _Proof | None = None
    toolkit: _Toolkit | None = None


class Cover(BaseModel):
    """What the index needs of the cover report beside a wheel."""

    version: Literal[1]
    sha256: str
    cells: tuple[records.Cell, ...]

    def works(self, environment: str) -> bool:
        """Whether the wheel was measured to work there, with no Python that it claims failing."""
        here = [cell for cell in self.cells if f"{cell.cuda}-torch{cell.torch}" == environment]
        claimed = [cell.result for cell in here if cell.unclaimed is None]
        return "pass" in claimed and "fail" not in claimed


def cover_of(path: Path, sha256: str) -> Cover | None:
    """The cover report of these bytes beside a wheel, if there is one. Raises InputError when it cannot be read."""
    try:
        found = Cover.model_validate_json(path.with_name(path.name + COVER).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name}: its cover report cannot be read: {error}",
            remedy="measure again with `wheelmill cover`, or remove the report",
        ) from error
    return found if found.sha256 == sha256 else None


def any_wheel(path: Path) -> tuple[File, bool]:
    """(a wheel, whether the manifest beside it is of these very bytes): ours, or anyone's."""
    with contextlib.suppress(InputError):
        return describe(path, manifest_of(path)), True
    return describe(path, Manifest(wheel=path.name, sha256=file_sha256(path), environments=[])), False


def describe(path: Path, manifest: Manifest) -> File:
    """A wheel under its manifest. Raises InputError when the file is no wheel, or not that one."""
    try:
        project = canonicalize_name(parse_wheel_filename(path.name)[0])
        content = metadata(path)
        sha256 = file_sha256(path)
    except (InvalidWheelFilename, OSError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, KeyError) as error:
        raise InputError(f"{path.name} cannot be read: {error}", remedy=REMEDY) from error
    if sha256 != manifest.sha256:
        raise InputError(f"{path.name} is not the file that its manifest describes (SHA-256 differs)", remedy=REMEDY)
    return File(
        path=path,
        project=project,
        sha256=sha256,
        metadata=content,
        requires_python=_requires_python(content),
        environments=tuple(manifest.environments),
        proven=manifest.proof is not None and manifest.proof.sha256 == sha256,
        toolkit=manifest.toolkit.version if manifest.toolkit else None,
    )


def measured(file: File) -> File:
    """A wheel in those of its environments where the report beside it says that it works; as it is without one."""
    cover = cover_of(file.path, file.sha256)
    if cover is None:
        return file
    environments = tuple(name for name in file.environments if cover.works(name))
    return replace(file, environments=environments, proven=bool(environments))


def manifest_of(path: Path) -> Manifest:
    """The manifest beside a wheel. Raises InputError when there is none, or it cannot be understood."""
    try:
        return Manifest.model_validate_json(path.with_name(path.name + MANIFEST).read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path.name} has no manifest, so nothing says where it works", remedy=REMEDY) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name}: its manifest cannot be read: {error}", remedy=REMEDY) from error
