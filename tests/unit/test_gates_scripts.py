"""What the scripts beside the wheel decide without torch: GPUs, units, deaths, the sanitizer's words, times."""

from __future__ import annotations

import json
import os
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import gates_driver, gates_gpu, gates_runner, gates_sanitize

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = gates_runner.sibling("gates_process")
CARD = {"name": "a card", "capability": [9, 0], "memory": 1}
TOLD: dict[str, Any] = {"torch_cuda": "13.0", "driver": 13000, "cards": [CARD], "error": None}
NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"
TARGETS = {"sass": ["80", "90"], "ptx": ["90"]}


def test_a_gpu_that_can_be_used() -> None:
    assert gates_gpu.judge(TOLD, TARGETS, None)["usable"]
    assert gates_gpu.judge(TOLD, None, None)["usable"]


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"torch_cuda": None, "driver": None}, "torch-cpu", "without CUDA"),
        ({"driver": None}, "no-driver", r"libcuda\.so\.1"),
        ({"driver": 12080}, "driver-old", r"serves CUDA 12\.8, and torch is of CUDA 13\.0"),
        ({"cards": []}, "no-device", "it shows none"),
        ({"error": "no such device"}, "no-device", "no such device"),
        ({"cards": [{**CARD, "capability": [7, 5]}]}, "card-old", r"7\.5, and the wheel holds code for 80, 90, 90 as"),
        ({"cards": [{**CARD, "capability": [7, 0]}], "error": NO_IMAGE}, "card-old", r"7\.0, and the wheel holds code"),
        ({"error": NO_IMAGE}, "card-old", r"compute capability 9\.0, for which the torch here holds no code"),
    ],
)
def test_each_reason_why_a_gpu_cannot_be_used_is_told_apart(change: dict[str, Any], kind: str, words: str) -> None:
    found = gates_gpu.judge({**TOLD, **change}, TARGETS, None)
    assert (found["usable"], found["kind"]) == (False, kind)
    assert found["remedy"]
    assert __import__("re").search(words, found["reason"])


def test_an_executor_that_gives_no_gpu_says_so_first() -> None:
    found = gates_gpu.judge({**TOLD, "driver": None}, None, {"kind": "no-runtime", "reason": "r", "remedy": "m"})
    assert (found["kind"], found["reason"]) == ("no-runtime", "r")


@pytest.mark.parametrize(
    ("capability", "sass", "ptx", "runs"),
    [
        ((9, 0), ["90"], [], True),
        ((9, 0), ["80"], [], False),
        ((8, 9), ["80"], [], True),
        ((8, 0), ["86"], [], False),
        ((9, 0), ["90a"], [], True),
        ((9, 1), ["90a"], [], False),
        ((10, 3), ["100f"], [], True),
        ((11, 0), ["100f"], [], False),
        ((12, 0), ["80"], ["80"], True),
        ((7, 5), ["80"], ["80"], False),
        ((10, 0), [], ["90a"], False),
    ],
)
def test_which_cards_run_which_code(capability: Any, sass: list[str], ptx: list[str], *, runs: bool) -> None:
    assert gates_gpu.runs_on(capability, {"sass": sass, "ptx": ptx}) is runs


def job(**more: Any) -> dict[str, Any]:
    made = {"gates": ["ops"], "operators": [], "devices": ["cpu", "cuda"], "wheel_devices": ["cpu", "cuda"]}
    return {**made, "samples": "demo.testing", "tests": None, "sanitizer": "/nowhere/compute-sanitizer", **more}


def test_every_unit_of_a_job() -> None:
    made = list(gates_driver.units(job(gates=["ops", "sanitize", "pytest"]), {"one": {}}))
    tools = [f"sanitize/one/cuda/{tool}" for tool in ("memcheck", "racecheck", "initcheck", "synccheck")]
    assert made == ["ops/one/cpu", "ops/one/cuda", *tools, "pytest/-/all"]
    assert list(gates_driver.units(job(operators=["two"]), {"one": {}, "two": {}})) == ["ops/two/cpu", "ops/two/cuda"]


def skipped(text: str, *, usable: bool = True, job_of: dict[str, Any] | None = None, **operator: Any) -> Any:
    described = {"sampled": True, "differentiable": True, "devices": ["cpu", "cuda"], **operator}
    found = {"operators": {"one": described}, "gpu": {"usable": usable, "reason": "no GPU"}}
    run: Any = SimpleNamespace(job=job_of or job())
    row = gates_driver.skipped(run, text, found)
    return row and (row["result"], row["missing"])


def test_what_is_not_run_and_whether_something_is_missing_for_it() -> None:
    assert skipped("ops/one/cpu") is None
    assert skipped("ops/one/cuda") is None
    assert skipped("ops/one/cpu", sampled=False) == ("fail", False)
    assert skipped("gradcheck/one/cpu", sampled=False) == ("not-run", True)
    assert skipped("gradcheck/one/cpu", differentiable=False) == ("not-run", False)
    assert skipped("ops/one/cuda", usable=False) == ("not-run", True)
    assert skipped("ops/one/cpu", usable=False) is None
    assert skipped("ops/one/cpu", devices=["cuda"]) == ("not-run", False)
    assert skipped("ops/one/cpu", devices=[]) is None
    on_cpu = job(devices=["cpu"])
    assert skipped("ops/one/cuda", job_of=on_cpu) == ("not-run", True)
    assert skipped("bench/one/cuda", job_of={**on_cpu, "wheel_devices": ["cpu"]}) == ("not-run", False)
    assert skipped("sanitize/one/cuda/memcheck") == ("not-run", True)
    assert skipped("pytest/-/all") == ("not-run", True)
    assert skipped("pytest/-/all", job_of=job(tests="tests")) is None


def test_a_process_that_died_is_told_by_how_and_at_what() -> None:
    at = {"at": "computing"}
    assert PROCESS.ended(at, -6, None)["reason"] == "killed by SIGABRT while computing"
    assert PROCESS.ended(at, 3, None)["reason"] == "the process ended with status 3 while computing"
    assert PROCESS.ended(at, -15, 30.0)["result"] == "hang"
    assert PROCESS.ended({"at": "the end", "result": "pass", "reason": None}, 0, None)["result"] == "pass"


@pytest.mark.parametrize("at", ["starting", "importing torch", "starting the GPU"])
def test_what_dies_before_the_operator_is_called_is_no_fault_of_it(at: str) -> None:
    for status, hung in ((-9, None), (1, None), (-15, 300.0)):
        row = PROCESS.ended({"at": at}, status, hung)
        assert (row["result"], row["missing"]) == ("not-run", True)
        assert at in row["reason"]
    assert PROCESS.ended({"at": "importing the wheel's modules"}, -11, None)["result"] == "crash"
    assert "signal 50" in PROCESS.ended({"at": "computing"}, -50, None)["reason"], "it has no name"


def test_what_would_steer_a_unit_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steering = ("CUDA_LAUNCH_BLOCKING", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "PYTEST_ADDOPTS")
    for name in (*steering, "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_ALLOC_CONF", "PYTHONOPTIMIZE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    run: Any = SimpleNamespace(job={"paths": ["/there"], "jobs": 4}, out=tmp_path)
    env = PROCESS.environment(run, "robust")
    assert not [name for name in env if name in steering or name.startswith("PYTORCH_") or name == "PYTHONOPTIMIZE"]
    assert env["CUDA_VISIBLE_DEVICES"] == "1"
    assert PROCESS.environment(run, "sanitize")["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"


def test_units_side_by_side_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread nothing that an operator does in parallel would be tried."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(16))
    threads = {}
    for jobs in (1, 4, 12, 40):
        run: Any = SimpleNamespace(job={"paths": [], "jobs": jobs}, out=tmp_path)
        threads[jobs] = PROCESS.environment(run, "ops", alone=False)["OMP_NUM_THREADS"]
    assert threads == {1: "16", 4: "4", 12: "2", 40: "2"}
    assert "OMP_NUM_THREADS" not in PROCESS.environment(run, "bench")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert PROCESS.environment(run, "ops", alone=False)["OMP_NUM_THREADS"] == "3"


def test_how_the_sanitizer_is_called(tmp_path: Path) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def command(tool: str, jobs: int) -> str:
        run: Any = SimpleNamespace(job={"sanitizer": str(program), "jobs": jobs}, path=tmp_path / "job.json")
        words = PROCESS.command_of(run, f"sanitize/one/cuda/{tool}", tmp_path / "result.json", 90.0)
        return " ".join(words).partition(" --unit ")[0]

    memcheck, racecheck = command("memcheck", 8), command("racecheck", 32)
    assert memcheck.startswith(f"{program} --tool memcheck --leak-check full --target-processes all --print-limit 2000")
    assert "--launch-timeout 91" in memcheck
    assert "--max-connections" not in memcheck
    assert "--leak-check" not in racecheck
    assert "--max-connections 64" in racecheck


@pytest.mark.parametrize(
    ("message", "cuda"),
    [
        ("faultops: invalid argument", True),
        ("CUDA error: invalid argument\nCUDA kernel errors might be reported later", True),
        ("launch failed: invalid configuration argument", True),
        ("an illegal memory access was encountered", True),
        ("clip_add: invalid argument x: it holds no element", False),
        ("x must have an element, and it has none", False),
    ],
)
def test_a_launch_that_cuda_refuses_is_no_refusal_of_the_operators_own(message: str, *, cuda: bool) -> None:
    assert gates_runner.said_by_cuda(message) is cuda


def test_a_lost_device_is_a_crash() -> None:
    lost = RuntimeError("CUDA error: an illegal memory access was encountered")
    assert gates_runner.judged(lost)[0] == "crash"
    refused = "CUDA error: operation failed due to a previous error during capture\n"
    every = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    assert gates_runner.judged(RuntimeError(refused + every))[0] == "fail", "torch says so of every error"
    assert gates_runner.judged(RuntimeError("CUDA error: device-side assert triggered\n" + every))[0] == "crash"
    assert gates_runner.judged(RuntimeError("no"))[0] == "fail"
    assert gates_runner.judged(gates_runner.GateFault("wrong")) == ("fail", "wrong")


def test_an_interrupted_run_goes_on_and_a_torn_line_is_run_again(tmp_path: Path) -> None:
    def run(jobs: int = 1, gates: str = "ops") -> gates_driver.Run:
        return gates_driver.Run(job={"jobs": jobs, "gates": gates}, path=tmp_path, out=tmp_path)

    first = run()
    gates_driver.resume(first, {}, fresh=False)
    rows = [{"unit": "a", "missing": False}, {"unit": "b", "missing": True}]
    with (tmp_path / "rows.jsonl").open("a") as out:
        out.write("".join(json.dumps(row) + "\n" for row in rows) + '{"unit": "c", "mis')
    again = run(jobs=4)
    gates_driver.resume(again, {}, fresh=False)
    assert list(again.rows) == ["a"], "what was missing then may be here now"
    elsewhere = run()
    gates_driver.resume(elsewhere, {"torch": "another"}, fresh=False)
    assert elsewhere.rows == {}, "they were measured beside another torch"
    fresh = run()
    gates_driver.resume(fresh, {}, fresh=True)
    assert fresh.rows == {}
    (tmp_path / "rows.jsonl").write_text(json.dumps({"job": "another"}) + "\n" + json.dumps(rows[0]) + "\n")
    other = run()
    gates_driver.resume(other, {}, fresh=False)
    assert other.rows == {}


LOG = """\
========= COMPUTE-SANITIZER

@sample torch.float32, typical
========= Invalid __global__ write of size 4 bytes
=========     at demo::write_kernel(float *, int)+0x70
=========     by thread (5,0,0) in block (0,0,0)
=========     Address 0x7f0000 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch [0x1] in libdemo.so
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: c10_cuda [0x2] in libc10_cuda.so
=========
========= ERROR SUMMARY: 2 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
@sample torch.float64, many
========= Error: Race reported between Write access at demo::scan(float *)+0x110
=========     and Read access at demo::scan(float *)+0x1b0 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
LEAK = """\
========= COMPUTE-SANITIZER
@sample after the last sample
========= Leaked 1,024 bytes at 0x7f00
=========     Saved host backtrace up to driver entry point at allocation time
=========         Host Frame: cudaMalloc [0x1] in libcudart.so.13
=========         Host Frame: leak(float*) [0x1] in {library}
=========
========= LEAK SUMMARY: 1024 bytes leaked in 1 allocations
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n@sample a\n========= ERROR SUMMARY: 0 errors\n"
PASSED = {"result": "pass", "reason": None, "missing": False, "found": {"calls": 3}, "left_out": []}


def judge(tool: str, text: str, *suppressions: dict[str, Any], row: dict[str, Any] = PASSED) -> dict[str, Any]:
    return gates_sanitize.judge(tool, text, {"libraries": ["libdemo.so"], "suppressions": list(suppressions)}, row)


def test_a_report_is_told_with_its_kernel_and_its_sample() -> None:
    row = judge("memcheck", LOG)
    assert row["result"] == "fail"
    assert row["reason"] == (
        "memcheck: Invalid __global__ write of size 4 bytes in demo::write_kernel(float *, int), "
        "on torch.float32, typical"
    )
    race = judge("racecheck", RACE)
    assert race["result"] == "fail"
    assert "demo::scan(float *)" in race["reason"]
    assert "torch.float64, many" in race["reason"]


def test_a_leak_is_the_operators_where_the_wheels_library_is_among_its_callers() -> None:
    assert judge("memcheck", LEAK.format(library="libdemo.so"))["result"] == "fail"
    row = judge("memcheck", LEAK.format(library="libtorch_cuda.so"))
    assert row["result"] == "pass"
    assert "1 reports of code that is not the wheel's, the first: Leaked 1,024 bytes" in row["left_out"][0]


def test_a_tensor_that_torch_holds_at_the_end_is_no_leak_of_the_operators() -> None:
    """The wheel's library made it through torch's allocator; `robust` counts what calls leave behind there."""
    text = LEAK.format(library="libdemo.so").replace(
        "cudaMalloc [0x1] in libcudart.so.13",
        "c10::cuda::CUDACachingAllocator::Native::allocate(unsigned long) [0x1] in libc10_cuda.so",
    )
    assert judge("memcheck", text)["result"] == "pass"


def test_torchs_own_kernels_are_told_and_not_blamed_on_the_operator() -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2, T3)"
    text = LOG.replace("demo::write_kernel(float *, int)", kernel).replace("libdemo.so", "libtorch_cuda.so")
    row = judge("initcheck", text)
    assert row["result"] == "pass"
    assert "at::native::vectorized_elementwise_kernel" in row["left_out"][0]


def test_a_suppression_is_used_or_not() -> None:
    wanted = {"tool": "memcheck", "kernel": "demo::write_*", "message": None, "reason": "known"}
    other = {**wanted, "tool": "racecheck"}
    row = judge("memcheck", LOG, other, wanted)
    assert row["result"] == "pass"
    assert row["found"]["suppressed"] == [1]
    assert judge("memcheck", LOG, other)["result"] == "fail"


def test_a_tool_that_did_not_finish_is_no_pass() -> None:
    assert judge("memcheck", CLEAN)["result"] == "pass"
    row = judge("memcheck", "========= COMPUTE-SANITIZER\n========= Error: No attachable process found.\n")
    assert (row["result"], row["missing"]) == ("not-run", True)
    unknown = CLEAN.replace("0 errors", "3 errors")
    assert judge("memcheck", unknown)["result"] == "fail"
    died = {**PASSED, "result": "hang", "reason": "it hung while calling"}
    assert judge("memcheck", CLEAN, row=died)["reason"] == "memcheck: it hung while calling"


@pytest.mark.parametrize(
    ("line", "kernel"),
    [
        ("at demo::scale(float *, int)+0x70 in scale.cu:6", "demo::scale(float *, int)"),
        ("at scale_kernel+0x15520", "scale_kernel"),
        ("at scale():0x160 in memcheck_demo.cu:6", "scale()"),
        ("at 0x70 in demo::scale(float*, int)", "demo::scale(float*, int)"),
        ("at 0xc0 in /tmp/scale.cu:17:scale(float*)", "scale(float*)"),
        ("at inner()+0xb0 in a.cu:39\n=========         Device Frame: outer()+0x30 in a.cu:44", "outer()"),
        ("at 0x79d8", None),
    ],
)
def test_a_kernel_is_named_in_the_words_of_each_version_of_the_tool(line: str, kernel: str | None) -> None:
    text = LOG.replace("at demo::write_kernel(float *, int)+0x70", line)
    assert next(gates_sanitize.reports(text)).kernel == kernel


FRAMES = """\
=========     Host Frame: [0x332470]
=========                in /usr/lib/x86_64-linux-gnu/libcuda.so.1
=========     Host Frame:__cudart803 [0x115ab]
=========                in /opt/torch/lib/libcudart-1b2c3d.so.13
=========     Host Frame:launch [0x1]
=========                in /opt/{library}
=========     Host Frame:call [0x1]
=========                in /opt/libdemo.so
"""


@pytest.mark.parametrize(
    ("library", "kernel", "result"),
    [
        ("libdemo.so", "void at::native::elementwise<4, demo::Scale>(int)", "fail"),
        ("libdemo.so", "void cub::DeviceScanKernel<float>(int)", "fail"),
        ("libtorch_cuda.so", "void at::native::elementwise<4>(int)", "pass"),
        ("libcublasLt.so.13", "sm90_xmma_gemm_f32(int)", "pass"),
        ("libother.so", "other::kernel(int)", "fail"),
        ("libother.so", "void at::native::elementwise<4>(int)", "pass"),
    ],
)
def test_a_kernel_is_of_the_library_that_launched_it(library: str, kernel: str, result: str) -> None:
    frame = "=========         Host Frame: launch [0x1] in libdemo.so\n"
    text = LOG.partition("========= Program hit")[0].replace("demo::write_kernel(float *, int)", kernel)
    old = text.replace(frame, FRAMES.format(library=library)) + "========= ERROR SUMMARY: 1 error\n"
    assert judge("memcheck", old)["result"] == result
    new = text.replace("libdemo.so", library) + "========= ERROR SUMMARY: 1 error\n"
    assert judge("memcheck", new)["result"] == result


def test_what_torch_itself_asked_for_and_was_refused_is_no_fault() -> None:
    refused = '========= Program hit cudaErrorInvalidValue (error 1) due to "no" on CUDA API call to cudaFree.\n'
    refused += "=========     Saved host backtrace up to driver entry point at error\n"
    end = "=========\n========= ERROR SUMMARY: 1 error\n"
    torchs = refused + FRAMES.format(library="libc10_cuda.so")
    assert judge("memcheck", torchs + end)["result"] == "pass"
    assert judge("memcheck", refused + FRAMES.format(library="libdemo.so") + end)["result"] == "fail"


def test_a_race_that_is_a_warning_is_a_report_and_a_warning_of_the_tool_is_told() -> None:
    for head in ("Warning: Race reported between", "WARNING: Race reported between"):
        row = judge("racecheck", RACE.replace("Error: Race reported between", head))
        assert row["result"] == "fail"
        assert "demo::scan(float *)" in row["reason"]
    warning = "Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect."
    row = judge("synccheck", CLEAN.replace("========= ERROR", f"========= {warning}\n========= ERROR"))
    assert row["result"] == "pass"
    assert row["left_out"] == [f"synccheck warns: {warning}"]


def test_what_is_beyond_the_tools_limit_may_be_the_operators() -> None:
    """Leaks of torch's tensors come first, and the operator's would not be printed."""
    left = "========= ERROR SUMMARY: 332 errors were not printed. Use --print-limit option to adjust the number\n"
    row = judge("memcheck", LEAK.format(library="libtorch_cuda.so") + left)
    assert (row["result"], row["missing"]) == ("not-run", True)
    assert "left 332 reports out" in row["reason"]
    assert judge("memcheck", LEAK.format(library="libdemo.so") + left)["result"] == "fail"


# As compute-sanitizer 2025.3 prints it of a program that aborts.
ABORTED = """\
========= COMPUTE-SANITIZER
@sample torch.float32, no_chunk
========= Error: process didn't terminate successfully
=========     The application may have hit an error when dereferencing Unified Memory from the host.
========= Target application returned an error
========= ERROR SUMMARY: 0 errors
"""


def test_a_crash_under_a_tool_is_a_crash() -> None:
    died = PROCESS.ended({"at": "calling it on torch.float32, no_chunk"}, 255, None)
    row = judge("memcheck", ABORTED, row=died)
    assert (row["result"], row["missing"]) == ("crash", False)
    assert row["reason"] == "memcheck: the process ended with status 255 while calling it on torch.float32, no_chunk"
    assert judge("memcheck", ABORTED)["result"] == "not-run", "it is no pass, whatever the process said"


def test_times_that_differ_by_chance_and_those_that_do_not() -> None:
    bench = gates_runner.sibling("gates_bench")
    draw = random.Random(0)  # noqa: S311
    base = [draw.gauss(1.0, 0.05) for _ in range(120)]
    same = [draw.gauss(1.0, 0.05) for _ in range(120)]
    slow = [draw.gauss(1.15, 0.05) for _ in range(120)]
    assert bench.slower(same, base) > 0.01
    assert bench.slower(slow, base) < 1e-6
    assert bench.slower(base, slow) > 0.99
    assert bench.slower([1.0] * 10, [1.0] * 10) == 1.0
    # The exact distribution without ties: P(U >= 9) for three against three is 1/20.
    assert bench.slower([4, 5, 6], [1, 2, 3]) == pytest.approx(0.05, abs=0.015)


def test_a_time_beyond_the_threshold_fails_and_one_below_does_not() -> None:
    bench = gates_runner.sibling("gates_bench")
    draw = random.Random(1)  # noqa: S311
    before = bench.spread([draw.gauss(1.0, 0.02) for _ in range(50)])

    def unit(baseline: Any) -> Any:
        left: list[str] = []
        job = {"baseline": baseline, "threshold": 0.1}
        return SimpleNamespace(job=job, name="one", found={}, left_out=left, leave_out=left.append)

    accepted = {"card": "a card", "operators": {"one": {"sample": "large", "milliseconds": before}}}
    bench.judge(unit(accepted), "a card", "large", bench.spread([draw.gauss(1.05, 0.02) for _ in range(50)]))
    with pytest.raises(gates_runner.GateFault, match=r"[12]\.\d\d times the accepted"):
        bench.judge(unit(accepted), "a card", "large", bench.spread([draw.gauss(2.0, 0.02) for _ in range(50)]))
    other = unit(accepted)
    bench.judge(other, "another card", "large", before)
    assert "none is known of it on another card" in other.left_out[0]
    smaller = unit(accepted)
    bench.judge(smaller, "a card", "small", before)
    assert "that is of the sample large, and this of small" in smaller.left_out[0]


def unit_of(operator: Any, drawn: Any = (), **module: Any) -> Any:
    """A unit of an operator beside a torch that has dtypes alone."""
    kept = SimpleNamespace(complex128="complex128", float32="float32", float64="float64", Tensor=SimpleNamespace)
    kept.utils = SimpleNamespace(_pytree=SimpleNamespace(tree_leaves=list))
    stated = {"DTYPES": ("float16", "float32"), "TOLERANCES": {"float32": (1e-6, 0.0), "float64": (0.0, 0.0)}}
    samples = SimpleNamespace(**{**stated, **module}, OPERATORS={"one": operator}, samples=lambda *_: iter(drawn))
    return gates_runner.Unit(
        job={}, gate="ops", name="one", device="cpu", tool="", torch=kept, samples=samples, at=lambda _: None
    )


def test_an_operator_has_the_modules_dtypes_or_its_own() -> None:
    assert unit_of(SimpleNamespace()).dtypes == ["float16", "float32"]
    assert unit_of(SimpleNamespace()).dtype == "float32"
    halves = unit_of(SimpleNamespace(dtypes=("bfloat16", "float16"), complex=True))
    assert halves.dtypes == ["bfloat16", "float16", "complex128"]
    assert halves.dtype == "bfloat16", "it does not take float32"


@pytest.mark.parametrize(
    ("own", "result", "bounds"),
    [
        ({}, "float32", (1e-6, 0.0)),
        ({}, "float64", (1e-6, 0.0)),
        ({}, "complex128", (1e-6, 0.0)),
        ({"float32": (0.0, 1.0), "float16": (0.5, 0.0)}, "float32", (0.0, 1.0)),
        ({"float32": (0.0, 1.0), "float16": (0.5, 0.0)}, "float16", (0.5, 1.0)),
    ],
)
def test_a_result_is_held_to_the_samples_tolerance_or_its_own_where_that_is_wider(
    own: Any, result: str, bounds: Any
) -> None:
    values = gates_runner.sibling("gates_values")
    unit = unit_of(SimpleNamespace(tolerances=own) if own else SimpleNamespace())
    made = SimpleNamespace(dtype=result, is_floating_point=lambda: True)
    assert values.allowed(unit, "float32", made) == bounds
    integers = SimpleNamespace(dtype="int64", is_floating_point=lambda: False, is_complex=lambda: False)
    assert values.allowed(unit, "float32", integers) == (0.0, 0.0)


def test_what_is_timed_is_the_largest_sample_in_a_dtype_that_it_takes() -> None:
    bench = gates_runner.sibling("gates_bench")

    def sample(name: str, size: int) -> Any:
        return SimpleNamespace(name=name, args=[SimpleNamespace(numel=lambda: size)], reference=lambda: name)

    asked: list[Any] = []

    def offered(_: Any, __: Any, dtype: Any) -> Any:
        asked.append(dtype)
        return iter([sample("large", 9), sample("huge", 10)] if dtype == "bfloat16" else [])

    drawn = [sample("small", 1), sample("typical", 2)]
    halves = unit_of(SimpleNamespace(dtypes=("bfloat16",)), drawn, bench_samples=offered)
    assert bench.pick(halves)[0] == "huge"
    assert bench.pick(unit_of(SimpleNamespace(), drawn, bench_samples=offered))[0] == "typical", "it offers none"
    assert asked == ["bfloat16", "float32"]
    with pytest.raises(gates_runner.GateFault, match="no sample to time"):
        bench.pick(unit_of(SimpleNamespace()))
