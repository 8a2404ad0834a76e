"""The container images: what they are made of, and their Dockerfiles, rendered from one template and the pins.

The files lie in `docker/`, which travels with this package.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from wheelmill.errors import InputError
from wheelmill.names import cuda_key, did_you_mean, listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Base = Literal["manylinux", "debian"]
FOLDER = Path(__file__).parent / "docker"
TEMPLATE, PINS = "Dockerfile.template", "pins.toml"
CONTENT = "org.wheelmill.content"

_PLACE = re.compile(r"@([a-z_0-9]+)@")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"cu\d{3,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Debian:
    """The Debian image of a tag: its suite, the release of Debian's own CUDA (None: mounted later), its g++."""

    suite: str
    cuda: str | None
    gcc: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cuda:
    """A row of pins.toml; `toolkit` is None and `packages` empty where the toolchain is mounted at build time."""

    tag: str
    toolkit: str | None
    gcc: int
    packages: Mapping[str, str]
    debian: Debian | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pins:
    """pins.toml and the template beside it. `suites` maps a Debian suite to its registry image."""

    folder: Path
    template: str
    base: str
    base_digest: str
    repository: str
    key: str
    key_sha256: str
    suites: Mapping[str, str]
    cuda: Mapping[str, Cuda]


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image to be built: its Dockerfile (a name in `docker/`), base, arguments and what is inside.

    `suite` is the Debian that bootstrap-debian makes where the base is none of a registry; else None.
    """

    tag: str
    base: Base
    dockerfile: str
    base_image: str
    args: Mapping[str, str]
    toolkit: str | None
    gcc: int
    suite: str | None = None

    @property
    def name(self) -> str:
        return name_for(self.tag, self.base)


def name_for(tag: str, base: Base) -> str:
    """The local name of the image: `wheelmill/cu124:debian`."""
    return f"wheelmill/{tag}:{base}"


def local_base(suite: str) -> str:
    """The name under which bootstrap-debian's result is looked for: `wheelmill/debian:trixie`."""
    return f"wheelmill/debian:{suite}"


def load(folder: Path = FOLDER) -> Pins:
    """The pins. Raises InputError, with file and key, where they do not hold together."""
    file = folder / PINS
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        template = (folder / TEMPLATE).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}", remedy="restore docker/") from error
    except ValueError as error:
        raise InputError(f"{file} is not TOML: {error}", remedy="correct that place in the file") from error
    try:
        return _pins(folder, template, table)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}: a field is missing or of another kind: {error}", remedy="its head says what each table holds"
        ) from error


def _pins(folder: Path, template: str, table: Mapping[str, object]) -> Pins:
    file = folder / PINS
    known = ("manylinux", "repository", "debian", "cuda")
    for key in table:
        if key not in known:
            raise InputError(f"{file}: {key}: no such table", remedy=did_you_mean(key, known))
    base = cast("dict[str, str]", table["manylinux"])
    if not _DIGEST.fullmatch(base["digest"]):
        raise InputError(f"{file}: manylinux.digest: no SHA-256 digest", remedy="write sha256: and 64 hex digits")
    repository = cast("dict[str, str]", table["repository"])
    suites = {name: row["image"] for name, row in cast("dict[str, dict[str, str]]", table["debian"]).items()}
    rows = cast("dict[str, dict[str, object]]", table["cuda"])
    for tag in rows:
        if not _TAG.fullmatch(tag):
            raise InputError(f"{file}: cuda.{tag}: is no CUDA tag", remedy="name rows like [cuda.cu130]")
    return Pins(
        folder=folder,
        template=template,
        base=base["image"],
        base_digest=base["digest"],
        repository=repository["url"],
        key=repository["key"],
        key_sha256=repository["sha256"],
        suites=suites,
        cuda={tag: _cuda(file, tag, rows[tag], suites) for tag in sorted(rows, key=cuda_key)},
    )


def _cuda(file: Path, tag: str, row: Mapping[str, object], suites: Mapping[str, str]) -> Cuda:
    for key in row:
        if key not in ("toolkit", "gcc", "debian", "packages"):
            fields = ("toolkit", "gcc", "debian", "packages")
            raise InputError(f"{file}: cuda.{tag}.{key}: no such field", remedy=did_you_mean(key, fields))
    debian = cast("dict[str, object] | None", row.get("debian"))
    if debian is not None and debian["suite"] not in suites:
        raise InputError(f"{file}: cuda.{tag}.debian: {debian['suite']} has no table", remedy="add [debian.SUITE]")
    toolkit, packages = cast("str | None", row.get("toolkit")), cast("dict[str, str]", row.get("packages", {}))
    if (toolkit is None) == bool(packages):
        raise InputError(f"{file}: cuda.{tag}: toolkit and packages go together", remedy="give both, or neither")
    return Cuda(
        tag=tag,
        toolkit=toolkit,
        gcc=cast("int", row["gcc"]),
        packages=packages,
        debian=None
        if debian is None
        else Debian(
            suite=cast("str", debian["suite"]),
            cuda=cast("str | None", debian.get("cuda")),
            gcc=cast("int", debian["gcc"]),
        ),
    )


def render(tag: str, pins: Pins) -> str:
    """The Dockerfile of that CUDA on manylinux_2_28.

    `@name@` in the template is a value; lines from `#if toolkit` to `#end` are for images with a toolkit.
    """
    cuda = pins.cuda[tag]
    values = {
        "tag": tag,
        "base": f"{pins.base}@{pins.base_digest}",
        "base_name": pins.base,
        "base_digest": pins.base_digest,
        "repository": pins.repository,
        "key": pins.key,
        "key_sha256": pins.key_sha256,
        "gcc": str(cuda.gcc),
        "toolkit": cuda.toolkit or "none",
        "minor": ".".join((cuda.toolkit or "").split(".")[:2]),
        "licenses": "BSD-3-Clause" + (" AND LicenseRef-NVIDIA-CUDA-EULA" if cuda.toolkit else ""),
        "packages": " \\\n".join(f"       {name}-{version}" for name, version in cuda.packages.items()) + " \\",
    }
    lines, taken = [], True
    for line in pins.template.splitlines():
        match line:
            case "#if toolkit":
                taken = cuda.toolkit is not None
            case "#end":
                taken = True
            case _ if taken:
                lines.append(_PLACE.sub(lambda found: values[found.group(1)], line))
    return "\n".join(lines) + "\n"


def drifted(pins: Pins) -> tuple[str, ...]:
    """The Dockerfiles in `docker/` that are not what template and pins make, or belong to no row of them."""
    wanted = {f"Dockerfile.{tag}": render(tag, pins) for tag in pins.cuda}
    there = {path.name: path.read_text(encoding="utf-8") for path in pins.folder.glob("Dockerfile.cu*")}
    return tuple(sorted(name for name in wanted | there if wanted.get(name) != there.get(name)))


def write(pins: Pins) -> tuple[str, ...]:
    """Render every Dockerfile into `docker/`, remove those of no row, and return the names that changed."""
    changed = drifted(pins)
    for name in changed:
        tag = name.removeprefix("Dockerfile.")
        if tag in pins.cuda:
            (pins.folder / name).write_text(render(tag, pins), encoding="utf-8")
        else:
            (pins.folder / name).unlink()
    return changed


def select(pins: Pins, patterns: Sequence[str], base: Base) -> tuple[Image, ...]:
    """The images of that base whose tags the globs match; every one without a glob.

    A tag that is named and has no such image is an InputError, as is a glob that matches nothing.
    """
    made = {tag: image for tag in pins.cuda if (image := find(pins, tag, base))}
    wanted: set[str] = set()
    for pattern in patterns:
        if pattern in pins.cuda and pattern not in made:
            have = ", ".join(f"{tag} ({image.toolkit or 'mounted'})" for tag, image in made.items())
            raise InputError(
                f"Debian has no toolkit of {pattern}, so there is no {base} image of it.",
                remedy=f"Build it on manylinux, or with an image of the same CUDA major. The {base} images: {have}.",
            )
        found = fnmatch.filter(made, pattern)
        if not found:
            raise InputError(f'"{pattern}" matches no {base} image.', remedy=f"The images are {listing(made)}.")
        wanted |= set(found)
    return tuple(image for tag, image in made.items() if not patterns or tag in wanted)


def find(pins: Pins, tag: str, base: Base) -> Image | None:
    """The image of that CUDA on that base; None where there is none."""
    cuda = pins.cuda.get(tag)
    if cuda is None:
        return None
    if base == "manylinux":
        return Image(
            tag=cuda.tag,
            base=base,
            dockerfile=f"Dockerfile.{cuda.tag}",
            base_image=f"{pins.base}@{pins.base_digest}",
            args={},
            toolkit=cuda.toolkit,
            gcc=cuda.gcc,
        )
    debian = cuda.debian
    if debian is None:
        return None
    eula = {"LICENSES": "BSD-3-Clause AND LicenseRef-NVIDIA-CUDA-EULA"} if debian.cuda else {}
    return Image(
        tag=cuda.tag,
        base=base,
        dockerfile="debian.Dockerfile",
        base_image=pins.suites[debian.suite],
        args={"TAG": cuda.tag, "CUDA": debian.cuda or "", "GCC": str(debian.gcc), **eula},
        toolkit=debian.cuda,
        gcc=debian.gcc,
        suite=debian.suite,
    )
