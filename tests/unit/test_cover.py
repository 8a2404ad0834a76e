"""Results of cells against what a wheel promises; reports; their tables."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from wheelmill import claims, cover, cover_view, index, proc, smoke, trial

from .test_claims import wheel

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.trial import Result, Subject


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return cover.subject_of(wheel(tmp_path, "1.0+cu130", "torch>=2.11"))


def result(subject: Subject, verdict: trial.Verdict, torch: str = "2.11", unclaimed: str | None = None) -> Result:
    return trial.Result(
        cell=f"cu130-torch{torch}-cp312",
        cuda="cu130",
        torch=torch,
        python="3.12",
        unclaimed=unclaimed,
        result=verdict,
        error=None if verdict == "pass" else f"ImportError: <b>no | {torch}</b>",
        seconds=1.0,
        found={"torch": torch} if verdict == "pass" else None,
        smoke=subject.smoke,
    )


def test_what_broke_promises_is_explained_and_other_failures_are_not(subject: Subject) -> None:
    gone = "ImportError: /x/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEab"
    broken, asked = (replace(result(subject, "fail", unclaimed=one), error=gone) for one in (None, "it takes 2.10"))
    why, remedy = cover.ending([broken])
    assert "built against another torch minor" in why
    assert remedy.startswith("build it against the torch that runs")
    assert cover.ending([asked, result(subject, "fail")]) == ("", "")


def test_a_broken_promise_is_an_error_and_an_unpromised_success_is_none(subject: Subject) -> None:
    results = [
        result(subject, "pass", "2.10", "it does not take torch 2.10"),
        result(subject, "pass"),
        result(subject, "fail", "2.12"),
        result(subject, "fail", "2.15", "it does not take torch 2.15"),
        result(subject, "not-available", "2.13"),
    ]
    made = cover.report(subject, results)
    assert [(f.rule, f.severity) for f in made.findings] == [
        ("unpromised-success", "info"),
        ("promise-not-kept", "error"),
    ]
    assert "cu130-torch2.12-cp312" in made.findings[1].message
    assert "ImportError" in made.findings[1].message
    assert made.verdict == "fail"


def test_nothing_measured_is_not_reported_as_fine(subject: Subject) -> None:
    assert cover.report(subject, [result(subject, "not-available")]).verdict == "unknown"
    assert cover.report(subject, [result(subject, "pass", unclaimed="it does not take it")]).verdict == "unknown"
    assert cover.report(subject, [result(subject, "pass")]).verdict == "pass"


def test_the_proof_is_the_newest_claimed_pass(subject: Subject) -> None:
    passed = [result(subject, "pass", "2.12"), result(subject, "pass"), result(subject, "pass", "2.13", "outside")]
    made = cover.report(subject, passed)
    assert made.proof == {"torch": "2.12", "sha256": subject.file.sha256, "cell": "cu130-torch2.12-cp312"}


def test_an_earlier_report_is_added_to_if_it_is_of_the_same_bytes_and_smoke_call(subject: Subject) -> None:
    earlier = cover.to_json(cover.report(subject, [result(subject, "pass", "2.12"), result(subject, "pass")]))
    now = [result(subject, "not-available", "2.12"), result(subject, "fail")]
    assert {r.cell: r.result for r in cover.merged(subject, earlier, now)} == {
        "cu130-torch2.11-cp312": "fail",
        "cu130-torch2.12-cp312": "pass",
    }
    assert len(cover.merged(subject, {**earlier, "sha256": "0"}, [])) == 0
    other = [{**asdict(result(subject, "pass")), "smoke": "another"}, {"not": "a result"}]
    assert cover.merged(subject, {**earlier, "cells": other}, []) == ()


def test_markdown_escapes_what_a_stranger_says(subject: Subject) -> None:
    made = cover.report(subject, [result(subject, "pass"), result(subject, "fail", "2.12", "outside")])
    text = cover_view.markdown(made)
    assert "| 2.11 + cu130 | pass |" in text
    assert "| 2.12 + cu130 | (fail)<sup>1</sup> |" in text
    assert "1. ImportError: &lt;b>no \\| 2.12&lt;/b>" in text


def test_pages_list_a_wheel_where_it_was_measured_to_work(tmp_path: Path, subject: Subject) -> None:
    path, environments = subject.file.path, ["cu130-torch2.11", "cu130-torch2.12", "cu130-torch2.13"]
    proof = index.Manifest.model_validate(
        {
            "wheel": "demo",
            "sha256": subject.file.sha256,
            "environments": environments,
            "proof": {"sha256": subject.file.sha256},
        }
    )
    file = index.describe(path, proof)
    assert index.measured(file) == file
    results = [result(subject, "pass"), result(subject, "fail", "2.12"), result(subject, "not-available", "2.13")]
    cover.publish(cover.report(subject, results), path)
    measured = index.measured(file)
    assert (measured.environments, measured.proven) == (("cu130-torch2.11",), True)
    cover.publish(cover.report(subject, [result(subject, "fail")]), path)
    assert not index.measured(file).proven


def test_a_report_of_other_bytes_says_nothing_and_a_damaged_one_is_refused(subject: Subject) -> None:
    path = subject.file.path
    beside = path.with_name(path.name + index.COVER)
    beside.write_text('{"version": 1, "sha256": "0", "cells": []}')
    assert index.cover_of(path, subject.file.sha256) is None
    beside.write_text('{"version": 1, "cells": 3}')
    assert cover.subject_of(path).file.sha256 == subject.file.sha256
    with pytest.raises(ValueError, match="cover report cannot be read"):
        index.cover_of(path, subject.file.sha256)


def test_a_process_that_died_says_how_and_where(tmp_path: Path) -> None:
    crashed = proc.ProcessError(["python"], -11, "", tmp_path / "log")
    hung = proc.TimedOutError(["python"], 30.0, "", tmp_path / "log")
    left = proc.ProcessError(["python"], 3, "", tmp_path / "log")
    assert trial._died(crashed, "importing demo") == "the process was killed by SIGSEGV while importing demo"
    assert trial._died(hung, "importing demo") == "it hung while importing demo: nothing for 30 s"
    assert trial._died(left, "importing demo") == "the process ended with status 3 while importing demo"
    assert trial._died(None, "importing demo") == "the process ended with status 0 while importing demo"


def test_errors_read_the_same_wherever_they_are_met(tmp_path: Path) -> None:
    said = f"{tmp_path}/env/lib/python3.12/site-packages/demo/_C.so: undefined symbol: x; {tmp_path}/job.json"
    assert trial._placeless(said, tmp_path) == "demo/_C.so: undefined symbol: x; job.json"


def test_what_is_asked_is_part_of_a_results_key(subject: Subject, known: object) -> None:
    (place,) = claims.places(subject.claim, known, ["2.11"], ["3.12"], own="3.12")
    other = cover.subject_of(subject.file.path, namespace="demo")
    assert trial.key(subject, place) != trial.key(other, place)


def test_cuda_that_a_machine_lends_is_told_from_torchs_and_from_the_driver() -> None:
    def line(path: str) -> str:
        return f"7f0000000000-7f0000001000 r-xp 00000000 fe:00 12345                      {path}"

    own = "/work/env/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13"
    lent = ["/usr/local/cuda-13.0/lib/libcudart.so.13", "/usr/lib/libcublasLt.so.12.8.4"]
    maps = "\n".join([*map(line, [own, *lent, "/usr/lib/libcuda.so.1", "[heap]"]), "7f00-7f01 rw-p 0 00:00 0"])
    assert smoke.borrowed(maps, "/work/env") == sorted(lent)


def test_the_disk_that_a_run_takes_is_said_in_advance(subject: Subject, known: object) -> None:
    places = claims.places(subject.claim, known, ["2.13", "2.14"], ["3.11", "3.12"], own="3.12")
    kept = cover.estimate(places, 20_000_000_000, lean=False)
    assert "4 environments of 2 torch releases" in kept
    assert "At most 16 GB are taken at once, kept in that cache; 20 GB are free" in kept
    assert "At most 11 GB are taken at once; 20 GB are free" in cover.estimate(places, 20_000_000_000, lean=True)
