"""The gate `sanitize`: an operator's samples under compute-sanitizer, and its reports told back to operator and sample.

`calls` is what runs under the tool; it prints a marker before each sample. `judge` reads what came out, without torch.
A report is the operator's unless the innermost library of its host frames, CUDA's own aside, is torch's or NVIDIA's;
without such frames, unless its kernel is torch's own by its name.
"""

from __future__ import annotations

import contextlib
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
# Its own 100 are soon full of what torch holds at the end, and the rest, the operator's too, would not be printed.
LIMIT = 2000
OPTIONS = ("--target-processes", "all", "--print-limit", str(LIMIT))
PORTS = 10  # that the tool tries unless it is told of more; each that runs takes one
LINE = re.compile(r"^=========(?P<text> .*|)$")
# At the first level, what is no report: the head, summaries, and what the tool or the program came to.
OF_TOOL = r"(?!Race reported|Potential|\()"
NO_REPORT = re.compile(
    r"(COMPUTE-SANITIZER|(ERROR|LEAK|RACECHECK|SYNCCHECK) SUMMARY|Target application|Attached|Detached|This tool|"
    rf"\d+ (similar|more) |Internal |(?i:error|warning|info): {OF_TOOL})"
)
FAILED = re.compile(rf"^=========  ?((?i:error): {OF_TOOL}.*|Internal Sanitizer Error.*)$", re.MULTILINE)
WARNED = re.compile(rf"^=========  ?((?i:warning): {OF_TOOL}.*|Internal Sanitizer Warning.*)$", re.MULTILINE)
# What names code: `NAME+0x70`, `NAME:0x70`, and of older tools `0x70 in FILE:LINE:NAME`.
NAMED = (
    re.compile(r"^.*\bat (?P<name>\S.*?)(?:\+|(?<=\)):)0x[0-9a-fA-F]+"),
    re.compile(r"^.*\bat 0x[0-9a-fA-F]+ in (?:\S*?:\d+:)?(?P<name>.+)$"),
)
INSIDE = re.compile(r"^Device Frame: ?(?P<name>\S.*?)\+0x[0-9a-fA-F]+")
HOST = "Saved host backtrace"
LIBRARY = re.compile(r"(?:\bin |Host Frame: ?)(\S*?\.so\b[\w.]*)")
CUDAS = re.compile(r"lib(cuda|cudart|cupti|sanitizer[-\w]*|c|pthread|dl)[-.]")
OTHERS = re.compile(r"lib(torch|c10|cu(blas|dnn|fft|file|rand|solver|sparse)|nv|nccl|triton)")
TORCHS = re.compile(r"(^|[\s<(])(at|c10|torch|at_cuda_detail|caffe2|cub|thrust|cutlass)::")
LEAK = re.compile(r"^Leaked [\d,]+ bytes")
ALLOCATOR = "CUDACachingAllocator"
SUMMARY = re.compile(
    r"(?:ERROR SUMMARY: (\d+) errors?\b(?! were| was)|RACECHECK SUMMARY: (\d+) hazards?\b(?! were| was))"
)
UNPRINTED = re.compile(r"SUMMARY: (\d+) \w+ (?:were|was) not printed")


@dataclass(frozen=True, kw_only=True)
class Report:
    """One report of the tool: its first line, its kernel if it names one, what else it says, and the sample."""

    head: str
    kernel: str | None
    body: str
    sample: str


def calls(unit: Unit) -> None:
    """Call the operator on every sample, one after another, then take the device's context down for the leak check.

    The memory of samples and results is given back by hand: the tool may hold the Python frames that it has seen, and
    with them their tensors, which would then be leaks.
    """
    import ctypes
    import gc
    import time

    from gates_runner import GateFault, sibling

    torch, values = unit.torch, sibling("gates_values")
    smooth = getattr(unit.operator, "differentiable", True) and not any(values.written(unit.operator))
    count, held = 0, []
    for dtype in unit.dtypes:
        for name, sample in unit.drawn(dtype):
            unit.at(f"calling it on {dtype}, {name}")
            torch.cuda.synchronize()
            time.sleep(PAUSE)
            print(f"\n{MARK}{dtype}, {name}", flush=True)
            held += [sample.args, unit.operator.op(*sample.args)]
            torch.cuda.synchronize()
            if smooth and dtype == unit.dtype and any(map(values.differentiable, values.tensors(torch, sample.args))):
                held += _backward(torch, values, unit.operator, sample)
            count += 1
    if not count:
        raise GateFault(f"the samples' module gives none for {unit.device}")
    unit.found["calls"] = count
    time.sleep(PAUSE)
    print(f"\n{MARK}after the last sample", flush=True)
    give_back(torch, values.tensors(torch, held))
    held.clear()
    sample = None
    gc.collect()
    torch.cuda.synchronize()
    ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)


def _backward(torch: Any, values: Any, operator: Any, sample: Any) -> list[Any]:
    """Every tensor that was made for it."""
    args = values.requiring_grad(torch, sample.args)
    outputs = [one for one in values.tensors(torch, operator.op(*args)) if one.requires_grad]
    inputs = [one for one in values.tensors(torch, args) if one.requires_grad]
    if not outputs:
        return []
    ones = [torch.ones_like(one) for one in outputs]
    got = torch.autograd.grad(outputs, inputs, ones, allow_unused=True)
    torch.cuda.synchronize()
    return [outputs, ones, got]


def give_back(torch: Any, every: list[Any]) -> None:
    """Free the memory of tensors, whoever holds them still."""
    with torch.no_grad():
        for one in every:
            with contextlib.suppress(RuntimeError, NotImplementedError):  # of memory that is not torch's, or of none
                one.untyped_storage().resize_(0)


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
    """The kernel of a report: the outermost device frame, else the first name with an offset into code."""
    device = body.partition(HOST)[0].splitlines()
    inside = [found["name"] for line in device if (found := INSIDE.match(line))]
    named = (found["name"] for line in device for one in NAMED if (found := one.match(line)))
    name = inside[-1] if inside else next(named, None)
    return name.strip() if name else None


def owner(body: str) -> str | None:
    """The library whose code launched or called, by the innermost host frame that is not CUDA's own."""
    found = (Path(name).name for name in LIBRARY.findall(body.partition(HOST)[2]))
    return next((name for name in found if not CUDAS.match(name)), None)


def belongs(report: Report, libraries: list[str]) -> bool:
    """Whether a report is of the wheel's code and not of torch's."""
    if LEAK.match(report.head) and ALLOCATOR in report.body:
        return False  # a tensor, which torch still holds at the end; `robust` counts those that calls leave behind
    library = owner(report.body)
    if library in libraries:
        return True
    if library is not None and OTHERS.match(library):
        return False
    if report.kernel is not None:
        return TORCHS.search(report.kernel) is None
    # What torch itself asks for may be refused, and be no fault.
    return library is None and not report.head.startswith("Program hit")


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
    accepted = [job["suppressions"][number]["reason"] for number in sorted(used)]
    left += [f"reports that a suppression accepts: {reason}" for reason in accepted]
    left += [f"{tool} warns: {warning}" for warning in dict.fromkeys(WARNED.findall(text))]
    row = {**row, "found": found, "left_out": left}
    if own:
        more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
        return {**row, "result": "fail", "reason": f"{tool}: {_told(own[0])}{more}"}
    if row["result"] != "pass":
        return {**row, "reason": f"{tool}: {row['reason']}"}
    said = [int(number) for pair in SUMMARY.findall(text) for number in pair if number]
    failed = FAILED.search(text)
    if failed or not said:
        lines = [line for line in text.splitlines() if line.strip()]
        last = failed[1] if failed else (lines or ["it printed nothing"])[-1]
        return _not_run(row, f"{tool} itself did not finish: {last[:200]}")
    if unprinted := sum(map(int, UNPRINTED.findall(text))):
        return _not_run(row, f"{tool} left {unprinted} reports out, beyond {LIMIT}, which may be the operator's")
    if max(said) and not every:
        return {**row, "result": "fail", "reason": f"{tool} counts {max(said)} errors, in words unknown to this gate"}
    return row


def _not_run(row: dict[str, Any], reason: str) -> dict[str, Any]:
    return {**row, "result": "not-run", "missing": True, "reason": reason}


def _told(report: Report) -> str:
    kernel = f" in {report.kernel}" if report.kernel and report.kernel not in report.head else ""
    # What leaks is known only once all is over.
    where = "" if LEAK.match(report.head) else f", on {report.sample}"
    return f"{report.head}{kernel}{where}"
