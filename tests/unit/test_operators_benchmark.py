"""What the operators' benchmark asks, judges and shows, without torch; and that the README shows what was measured."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "evidence" / "operators-h200.json"
PLOT = "evidence/operators-h200.svg"
BEGIN, END = "<!-- python -m benchmarks.operators --from evidence/operators-h200.json --markdown -->", "<!-- end -->"


def _package() -> str:
    """The benchmark's folder as a package, whether or not the root is on the path."""
    folder, name = ROOT / "benchmarks" / "operators", "operators_benchmark"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return name


rows: Any = importlib.import_module(f"{_package()}.rows")
show: Any = importlib.import_module(f"{_package()}.show")
plot: Any = importlib.import_module(f"{_package()}.plot")
command: Any = importlib.import_module(f"{_package()}.__main__")

MACHINE = {"card": "a card", "processor": "a processor", "driver": "580.1", "torch": "2.11.0", "fusedops": "1.0"}


def one(work: str, operator: str, part: str = "") -> Any:
    return next(row for row in rows.every() if (row.work, row.operator) == (work, operator) and part in row.size)


def times(**medians: float) -> dict[str, dict[str, float]]:
    return {
        name.replace("_", "."): {"median": value, "q1": value * 0.99, "q3": value * 1.01, "count": 11}
        for name, value in medians.items()
    }


def measured(row: Any, medians: dict[str, dict[str, float]], **more: Any) -> dict[str, Any]:
    amounts = {"fusedops": 2e9, "copy": 2e9}
    told = {**rows.begun(row), "result": "measured", "unit": "ms", "times": medians, "amounts": amounts}
    return {**told, "targets": rows.judged(row.targets, medians, amounts), **more}


def report(*every: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"version": command.VERSION, "benchmark": command.BENCHMARK, "machine": MACHINE, "wheel": None}
    return {**head, "rows": list(every), **more}


FORWARD = one("forward", "scale_clamp_add", "float32")
MET = measured(FORWARD, times(fusedops=0.508, copy=0.514, eager=1.53, torch_compile=0.553))
MISSED = measured(one("forward", "clip_add", "float32"), times(fusedops=0.520, copy=0.514, torch_compile=0.553))
WRONG = {**rows.begun(one("edge", "edge_enhance")), "result": "wrong", "reason": "it is 1 and not 2"}
NOT_RUN = {**rows.begun(one("matmul", "matmul")), "reason": "torch finds no CUDA device"}


def test_every_row_of_the_issue_is_asked_for() -> None:
    every = rows.every()
    assert {row.work for row in every} == set(rows.WORKS)
    assert len({(row.work, row.name) for row in every}) == len(every)
    wanted = {
        "forward": {("copy", 1.0), ("torch.compile", 1.05), ("eager", 2.8)},
        "backward": {("copy", 1.0), ("torch.compile", 1.0)},
        "small": {("torch.add", 0.5556), ("eager", 1.0)},
        "nms": {("torchvision", 1.2), ("torchvision", 2.0), ("torchvision", 4.0)},
        "attention": {("SDPA", 3.0), ("flex_attention", 1.0)},
        "edge": {("copy", 0.85), ("eager", 9.0)},
        "matmul": {("cuBLAS", 0.85), ("cuBLAS", 0.8)},
        "cpu": {("eager", 2.0)},
    }
    for work, targets in wanted.items():
        assert {(t.against, t.at_least) for row in every if row.work == work for t in row.targets} == targets


def test_a_target_is_met_by_time_or_by_bytes_a_second() -> None:
    by_bytes = rows.Target(against="copy", at_least=1.0, by="bytes")
    by_time = rows.Target(against="eager", at_least=2.0)
    medians = times(fusedops=0.75, copy=0.5, eager=1.4)
    made = rows.judged([by_bytes, by_time], medians, {"fusedops": 3.0, "copy": 2.0})
    assert [row["ratio"] for row in made] == pytest.approx([1.0, 1.4 / 0.75])
    assert [row["met"] for row in made] == [True, False]
    (untimed,) = rows.judged([by_time], times(fusedops=0.75), {})
    assert (untimed["ratio"], untimed["met"]) == (None, None)


def test_a_rehearsal_is_tiny_and_held_to_nothing() -> None:
    for row in rows.every():
        tiny = rows.rehearsed(row, "cpu")
        assert (tiny.device, tiny.targets) == ("cpu", ())
        assert set(tiny.how) == set(row.how)
        assert tiny.how.get("exponent", 0) < 20
        assert tiny.how.get("count", 0) < 1000


@pytest.mark.parametrize(
    ("value", "text"), [(0.508, "0.508"), (1.5312, "1.53"), (12.94, "12.9"), (733.1, "733"), (4180.2, "4180"), (0, "0")]
)
def test_three_digits_that_count(value: float, text: str) -> None:
    assert show.number(value) == text


def test_a_row_is_told_with_its_targets() -> None:
    said = show.row_text(measured(FORWARD, MET["times"], amount="byte"))
    assert said.startswith("scale_clamp_add forward, 2^28 float32: 0.508 ms (0.503–0.513); 3937 GB/s; ")
    assert "1.01 × copy (at least 1.00: met)" in said
    assert "0.99 × copy (at least 1.00: MISSED)" in show.row_text(MISSED)
    bare = measured(FORWARD, times(fusedops=0.5, copy=0.5), left_out={"torch.compile": "no compiler"}, shrunk="2^20")
    assert "? × torch.compile (at least 1.05: not timed); ? × eager" in show.row_text(bare)
    assert "shrunk: 2^20; without torch.compile: no compiler" in show.row_text(bare)
    assert show.row_text(WRONG).endswith(": wrong: it is 1 and not 2")


def test_what_was_not_run_is_told_once_a_reason() -> None:
    said = show.text(report(MET, NOT_RUN, {**NOT_RUN, "name": "another"}))
    assert "not run, torch finds no CUDA device: 2 rows, matmul, float32 4,096 the first" in said
    assert said.endswith("1 measured, 2 not-run; 3 targets met, 2 targets not timed")


def test_the_table_has_a_line_for_operators_together_and_what_is_missed_in_bold() -> None:
    wheel = {"sha256": "0123456789abcdef0"}
    lines = show.markdown(report(MET, MISSED, WRONG, NOT_RUN, wheel=wheel)).splitlines()
    assert lines[2] == (
        "| pointwise forward, 2^28 float32 | 0.508–0.520 ms | **0.99–1.01 × copy (1.00)**, "
        "1.06–1.09 × torch.compile (1.05), 3.01 × eager (2.80) |"
    )
    assert "| **wrong** |" in lines[3]
    assert lines[5].startswith("a card, driver 580.1, torch 2.11.0, wheel `0123456789abcdef…`")
    assert len(lines) == 6, "what was not run is in no line"


def test_the_plot_holds_the_least_of_a_line_against_its_target() -> None:
    made = plot.bars(report(MET, MISSED, WRONG, NOT_RUN))
    assert [round(ratio, 3) for _, ratio, _ in made] == [0.988, 1.013, 1.076]
    assert made[0][2] == "0.99 × copy, at least 1.00"


@pytest.mark.parametrize(
    ("every", "strict", "code"),
    [
        ([MET], True, 0),
        ([MISSED], False, 0),
        ([MISSED], True, 1),
        ([NOT_RUN], False, 0),
        ([NOT_RUN], True, 1),
        ([MET, WRONG], False, 1),
        ([{**WRONG, "result": "failed"}], False, 1),
    ],
)
def test_the_exit_code(every: list[dict[str, Any]], code: int, *, strict: bool) -> None:
    assert command.code(report(*every), strict=strict) == code


def test_a_report_is_shown_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    command.write(report(MET, MISSED), path)
    assert command.main(["--from", str(path)]) == 0
    assert "MISSED" in capsys.readouterr().out
    assert command.main(["--from", str(path), "--markdown", "--strict"]) == 1
    assert capsys.readouterr().out.startswith("| work | time |")
    path.write_text(json.dumps({"version": 1, "benchmark": "gpu_pointwise"}))
    with pytest.raises(SystemExit, match="is no report of version 1"):
        command.main(["--from", str(path)])


def test_the_readme_shows_what_was_measured() -> None:
    """The table between the marks is that of the report on an H200; until there is one, nothing is."""
    readme = (ROOT / "README.md").read_text()
    assert readme.count(BEGIN) == 1
    shown = readme.partition(BEGIN)[2].partition(END)[0].strip()
    if not EVIDENCE.exists():
        assert not shown, f"numbers without {EVIDENCE.name}"
        return
    made = command.read(EVIDENCE)
    assert shown.removesuffix(f"![each target's ratio]({PLOT})").strip() == show.markdown(made)
    assert command.code(made, strict=False) == 0
    assert not made["rehearsal"]
    assert {row["work"] for row in made["rows"]} == set(rows.WORKS)
    assert f"]({PLOT})" not in shown or (ROOT / PLOT).exists()
