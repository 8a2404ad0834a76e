"""Measures the installed fusedops beside torch and a copy, each row checked against float64 in the same run.

    python -m benchmarks.operators --out report.json [--wheel WHEEL] [--only matmul] [--plot times.svg]
    python -m benchmarks.operators --from report.json [--plot times.svg] [--markdown]
    python -m benchmarks.operators --from report.json --profile why.json
    python -m benchmarks.operators --rehearse

From the repository's root. On a machine without a GPU the rows of the CPU alone. The report is written after each row.
A rehearsal makes every row tiny, on the CPU where there is no GPU: its times say nothing, and that it runs says much.
Exits with 1 where a result is wrong or a call fails; with --strict also where a target is missed or was not measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import plot, profile, show
from .rows import WORKS, Row, begun, every, judged, rehearsed

VERSION = 1
REHEARSED = 0.05  # seconds of timing a row
BENCHMARK = "operators"


def prepared(row: Row) -> Any:
    """The row made ready. It imports torch."""
    from . import pointwise, products, vision

    ready = {
        "forward": pointwise.forward,
        "backward": pointwise.backward,
        "small": pointwise.small,
        "cpu": pointwise.cpu,
        "nms": vision.nms,
        "edge": vision.edge,
        "attention": products.attention,
        "matmul": products.matmul,
    }
    return ready[row.work](row.operator, row.how, row.device)


def hindrance(row: Row) -> str | None:
    """Why a row cannot be run here, if so."""
    import torch

    import fusedops

    if not hasattr(fusedops, row.operator):
        return f"the installed fusedops has no {row.operator}"
    if row.device == "cuda" and not torch.cuda.is_available():
        return "torch finds no CUDA device"
    return None


def measured(row: Row, seed: int, seconds: float) -> dict[str, Any]:
    """The row of the report: checked, and then timed for about so many seconds."""
    import torch

    from .measure import Wrong, timed

    told = begun(row)
    if (why := hindrance(row)) is not None:
        return {**told, "reason": why}
    threads = torch.get_num_threads()
    gc.collect()  # what the row before held
    torch.manual_seed(seed)
    torch._dynamo.reset()  # noqa: SLF001 - what other rows compiled counts towards its limits
    try:
        work = prepared(row)
        told.update(shrunk=work.shrunk, amounts=work.amounts, amount=work.amount, left_out=work.left_out)
        told["check"] = work.check()
        told["unit"], told["times"] = timed(work, row.device, seconds)
        told["targets"] = judged(row.targets, told["times"], work.amounts)
        told["result"] = "measured"
    except Wrong as error:
        told.update(result="wrong", reason=str(error))
    except Exception as error:  # noqa: BLE001 - whatever an operator raises is the row's result
        told.update(result="failed", reason=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
    finally:
        torch.set_num_threads(threads)
    if told["result"] != "measured":
        told.update(times={}, unit=None)
    return told


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every row that was asked for, and write what is known after each."""
    from . import machine

    seconds = REHEARSED if options.rehearse else options.seconds
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    rows = [row for row in every() if not options.only or row.work in options.only]
    if options.rehearse:
        rows = [rehearsed(row, "cuda" if machine.gpu() else "cpu") for row in rows]
    report: dict[str, Any] = {
        "version": VERSION,
        "benchmark": BENCHMARK,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.described(),
        "clocks": {"before": machine.clocks()},
        "wheel": machine.wheel(options.wheel) if options.wheel else None,
        "seed": seed,
        "rehearsal": options.rehearse,
        "rows": [begun(row) for row in rows],
    }
    for place, row in enumerate(rows):
        told = report["rows"][place] = measured(row, seed + place, seconds)
        report["clocks"]["after"] = machine.clocks()
        if told["result"] != "not-run":
            print(f"[{place + 1}/{len(rows)}] {show.row_text(told)}", file=sys.stderr, flush=True)
        if options.out:
            write(report, options.out)
    return report


def write(report: dict[str, Any], path: Path) -> None:
    """Write JSON whole or not at all."""
    beside = path.with_name(f"{path.name}.unfinished")
    beside.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def read(path: Path) -> dict[str, Any]:
    """A report that this wrote; exits where it is none."""
    report = json.loads(path.read_text(encoding="utf-8"))
    if (report.get("benchmark"), report.get("version")) != (BENCHMARK, VERSION):
        raise SystemExit(f"{path} is no report of version {VERSION} of this benchmark")
    return dict(report)


def code(report: dict[str, Any], *, strict: bool) -> int:
    """1 where something is wrong, or where with `strict` a target is not known to be met."""
    rows = report["rows"]
    unmet = any(not target["met"] for row in rows for target in row["targets"])
    return int(any(row["result"] in ("wrong", "failed") for row in rows) or (strict and unmet))


def main(argv: list[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the JSON report goes")
    parser.add_argument("--wheel", type=Path, help="the installed wheel's file, for its SHA-256")
    parser.add_argument("--only", action="append", choices=WORKS, help="these rows alone; may be given more than once")
    parser.add_argument("--seed", type=int, help="of the inputs; default: a new one each time, which the report tells")
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing a row, about; default: 3")
    parser.add_argument("--rehearse", action="store_true", help="every row at a tiny size, to see that it runs")
    parser.add_argument("--from", dest="source", type=Path, help="a report of before, in place of measuring")
    parser.add_argument("--plot", type=Path, help="draw it as an SVG, with matplotlib")
    parser.add_argument("--profile", type=Path, help="write what ncu counts of the rows that missed a target")
    parser.add_argument("--profiled", nargs=2, help=argparse.SUPPRESS)  # the child that ncu looks at
    parser.add_argument("--markdown", action="store_true", help="print the documentation's table")
    parser.add_argument("--strict", action="store_true", help="exit with 1 also where a target is not met")
    options = parser.parse_args(argv)
    if options.profiled:
        profile.call_once(*options.profiled)
        return 0
    report = read(options.source) if options.source else run(options)
    if options.plot:
        try:
            plot.write(report, options.plot)
        except ImportError:
            print("no plot: matplotlib is not installed (pip install matplotlib)", file=sys.stderr)
    if options.profile:
        for known in profile.profiled(report):
            write(known, options.profile)
    print(show.markdown(report) if options.markdown else show.text(report))
    return code(report, strict=options.strict)


if __name__ == "__main__":
    sys.exit(main())
