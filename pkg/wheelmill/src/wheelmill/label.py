"""Labels: the local version, the true torch range and the true tags, written into any back end's wheel."""

from __future__ import annotations

import email
import email.generator
import email.policy
import io
import os
import re
import sys
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from wheelmill import proc
from wheelmill.errors import BuildError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message
    from pathlib import Path

    from wheelmill.model import Wheel

# Headers are rewritten, bodies are not: no line is folded and no character is changed.
POLICY = email.policy.compat32.clone(max_line_length=None)


def _read(path: Path) -> Message:
    return email.message_from_bytes(path.read_bytes(), policy=POLICY)


def _write(path: Path, message: Message) -> None:
    out = io.BytesIO()
    email.generator.BytesGenerator(out, mangle_from_=False, policy=POLICY).flatten(message)
    path.write_bytes(out.getvalue())


def local_version(version: str, local: str) -> str:
    """`1.0.0` and `cu130` → `1.0.0+cu130`; a local part that is there already stays in front."""
    parsed = Version(version)
    if parsed.local == local or (parsed.local or "").endswith(f".{local}"):
        return str(parsed)
    own = f"{parsed.local}." if parsed.local else ""
    return f"{parsed.public}+{own}{local}"


def torch_requirement(stated: list[str], wheel: Wheel, releases: tuple[str, ...]) -> str:
    """The torch requirement of the labelled wheel: what the project states and what the binary can serve.

    `releases` are the torch releases the wheel is for. Raises InputError when the project's own range
    admits none of them, for then nobody could install the wheel.
    """
    ours = Requirement(wheel.requires).specifier
    for text in stated:
        own = Requirement(text).specifier
        if not any(own.contains(release) for release in releases):
            raise InputError(
                f"the project requires {text}, and {wheel.id} is for torch {', '.join(releases)}: "
                "nobody could install that wheel",
                remedy="widen the project's torch requirement, or narrow `torch` in matrix.yaml to it",
            )
        # A range that already holds is not repeated beside ours.
        if not all(own.contains(release) for release in releases):
            ours &= own
    return f"torch{ours}"


def _torch_requirements(metadata: Message) -> tuple[list[str], list[str]]:
    """(unconditional requirements on torch, every other requirement), as written."""
    torch: list[str] = []
    others: list[str] = []
    for text in metadata.get_all("Requires-Dist", []):
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise BuildError(
                f"the built wheel's METADATA has `Requires-Dist: {text}`, which is no requirement ({error})",
                remedy="correct the project's dependencies",
            ) from error
        is_torch = requirement.name.lower() == "torch" and requirement.marker is None
        (torch if is_torch else others).append(text)
    return torch, others


def _relabel_metadata(path: Path, wheel: Wheel, releases: tuple[str, ...]) -> str:
    metadata = _read(path)
    version = local_version(metadata["Version"], wheel.local)
    metadata.replace_header("Version", version)
    torch, others = _torch_requirements(metadata)
    del metadata["Requires-Dist"]
    for text in [torch_requirement(torch, wheel, releases), *others]:
        metadata["Requires-Dist"] = text
    _write(path, metadata)
    return version


def _python_tags(name: str, wheel: Wheel) -> tuple[str, str]:
    """(interpreter, ABI) of the labelled wheel. Raises BuildError when the back end's wheel is not of that kind."""
    _, _, _, tags = parse_wheel_filename(name)
    if wheel.python_abi == "none":
        return "py3", "none"
    pairs = {(tag.interpreter, tag.abi) for tag in tags}
    if len(pairs) != 1 or (wheel.python_abi == "abi3") != (next(iter(pairs))[1] == "abi3"):
        raise BuildError(
            f"the back end built {name}, and matrix.yaml says abi.python: {wheel.python_abi}",
            remedy="say in matrix.yaml what the project builds (none, abi3 or per-version), or change its build",
        )
    return next(iter(pairs))


def relabel(
    repaired: Path,
    wheel: Wheel,
    releases: tuple[str, ...],
    platforms: tuple[str, ...],
    work: Path,
    log: Path,
    *,
    carried: Callable[[str, str], Mapping[str, bytes]] = lambda name, version: {},  # noqa: ARG005
) -> Path:
    """Unpack, correct METADATA, WHEEL and the dist-info folder's name, pack again (RECORD is written anew).

    `carried` gives, of the project's name and labelled version, further files of the dist-info folder.

    Returns the labelled file in `work / "labelled"`. Same input, same bytes: times come from
    SOURCE_DATE_EPOCH.
    """
    env = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "315532800")}
    tool = [sys.executable, "-m", "wheel"]
    proc.run([*tool, "unpack", "-d", str(work / "unpacked"), str(repaired)], log=log, env=env)
    (tree,) = (work / "unpacked").iterdir()
    (info,) = tree.glob("*.dist-info")
    version = _relabel_metadata(info / "METADATA", wheel, releases)
    for place, content in carried(_read(info / "METADATA")["Name"], version).items():
        (info / place).parent.mkdir(exist_ok=True)
        (info / place).write_bytes(content)
    interpreter, abi = _python_tags(repaired.name, wheel)
    marks = _read(info / "WHEEL")
    del marks["Tag"]
    for platform in platforms:
        marks["Tag"] = f"{interpreter}-{abi}-{platform}"
    marks.replace_header("Root-Is-Purelib", "false")
    _write(info / "WHEEL", marks)
    name = re.sub(r"-[^-]+\.dist-info$", "", info.name)
    data = tree / f"{info.name.removesuffix('.dist-info')}.data"
    if data.exists():
        data.rename(tree / f"{name}-{version}.data")
    info.rename(tree / f"{name}-{version}.dist-info")
    (work / "labelled").mkdir()
    proc.run([*tool, "pack", "-d", str(work / "labelled"), str(tree)], log=log, env=env)
    (labelled,) = (work / "labelled").iterdir()
    return labelled
