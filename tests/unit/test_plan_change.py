"""The difference of two plans: nothing against itself, mirrored when the sides are swapped, and as people read it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelmill import markdown, plan, plan_change
from wheelmill.__main__ import main
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan

GOLDEN = Path(__file__).parents[1] / "golden" / "refresh" / "plan.md"
TAGS, MINORS, PYTHONS = ("cpu", "cu118", "cu126", "cu130"), ("2.9", "2.10", "2.11"), ("3.9", "3.11", "3.14", "3.14t")
CELLS = [f"{tag}-torch{minor}-cp{python.replace('.', '')}" for tag in TAGS for minor in MINORS for python in PYTHONS]


@st.composite
def plans(draw: st.DrawFn) -> plan_change.Stated:
    """Plans over few ids, so that two of them share some; rows in any order."""
    wheels = draw(st.lists(st.sampled_from([f"{tag}-stable{minor}" for tag in TAGS for minor in MINORS]), unique=True))
    made: dict[str, Any] = {"version": 1, "cells": [], "wheels": [], "steps": []}
    made["cells"] = [{"id": one} for one in draw(st.lists(st.sampled_from(CELLS), unique=True))]
    for name in wheels:
        wheel = {
            "id": name,
            "torch": draw(st.sampled_from(MINORS)),
            "torch_abi": draw(st.sampled_from(["stable", "release"])),
            "python": draw(st.sampled_from([None, *PYTHONS])),
            "python_abi": "none",
            "sm": draw(st.sampled_from([[], ["8.0"], ["8.0", "9.0+PTX"]])),
            "local": name,
            "requires": draw(st.sampled_from(["torch>=2.10", "torch==2.9.*"])),
            "cells": draw(st.lists(st.sampled_from(CELLS), unique=True, max_size=5)),
        }
        made["wheels"].append(wheel)
        made["steps"].append(
            {
                "wheel": name,
                "torch_release": "2.10.0",
                "toolkit": draw(st.sampled_from([None, "13.0"])),
                "python": "3.11",
            }
        )
    return plan_change.parse(json.dumps(made), "made")


@given(plans())
def test_a_plan_against_itself_is_empty(one: plan_change.Stated) -> None:
    difference = plan_change.compare(one, one)
    assert not difference
    assert plan_change.to_json(difference)["changed"] is False
    assert "No wheel and no cell changed" in plan_change.markdown(difference, one)


@given(plans(), plans())
def test_swapped_sides_swap_new_and_gone(old: plan_change.Stated, new: plan_change.Stated) -> None:
    there, back = plan_change.compare(old, new), plan_change.compare(new, old)
    assert (there.wheels_new, there.wheels_gone) == (back.wheels_gone, back.wheels_new)
    assert (there.cells_new, there.cells_gone) == (back.cells_gone, back.cells_new)
    assert [one.id for one in there.wheels_changed] == [one.id for one in back.wheels_changed]
    for one, other in zip(there.wheels_changed, back.wheels_changed, strict=True):
        assert (one.gains, one.loses) == (other.loses, other.gains)
        assert one.fields == {name: (new_, old_) for name, (old_, new_) in other.fields.items()}


@given(plans(), plans())
def test_every_wheel_and_cell_is_accounted_for(old: plan_change.Stated, new: plan_change.Stated) -> None:
    difference = plan_change.compare(old, new)
    for gone, come, before, after in (
        (difference.cells_gone, difference.cells_new, old.cells, new.cells),
        (difference.wheels_gone, difference.wheels_new, old.wheels, new.wheels),
    ):
        assert {one.id for one in before} - set(gone) | set(come) == {one.id for one in after}
    told = [
        cell
        for cuda, torches, pythons in plan_change.grouped(difference.cells_new)
        for cell in (
            f"{cuda}-torch{torch}-cp{python.replace('.', '')}" for torch in torches.split(", ") for python in pythons
        )
    ]
    assert sorted(told) == sorted(difference.cells_new)


@given(plans(), plans(), st.randoms())
def test_the_order_of_rows_does_not_matter(old: plan_change.Stated, new: plan_change.Stated, chance: Any) -> None:
    content = new.model_dump()
    for rows in ("cells", "wheels", "steps"):
        content[rows] = chance.sample(content[rows], len(content[rows]))
    shuffled = plan_change.parse(json.dumps(content), "shuffled")
    first, second = plan_change.compare(old, new), plan_change.compare(old, shuffled)
    assert plan_change.to_json(first) == plan_change.to_json(second)
    assert plan_change.markdown(first, new) == plan_change.markdown(second, shuffled)


@pytest.fixture
def smaller(planned: Callable[..., Plan]) -> str:
    """The JSON of an earlier plan: one torch and one CUDA less, other targets."""
    made = planned('torch: ["2.9", "2.10"]\ncuda: [cpu, cu128]\npython: ["3.11", "3.12"]\nsm: {default: ["8.0"]}\n')
    return json.dumps(plan.to_json(made))


LATER = 'torch: ["2.10", "2.11"]\ncuda: [cpu, cu128, cu130]\npython: ["3.11", "3.12"]\nsm: {default: ["8.0", "9.0"]}\n'


def test_a_real_difference_as_people_read_it(
    planned: Callable[..., Plan], smaller: str, golden: Callable[[Path, str], None]
) -> None:
    new = plan_change.of(planned(LATER))
    said = plan_change.markdown(plan_change.compare(plan_change.parse(smaller, "-"), new), new)
    golden(GOLDEN, said)


def test_the_command_reads_a_file_and_standard_input(
    write: Callable[[str], Path], smaller: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    matrix = write("version: 1\n" + LATER)
    earlier = tmp_path / "earlier.json"
    earlier.write_text(smaller)
    assert main(["plan", "--matrix", str(matrix), "--against", str(earlier)]) == 0
    by_file = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(smaller.encode())))
    assert main(["plan", "--matrix", str(matrix), "--against", "-"]) == 0
    assert capsys.readouterr().out == by_file
    assert main(["plan", "--matrix", str(matrix), "--json"]) == 0
    earlier.write_text(capsys.readouterr().out)
    assert main(["plan", "--matrix", str(matrix), "--against", str(earlier), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "Invalid JSON"),
        ("[]", "is no plan"),
        ('{"version": 2}', "version: Input should be 1"),
        ('{"version": 1, "cells": [{"id": "cpu"}], "wheels": [], "steps": []}', "cells.0.id"),
        ("[" * 100_000, "is no plan"),
    ],
)
def test_what_is_no_plan_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError, match="no plan") as caught:
        plan_change.parse(text, "earlier.json")
    assert what in str(caught.value)
    assert "plan --json" in caught.value.remedy


def test_explain_and_against_are_one_too_many(write: Callable[[str], Path], tmp_path: Path, capsys: Any) -> None:
    matrix, earlier = write("version: 1\n" + LATER), tmp_path / "earlier.json"
    earlier.write_text("{}")
    assert main(["plan", "--matrix", str(matrix), "--explain", "--against", str(earlier)]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_a_large_difference_fits_into_a_pull_request(planned: Callable[..., Plan]) -> None:
    none = plan_change.Stated(version=1, cells=(), wheels=(), steps=())
    cuda = "[cpu, cu118, cu121, cu124, cu126, cu128, cu130, cu132]"
    new = plan_change.of(planned(f'torch: ">=2.0"\ncuda: {cuda}\npython: ">=3.8"\nsm: {{default: all}}\n'))
    difference = plan_change.compare(none, new)
    said = plan_change.markdown(difference, new)
    assert len(difference.wheels_new) > 200
    assert len(said) <= markdown.LIMIT + 100
    twice = plan_change.Stated(
        version=1,
        cells=(),
        wheels=tuple(one.model_copy(update={"id": f"{n}-{one.id}"}) for n in range(9) for one in new.wheels),
        steps=(),
    )
    said = plan_change.markdown(plan_change.compare(none, twice), twice)
    assert len(said) <= markdown.LIMIT + 100
    assert "more lines, which `--json` has." in said


@given(st.text())
def test_any_text_is_one_line_of_code(text: str) -> None:
    said = markdown.code(text)
    assert len(said.splitlines()) == 1
    runs = markdown.re.findall("`+", said)
    assert said == "nothing" or (runs[0] == runs[-1] and runs[0] not in runs[1:-1])


@given(st.lists(st.text(alphabet="ab", max_size=30), max_size=50), st.integers(min_value=1, max_value=300))
def test_a_text_is_cut_at_a_line_and_says_how_many_are_left(lines: list[str], limit: int) -> None:
    said = markdown.capped(lines, limit)
    whole = "\n".join(lines) + "\n"
    if len(whole) <= limit or not lines:
        assert said == whole
    else:
        kept, _, note = said.rpartition("\n… and ")
        count = len(lines) - int(note.split(" ")[0])
        assert kept.rstrip("\n") == "\n".join(lines[:count]).rstrip("\n")
        assert len(kept) <= limit + 1
