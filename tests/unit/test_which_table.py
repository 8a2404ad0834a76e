"""Environments held as data, each with the wheel that `which` must choose and the words that its reasons must hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.specifiers import SpecifierSet

from wheelmill import claims, collect_env, facts, which, which_advice, which_facts, which_read, which_view
from wheelmill.records import Audit, Build, Cell, Library, Record
from wheelmill.which_candidate import Candidate, Link
from wheelmill.which_env import Environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from wheelmill.facts import Facts
    from wheelmill.which import Answer, Judged, Wanted

TABLES = Path(__file__).parents[1] / "golden" / "which"
INDEXES: dict[str, Any] = tomllib.loads((TABLES / "indexes.toml").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = tomllib.loads((TABLES / "environments.toml").read_text(encoding="utf-8"))["row"]
FIELDS = {"name", "index", "flags", "collect_env", "wanted", "choice", "says", "against", "advice", "remark", "silent"}
KNOWN = facts.load()


def library(row: dict[str, Any]) -> Library:
    return Library(
        sass=row.get("sass", ()),
        ptx=row.get("ptx", ()),
        ptx_isa=row.get("isa"),
        needed=row.get("needed", ()),
        glibc=row["glibc"],
        torch_abi=row["abi"],
        min_torch=row.get("min_torch"),
        cxx11_abi=row.get("cxx11"),
    )


def libraries(row: dict[str, Any]) -> dict[str, Library]:
    own = library(row)
    beside = own.model_copy(update={"sass": tuple(row.get("beside", ())), "ptx": (), "ptx_isa": None})
    return {"libone.so": own} | ({"libtwo_fast.so": beside} if beside.sass else {})


def candidate(row: dict[str, Any]) -> Candidate:
    """A row of indexes.toml as what reading an index makes of it."""
    text = "\n".join(f"Requires-Dist: {one}" for one in row.get("requires", ())) + "\n"
    made = which_facts.named(Link(file=row["file"], url=f"https://index.example/files/{row['file']}"))
    if "requires" in row:
        claim = claims.parse(row["file"], text.encode())
        made = Candidate(link=made.link, claim=claim, metadata=True)
    if "environments" in row:
        return which_facts.with_record(made, record(row, made))
    if "abi" in row:
        return Candidate(link=made.link, claim=made.claim, metadata=True, libraries=libraries(row))
    return made


def record(row: dict[str, Any], made: Candidate) -> Record:
    claim = made.claim
    cells = [one.split("-") for one in row.get("failed", ())]
    return Record(
        file=row["file"],
        sha256="0" * 64,
        size=1,
        project=claim.project,
        release=claim.version,
        requires=tuple(row["requires"]),
        environments=tuple(row["environments"]),
        build=Build(wheel="x", engine="1", executor="local", built="2026-11-01", cuda=claim.cuda or "cpu"),
        audit=Audit(verdict="pass", libraries=libraries(row)),
        cover=tuple(
            Cell(cuda=cuda, torch=torch.removeprefix("torch"), python=python, result="fail", error="ImportError")
            for cuda, torch, python in cells
        ),
        yanked=row.get("yanked"),
    )


def wanted(row: dict[str, Any]) -> Wanted:
    word = row.get("wanted", "")
    spec = "" if word in ("pre", "strict") else word
    return which.Wanted(project=row["index"], specifier=SpecifierSet(spec), pre=word == "pre", strict=word == "strict")


def environment(row: dict[str, Any]) -> Environment:
    flags = {**row.get("flags", {})}
    flags["gpus"] = tuple(flags.get("gpus", ()))
    text = row.get("collect_env")
    return which_read.override(collect_env.parse(text) if text else Environment(), which_read.Stated(**flags))


def answer(row: dict[str, Any], known: Facts = KNOWN) -> Answer:
    wheels = [candidate(one) for one in INDEXES[row["index"]]["wheels"]]
    return which.decide(environment(row), wheels, known, wanted(row))


def said(made: Answer, one: Judged) -> str:
    return "\n".join([*(reason.message for reason in one.reasons), *which_view.why(made, one)])


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_the_table(row: dict[str, Any]) -> None:
    made = answer(row)
    told = "\n".join(f"{one.candidate.file}\n{said(made, one)}" for one in made.judged)
    choice = made.choice
    assert (choice.candidate.file if choice else None) == row.get("choice"), told
    for words in row.get("says", ()):
        assert choice is not None
        assert words in said(made, choice)
    for part, every in row.get("against", {}).items():
        named = [one for one in made.judged if part.lower() in one.candidate.file.lower() and one is not choice]
        assert named, part
        for words in every:
            assert any(words in said(made, one) for one in named), f"{part}: {words}\n{told}"
    advice = "\n".join(f"{one.change} {one.command}" for one in which_advice.advise(made, KNOWN))
    for words in row.get("advice", ()):
        assert words in advice, advice
    assert not [words for words in row.get("silent", ()) if words in advice], advice
    for words in row.get("remark", ()):
        assert words in "\n".join(which_view.remarks(made.environment, KNOWN))


def test_the_table_is_whole() -> None:
    assert len(ROWS) >= 40
    assert len({row["name"] for row in ROWS}) == len(ROWS)
    assert not [key for row in ROWS for key in row if key not in FIELDS]
    assert all(row.get("choice") or row.get("against") for row in ROWS)
    assert len([row for row in ROWS if not row.get("choice")]) >= 15


@pytest.mark.parametrize("row", [row for row in ROWS if "choice" in row], ids=lambda row: row["name"])
def test_nothing_is_advised_where_there_is_a_choice(row: dict[str, Any]) -> None:
    assert which_advice.advise(answer(row), KNOWN) == ()
