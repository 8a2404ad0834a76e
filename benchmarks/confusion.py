"""Runs every gate over the planted faults and their clean twins on a GPU, and writes which gate caught what.

    python confusion.py --wheel faultops-…whl --python "$(command -v python3)" --work WORK --out confusion.json

Needs wheelmill, and an interpreter with torch beside a GPU; `missing_guard` needs two. What was measured is kept in
WORK, so an interrupted run goes on. Exits with 1 unless every fault is caught by the gate meant for it and every twin
passes all of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
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
    return dict(json.loads(done.stdout))


def test(options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """`wheelmill test` of the copy in WORK; its report so far."""
    wheel = options.work / options.wheel.name
    command = [sys.executable, "-m", "wheelmill", "test", str(wheel), "--require-gpu", "--python", str(options.python)]
    command += ["--matrix", str(PROJECT / "matrix.yaml"), "--store", str(options.work / "store"), "--json", *more]
    print("+", *command, file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    return dict(json.loads(done.stdout))


def timed(options: argparse.Namespace) -> dict[str, Any]:
    """The report with times, those of `slow` held against what its clean twin takes."""
    accepted = options.work / "accepted.json"
    if not accepted.exists():
        test(options, "--gates", "bench", "--operator", "slow_clean", "--accept", str(accepted), "--jobs", "1")
        times = json.loads(accepted.read_text())
        times["operators"]["slow"] = times["operators"]["slow_clean"]
        accepted.write_text(json.dumps(times))
    return test(options, "--gates", "bench", "--baseline", str(accepted), "--jobs", "1")


def table(report: dict[str, Any], faults: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """By fault: the gate meant for it, and what each gate said of it and of its twin, the worst of its devices."""
    said: dict[str, dict[str, Any]] = {}
    for row in report["rows"]:
        cells = said.setdefault(row["operator"], {})
        column, known = row["tool"] or row["gate"], cells.get(row["tool"] or row["gate"])
        if known is None or row["result"] in BAD or (known["result"] == "not-run" and row["result"] != "not-run"):
            reasons = {"reason": row["reason"]} if row["reason"] else {}
            left = {"left_out": row["left_out"]} if row["left_out"] else {}
            cells[column] = {"result": row["result"], "device": row["device"], **reasons, **left}
    return {
        fault: {
            "meant": tool if gate == "sanitize" else gate,
            "fault": {name: said.get(fault, {}).get(name) for name in COLUMNS},
            "twin": {name: said.get(f"{fault}_clean", {}).get(name) for name in COLUMNS},
        }
        for fault, (gate, tool) in faults.items()
    }


def judged(rows: dict[str, dict[str, Any]]) -> list[str]:
    """What is not as it must be."""
    wrong = []
    for fault, row in rows.items():
        found = row["fault"][row["meant"]]
        if found is None or found["result"] not in BAD:
            wrong.append(f"{fault}: {row['meant']} did not catch it: {found and found['result']}")
        for name, cell in row["twin"].items():
            if cell is None or cell["result"] in BAD:
                wrong.append(f"{fault}_clean: {name}: {'never run' if cell is None else cell.get('reason')}")
    return wrong


def shown(rows: dict[str, dict[str, Any]]) -> str:
    """A table for people: what each gate said of the fault, in capitals where it was meant to."""
    lines = ["| fault | " + " | ".join(COLUMNS) + " | its twin |", "|---" * (len(COLUMNS) + 2) + "|"]
    for fault, row in rows.items():
        words = [(row["fault"][name] or {"result": "-"})["result"] for name in COLUMNS]
        words = [word.upper() if name == row["meant"] else word for name, word in zip(COLUMNS, words, strict=True)]
        bad = [name for name, cell in row["twin"].items() if cell is None or cell["result"] in BAD]
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
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    shutil.copy2(options.wheel, options.work)
    # A hang is one under a sanitizer too: a minute shows it as well as ten.
    limits = ("--timeout", "60", "--sanitize-timeout", "90", "--jobs", options.jobs)
    test(options, "--gates", "ops,gradcheck,robust,sanitize", *limits)
    report = timed(options)
    rows = table(report, meant(options))
    wrong = judged(rows)
    about = {name: report[name] for name in ("file", "sha256", "environment")}
    options.out.write_text(json.dumps({"version": 1, **about, "wrong": wrong, "faults": rows}, indent=1) + "\n")
    print(shown(rows))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
