"""Rules of the archive and of the wheel's own files: filename, METADATA, WHEEL and RECORD."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from packaging.metadata import ExceptionGroup, InvalidMetadata, Metadata
from packaging.requirements import Requirement
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheelmill.archive import shown
from wheelmill.findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import Row, WheelFacts

CHECKED = 20_000
TAG_LENGTH, TAGS = 255, 1000
WEAK = frozenset({"md5", "sha1", "sha224"})
# Without W002 and W009: every project with extensions has empty files twice and more than one top-level entry.
CHECKS = ("W001", "W003", "W004", "W005", "W006", "W007", "W008", "W010")
# pip and uv install by these, and nothing else about the metadata stops a user.
STOPPING = frozenset({"name", "version", "requires-dist", "requires-python", "metadata-version"})


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:  # noqa: ARG001
    for problem in facts.problems:
        if problem.rule == "library-unreadable":
            yield found(problem.rule, problem.member, what=problem.what)
        else:
            yield found(problem.rule, member=problem.member, what=problem.what)
    if any(problem.rule == "archive-unreadable" for problem in facts.problems):
        return
    if facts.name.wrong:
        yield found("filename-invalid", what=facts.name.wrong)
    yield from _folder(facts)
    yield from _metadata(facts)
    yield from _names(facts)
    yield from _tags(facts)
    if facts.record is not None:
        yield from _record(facts)
        yield from _contents(facts)
    yield from _sboms(facts)


def _folder(facts: WheelFacts) -> Iterator[Finding]:
    if len(facts.infos) != 1:
        what = f"there are {len(facts.infos)} dist-info folders" if facts.infos else "there is no dist-info folder"
        yield found("dist-info-incomplete", what=what)
        return
    (info,) = facts.infos
    for name in ("METADATA", "WHEEL", "RECORD"):
        if f"{info}/{name}" not in facts.contents.names:
            yield found("dist-info-incomplete", what=f"{shown(info)}/{name} is not there")
    if facts.name.version is not None:
        project, _, version = info.removesuffix(".dist-info").partition("-")
        try:
            same = Version(version) == facts.name.version
        except ValueError:
            same = False
        if not same or canonicalize_name(project) != facts.name.project:
            yield found("dist-info-incomplete", what=f"{shown(info)} is not the folder of {shown(facts.file)}")


def _metadata(facts: WheelFacts) -> Iterator[Finding]:
    if facts.metadata is None:
        return
    text = facts.contents.texts[f"{facts.infos[0]}/METADATA"]
    try:
        Metadata.from_email(text, validate=True)
    except (ValueError, RecursionError) as error:
        yield found("metadata-invalid", what=f"METADATA: {shown(str(error))}")
    except ExceptionGroup as group:
        for one in group.exceptions:
            field = one.field.lower() if isinstance(one, InvalidMetadata) else ""
            # Old spellings of a licence or a description's type stop nobody.
            if field in STOPPING:
                yield found("metadata-invalid", what=f"METADATA: {shown(str(one))}")
    for stated in facts.stated:
        try:
            Requirement(stated)
        except ValueError as error:
            yield found("metadata-invalid", what=f"`Requires-Dist: {shown(stated)}` is no requirement ({error})")
    wheel = facts.wheel
    if wheel is not None and not str(wheel.get("Wheel-Version", "")).startswith("1."):
        yield found("metadata-invalid", what=f"WHEEL states Wheel-Version {wheel.get('Wheel-Version')}")


def _names(facts: WheelFacts) -> Iterator[Finding]:
    if facts.metadata is None or facts.name.version is None:
        return
    name, stated = str(facts.metadata.get("Name", "")), str(facts.metadata.get("Version", ""))
    if name and canonicalize_name(name) != facts.name.project:
        yield found("name-mismatch", filename=facts.name.project, metadata=shown(name))
    try:
        version = Version(stated)
    except ValueError:
        return
    if version != facts.name.version:
        yield found("version-mismatch", filename=facts.name.version, metadata=version)


def _tags(facts: WheelFacts) -> Iterator[Finding]:
    if facts.wheel is None:
        return
    stated = [str(text).strip() for text in facts.wheel.get_all("Tag", [])]
    # A tag is a product of three lists.
    wrong = [text for text in stated if text.count("-") != 2 or len(text) > TAG_LENGTH]  # noqa: PLR2004
    if wrong or len(stated) > TAGS:
        yield found("metadata-invalid", what=f"WHEEL's {len(stated)} tags, as {shown((wrong or stated)[0])}")
        return
    tags = {tag for text in stated for tag in parse_tag(text)}
    if facts.name.tags and tags != facts.name.tags:
        words = [listing(sorted(map(str, some)), limit=4) for some in (facts.name.tags, tags)]
        yield found("tag-mismatch", filename=words[0], metadata=words[1])
    if facts.shared and str(facts.wheel.get("Root-Is-Purelib", "")).strip().lower() == "true":
        yield found("purelib-binary")


def _exempt(facts: WheelFacts, name: str) -> bool:
    """RECORD does not list its own hash, nor those of signatures of it."""
    return name in {f"{facts.infos[0]}/RECORD{end}" for end in ("", ".jws", ".p7s")}


def _record(facts: WheelFacts) -> Iterator[Finding]:
    rows = facts.record or {}
    present = set(facts.contents.names)
    for name in sorted(set(rows) - present):
        if not name.endswith("/"):
            yield found("record-missing", member=shown(name))
    for name in sorted(present - set(rows)):
        if not _exempt(facts, name):
            yield found("record-unlisted", member=shown(name))
    for member in facts.contents.members:
        row = rows.get(member.name)
        if row is not None and not _exempt(facts, member.name):
            yield from _row(member.name, member.size, row, member.digests.get(row.algorithm))


def _row(name: str, size: int, row: Row, digest: bytes | None) -> Iterator[Finding]:
    if not row.algorithm:
        yield found("record-weak", member=shown(name), what="no hash")
    elif digest is None:
        yield found("record-hash", member=shown(name), what=f"{shown(row.algorithm)} hash, which nobody can check,")
    elif digest != row.digest:
        yield found("record-hash", member=shown(name), what=f"{row.algorithm} hash")
    elif row.size is not None and row.size != size:
        yield found("record-hash", member=shown(name), what="size")
    elif row.algorithm in WEAK:
        yield found("record-weak", member=shown(name), what=f"{row.algorithm} alone")


def _contents(facts: WheelFacts) -> Iterator[Finding]:
    """What check-wheel-contents says of the files that RECORD lists."""
    from check_wheel_contents.checker import WheelChecker
    from check_wheel_contents.checks import Check
    from check_wheel_contents.contents import WheelContents
    from check_wheel_contents.errors import WheelValidationError

    if len(facts.infos) != 1 or facts.wheel is None or len(facts.contents.members) > CHECKED:
        return
    info = facts.infos[0]
    contents = WheelContents(
        dist_info_dir=info,
        data_dir=f"{info.removesuffix('.dist-info')}.data",
        root_is_purelib=str(facts.wheel.get("Root-Is-Purelib", "")).strip().lower() == "true",
    )
    rows = facts.record or {}
    try:
        contents.add_record_rows(
            [name, f"sha256={member.digests['sha256'].hex()}", str(member.size)]
            for member in facts.contents.members
            # auditwheel's folder of grafted libraries is no package.
            if (name := member.name) in rows and not name.partition("/")[0].endswith(".libs")
        )
        contents.validate_tree()
        failures = WheelChecker(selected={Check[name] for name in CHECKS}).check_contents(contents)
    except (WheelValidationError, ValueError, RecursionError) as error:
        yield found("wheel-contents", what=shown(str(error)))
        return
    for failure in failures:
        where = f": {listing(map(shown, failure.args), limit=3)}" if failure.args else ""
        yield found("wheel-contents", what=f"{failure.check.name}: {failure.check.value}{where}")


def _sboms(facts: WheelFacts) -> Iterator[Finding]:
    sboms = {name: text for name, text in facts.contents.texts.items() if "/sboms/" in name}
    if not sboms and facts.shared:
        yield found("sbom-missing")
    for name, text in sboms.items():
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            yield found("sbom-invalid", member=shown(name), what=shown(str(error)))
