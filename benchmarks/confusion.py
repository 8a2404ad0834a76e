"""Runs every gate over the planted faults and their clean twins on a GPU, and writes which gate caught what.

    python confusion.py --wheel faultops-…whl --python "$(command -v python3)" --work WORK --out confusion.json

Needs wheelmill, compute-sanitizer, and an interpreter with torch beside a GPU; `missing_guard` needs two. What was
measured is kept in WORK, so an interrupted run goes on, and the table of what is known so far is written after each
step. Exits with 1 unless every fault is caught on the GPU by the gate meant for it, and every twin passes all of them
on both devices.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "tests" / "projects" / "faultops"
MEANT = """
import json
from faultops.testing import OPERATORS
print(json.dumps({one.name: [one.gate, one.tool] for one in OPERATORS.values() if one.fault}))
"""
COLUMNS = ("ops", "gradcheck", "robust", "memcheck", "racecheck", "initcheck", "synccheck", "bench")
BAD = ("fail", "crash", "hang")


def meant(options: argparse.Namespace) -> dict[str, list[str]]:
    """Each fault with the gate that is meant to catch it, and the tool of that gate, as the wheel's samples say."""
    folder = options.work / "wheel"
    with zipfile.ZipFile(options.wheel) as archive:
        archive.extractall(folder)
    command = [str(options.python), "-c", MEANT]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def test(options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """`wheelmill test` of the copy in WORK; its report so far, which it makes whatever the gates say of the wheel."""
    wheel = options.work / options.wheel.name
    report = wheel.with_name(f"{wheel.name}.gates.json")
    command = [sys.executable, "-m", "wheelmill", "test", str(wheel), "--require-gpu", "--python", str(options.python)]
    command += ["--matrix", str(PROJECT / "matrix.yaml"), "--store", str(options.work / "store"), *more]
    print("+", *command, file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    # 3 is of units that were not run, too, which the table tells one by one.
    if done.returncode not in (0, 1, 3) or not report.exists():
        sys.exit(done.returncode or 1)
    return dict(json.loads(report.read_text()))


def timed(options: argparse.Namespace) -> dict[str, Any]:
    """The report with times, those of `slow` held against what its clean twin takes."""
    accepted = options.work / "accepted.json"
    if not accepted.exists():
        fresh = options.work / "accepted.new"
        test(options, "--gates", "bench", "--operator", "slow_clean", "--accept", str(fresh), "--jobs", "1")
        times = json.loads(fresh.read_text())
        times["operators"]["slow"] = times["operators"]["slow_clean"]
        fresh.write_text(json.dumps(times))
        fresh.replace(accepted)
    return test(options, "--gates", "bench", "--baseline", str(accepted), "--jobs", "1")


def worse(row: dict[str, Any]) -> tuple[int, int]:
    """How much a row says against its operator, then whether it is of the GPU."""
    rank = 3 if row["result"] in BAD else 2 if row["missing"] else 1 if row["result"] == "pass" else 0
    return rank, row["device"] == "cuda"


def table(report: dict[str, Any], faults: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """By fault: the gate meant for it, and what each gate said of it and of its twin.

    Of a fault it is what was said on the GPU; of a twin the worst of its devices.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in report["rows"]:
        found.setdefault((row["operator"], row["tool"] or row["gate"]), []).append(row)

    def cell(name: str, column: str, *, gpu: bool) -> dict[str, Any] | None:
        rows = [row for row in found.get((name, column), []) if not gpu or row["device"] == "cuda"]
        if not rows:
            return None
        row = max(rows, key=worse)
        kept = ("result", "device", "missing", "seconds", "reason", "left_out")
        told = {name: row[name] for name in kept if row[name] or name == "result"}
        return told | ({"reason": textwrap.shorten(told["reason"], 160)} if "reason" in told else {})

    return {
        fault: {
            "meant": tool if gate == "sanitize" else gate,
            "fault": {column: cell(fault, column, gpu=True) for column in COLUMNS},
            "twin": {column: cell(f"{fault}_clean", column, gpu=False) for column in COLUMNS},
        }
        for fault, (gate, tool) in faults.items()
    }


def judged(rows: dict[str, dict[str, Any]]) -> list[str]:
    """What is not as it must be."""
    wrong = []
    for fault, row in rows.items():
        found = row["fault"][row["meant"]]
        if found is None or found["result"] not in BAD:
            said = "never run" if found is None else f"{found['result']} {found.get('reason', '')}".strip()
            wrong.append(f"{fault}: {row['meant']} did not catch it: {said}")
        wrong += [f"{fault}_clean: {name}: {why}" for name, cell in row["twin"].items() if (why := against(cell))]
    return wrong


def against(cell: dict[str, Any] | None) -> str | None:
    """Why a twin did not pass a gate; None where it did, or the gate has no meaning for it."""
    if cell is None:
        return "never run"
    bad = cell["result"] in BAD or cell.get("missing")
    return f"{cell['result']} on {cell['device']}: {cell.get('reason')}" if bad else None


def shown(rows: dict[str, dict[str, Any]]) -> str:
    """A table for people: what each gate said of the fault, in capitals where it was meant to."""
    lines = ["| fault | " + " | ".join(COLUMNS) + " | its twin |", "|---" * (len(COLUMNS) + 2) + "|"]
    for fault, row in rows.items():
        words = [(row["fault"][name] or {"result": "-"})["result"] for name in COLUMNS]
        words = [word.upper() if name == row["meant"] else word for name, word in zip(COLUMNS, words, strict=True)]
        bad = [name for name, cell in row["twin"].items() if against(cell)]
        lines.append(f"| {fault} | " + " | ".join(words) + f" | {' '.join(bad) or 'pass'} |")
    return "\n".join(lines)


def main() -> int:
    """0 where every fault is caught and every twin passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with torch")
    parser.add_argument("--work", type=Path, required=True, help="what was measured is kept there")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", default="8", help="units at a time, where times are not measured")
    options = parser.parse_args()
    options.python = Path(os.path.abspath(options.python))  # noqa: PTH100 - an environment is where its link is
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(options.wheel, options.work)
    faults = meant(options)
    # A hang is one under a sanitizer too: a minute shows it as well as ten.
    limits = ("--timeout", "60", "--sanitize-timeout", "90", "--jobs", options.jobs)
    steps = [
        lambda: test(options, "--gates", "ops,gradcheck,robust,sanitize", *limits),
        lambda: timed(options),
    ]
    for step in steps:
        report = step()
        rows = table(report, faults)
        wrong = judged(rows)
        about = {name: report[name] for name in ("file", "sha256", "environment")}
        beside = options.out.with_name(f"{options.out.name}.new")
        beside.write_text(json.dumps({"version": 1, **about, "wrong": wrong, "faults": rows}, indent=1) + "\n")
        beside.replace(options.out)
    print(shown(rows))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
