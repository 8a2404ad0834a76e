"""The gate `pytest`: the project's own tests against the installed wheel, from an empty folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gates_runner import LOADING, GateFault, check_place

if TYPE_CHECKING:
    from gates_runner import Unit

ALL_PASSED = 0


class _Counts:
    """Counts outcomes, and tells which test is on, so that a crash has a name."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.unit.at(f"running {nodeid}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] = self.counts.get(report.outcome, 0) + 1
            if report.failed:
                self.failed.append(report.nodeid)


def project_tests(unit: Unit) -> None:
    """Run them without what lies above them, which may put their project's source tree on the path."""
    unit.at(LOADING)
    import pytest

    tests = Path(unit.job["tests"])
    empty = Path("pytest.ini")
    empty.write_text("[pytest]\n")
    counting = _Counts(unit)
    unit.at("collecting tests")
    status = pytest.main(
        [
            *("-q", str(tests), "-p", "no:cacheprovider", "--import-mode=importlib"),
            *("-c", str(empty), "--rootdir", str(tests), "--confcutdir", str(tests), "-o", "addopts="),
        ],
        plugins=[counting],
    )
    unit.at("looking at what was tested")
    check_place(unit.job)
    unit.found.update(counting.counts)
    if skipped := counting.counts["skipped"]:
        unit.leave_out(f"{skipped} tests were skipped")
    if counting.failed:
        raise GateFault(f"{len(counting.failed)} of {sum(counting.counts.values())} failed, first {counting.failed[0]}")
    if int(status) != ALL_PASSED or not counting.counts["passed"]:
        raise GateFault(f"pytest ended with status {int(status)}, and {counting.counts['passed']} tests passed")
