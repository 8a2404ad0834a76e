"""The gate `sanitize`: an operator's samples under compute-sanitizer, and its reports told back to operator and sample.

`calls` is what runs under the tool; it prints a marker before each sample. `judge` reads what came out, without torch.
A report is the operator's unless its kernel is torch's own, or, where no kernel is named, no library of the wheel is
among the callers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gates_runner import Unit

MARK = "@sample "
# The tool prints from a process of its own; this lets it before the next marker.
PAUSE = 0.01
LINE = re.compile(r"^=========(?P<text> .*|)$")
# At the first level, what is no report: the head, summaries, and what the program itself was told.
NO_REPORT = re.compile(
    r"(COMPUTE-SANITIZER|ERROR SUMMARY|LEAK SUMMARY|RACECHECK SUMMARY|SYNCCHECK SUMMARY|Target application|"
    r"Attached|Detached|This tool|\d+ (similar|more) |Internal|Warning: |"
    r"Error: (No attachable|Target|Failed))"
)
FAILED = re.compile(r"(Internal Sanitizer Error|Target application terminated|Error: (No attachable|Target|Failed))")
KERNEL = re.compile(
    r"\b(?:at|in|access (?:at|by .*?in)) (?:0x[0-9a-fA-F]+ in )?(?P<name>[^\n]*?\))(?:\+0x[0-9a-fA-F]+|$)"
)
PLAIN = re.compile(r"\b(?:at|in) (?:0x[0-9a-fA-F]+ in )?(?P<name>[A-Za-z_][\w:<>, ]*?)\+0x[0-9a-fA-F]+")
TORCHS = re.compile(r"(^|[\s<(])(at|c10|torch|at_cuda_detail|caffe2|cub|thrust|cutlass)::")
LEAK = re.compile(r"^Leaked [\d,]+ bytes")
ALLOCATOR = "CUDACachingAllocator"
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


@dataclass(frozen=True, kw_only=True)
class Report:
    """One report of the tool: its first line, its kernel if it names one, what else it says, and the sample."""

    head: str
    kernel: str | None
    body: str
    sample: str


def calls(unit: Unit) -> None:
    """Call the operator on every sample, one after another, then take the device's context down for the leak check."""
    import ctypes
    import gc
    import time

    from gates_runner import sibling

    torch, values = unit.torch, sibling("gates_values")
    count, smooth = 0, getattr(unit.operator, "differentiable", True) and not any(values.written(unit.operator))
    for dtype in unit.dtypes:
        for name, sample in unit.drawn(dtype):
            unit.at(f"calling it on {dtype}, {name}")
            torch.cuda.synchronize()
            time.sleep(PAUSE)
            print(f"\n{MARK}{dtype}, {name}", flush=True)
            result = unit.operator.op(*sample.args)
            torch.cuda.synchronize()
            if (
                smooth
                and dtype == torch.float32
                and any(map(values.differentiable, values.tensors(torch, sample.args)))
            ):
                _backward(torch, values, unit.operator, sample)
            del result
            count += 1
    unit.found["calls"] = count
    time.sleep(PAUSE)
    print(f"\n{MARK}after the last sample", flush=True)
    sample = None
    gc.collect()
    torch.cuda.synchronize()
    ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)


def _backward(torch: Any, values: Any, operator: Any, sample: Any) -> None:
    args = values.requiring_grad(torch, sample.args)
    outputs = [one for one in values.tensors(torch, operator.op(*args)) if one.requires_grad]
    inputs = [one for one in values.tensors(torch, args) if one.requires_grad]
    if outputs:
        torch.autograd.grad(outputs, inputs, [torch.ones_like(one) for one in outputs], allow_unused=True)
        torch.cuda.synchronize()


def reports(text: str) -> Iterator[Report]:
    """Every report of a log, in order."""
    sample = "before the first sample"
    block: list[str] = []

    def flush() -> Iterator[Report]:
        if block and not NO_REPORT.match(block[0]):
            body = "\n".join(block)
            yield Report(head=block[0], kernel=_kernel(body), body=body, sample=sample)
        block.clear()

    for line in text.splitlines():
        found = LINE.match(line.rstrip())
        if found is None:
            if line.startswith(MARK):
                yield from flush()
                sample = line.removeprefix(MARK)
            continue
        said = found["text"]
        if not said.strip():
            yield from flush()
        elif said.startswith("  "):
            block.append(said.strip())
        else:
            yield from flush()
            block.append(said.strip())
    yield from flush()


def _kernel(body: str) -> str | None:
    """The kernel of a report: the first name with an offset into code, before the host's frames."""
    device = body.partition("Saved host backtrace")[0]
    found = KERNEL.search(device) or PLAIN.search(device)
    return found["name"].strip() if found else None


def belongs(report: Report, libraries: list[str]) -> bool:
    """Whether a report is of the wheel's code and not of torch's."""
    if report.kernel is not None:
        return TORCHS.search(report.kernel) is None
    if LEAK.match(report.head) and ALLOCATOR in report.body:
        return False  # a tensor, which torch still holds at the end; `robust` counts those that calls leave behind
    frames = [line for line in report.body.splitlines() if "Host Frame" in line]
    if report.head.startswith("Program hit") and not frames:
        return False  # what torch itself asks for may be refused, and be no fault
    return not frames or any(Path(name).name in line for name in libraries for line in frames)


def matches(row: dict[str, Any], tool: str, report: Report) -> bool:
    """Whether a suppression is of this report: tool, and globs on the kernel and on the whole text."""
    return (
        row["tool"] in (None, tool)
        and (row["kernel"] is None or fnmatchcase(report.kernel or "", row["kernel"]))
        and (row["message"] is None or fnmatchcase(report.body, row["message"]))
    )


def judge(tool: str, text: str, job: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """The row of a run under a tool: what the tool reported decides, then what became of the process."""
    every = list(reports(text))
    used: set[int] = set()
    own: list[Report] = []
    foreign: list[Report] = []
    for report in every:
        hit = [number for number, one in enumerate(job["suppressions"]) if matches(one, tool, report)]
        used.update(hit)
        if not hit:
            (own if belongs(report, job["libraries"]) else foreign).append(report)
    found = {**row["found"], "reports": len(own), "suppressed": sorted(used)}
    left = list(row["left_out"])
    if foreign:
        left.append(f"{len(foreign)} reports of code that is not the wheel's, the first: {_told(foreign[0])}")
    row = {**row, "found": found, "left_out": left}
    if own:
        more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
        return {**row, "result": "fail", "reason": f"{tool}: {_told(own[0])}{more}"}
    if row["result"] != "pass":
        return {**row, "reason": f"{tool}: {row['reason']}"}
    said = [int(number) for pair in SUMMARY.findall(text) for number in pair if number]
    if not said or FAILED.search(text):
        lines = [line for line in text.splitlines() if line.strip()]
        last = lines[-1][:200] if lines else "it printed nothing"
        return {**row, "result": "not-run", "missing": True, "reason": f"{tool} itself did not finish: {last}"}
    if max(said) and not every:
        return {**row, "result": "fail", "reason": f"{tool} counts {max(said)} errors, in words unknown to this gate"}
    return row


def _told(report: Report) -> str:
    kernel = f" in {report.kernel}" if report.kernel and report.kernel not in report.head else ""
    # What leaks is known only once all is over.
    where = "" if LEAK.match(report.head) else f", on {report.sample}"
    return f"{report.head}{kernel}{where}"
