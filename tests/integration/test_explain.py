"""`explain` on this machine: imports that really fail, a log of 200 MB, and a command whose failure it explains."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.gate_wheels import wheel

from wheelmill import proc

from .conftest import PROJECTS, STORE, command, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SYMBOL = "_ZN3c104cuda9SetDeviceEab"
CAUSE = "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"


def compiled(folder: Path, name: str, source: str, *flags: str) -> Path:
    """A package with a library that is imported, linked as `flags` say."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("from . import ext\n")
    (package / "ext.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "ext.c", "-o", "ext.so", *flags], cwd=package, check=True)
    return package


def path_of(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def imported(folder: Path, name: str, *options: str) -> list[dict[str, object]]:
    done = subprocess.run(
        command("explain", "--import", name, "--python", sys.executable, "--json", *options),
        env=environment(PYTHONPATH=path_of(folder)),
        text=True,
        capture_output=True,
        check=True,
    )
    findings: list[dict[str, object]] = json.loads(done.stdout)["findings"]
    return findings


def test_a_symbol_that_torch_has_not(tmp_path: Path) -> None:
    compiled(tmp_path, "badsym", f"int {SYMBOL}(int, int);\nint PyInit_ext(void) {{ return {SYMBOL}(1, 2); }}\n")
    best = imported(tmp_path, "badsym")[0]
    assert best["rule"] == "torch-minor"
    assert "c10::cuda::SetDevice(signed char, bool)" in str(best["cause"])
    assert SYMBOL in str(best["evidence"])


def test_a_cuda_library_of_another_major(tmp_path: Path) -> None:
    stub = tmp_path / "libcudart.so.11.0"
    subprocess.run(["gcc", "-shared", "-o", str(stub), f"-Wl,-soname,{stub.name}", "-x", "c", os.devnull], check=True)
    compiled(tmp_path, "badlib", "int PyInit_ext(void) { return 0; }\n", "-Wl,--no-as-needed", str(stub))
    assert imported(tmp_path, "badlib")[0]["rule"] == "cuda-runtime-missing"


@pytest.mark.parametrize(
    ("name", "body", "rule"),
    [
        ("crashes", "import ctypes; ctypes.string_at(0)", "import-crash"),
        ("hangs", "import time; time.sleep(600)", "import-hang"),
        ("needs", "import torch_that_is_not_there", None),
    ],
)
def test_what_an_import_may_do(tmp_path: Path, name: str, body: str, rule: str | None) -> None:
    (tmp_path / f"{name}.py").write_text(body + "\n")
    found = imported(tmp_path, name, "--timeout", "5")
    assert (found[0]["rule"] if found else None) == rule


LEAVING = {
    "exits": ("import sys; sys.exit(0)", "import-exit"),
    "goes": ("import os; os._exit(0)", "import-exit"),
    "ended": ("import os; os.kill(os.getpid(), 9)", "oom-killed"),
    "odd": ("import os; os.kill(os.getpid(), 40)", "import-crash"),
    "silent": ("import os; os.close(1); os.close(2); raise ImportError('x')", None),
    "asks": ("input()", None),
    "says_done": ("print('DONE 1.0'); raise ValueError", None),
}


@pytest.mark.parametrize("name", LEAVING)
def test_an_import_that_ends_in_a_way_of_its_own(tmp_path: Path, name: str) -> None:
    body, rule = LEAVING[name]
    (tmp_path / f"{name}.py").write_text(body + "\n")
    found = imported(tmp_path, name)
    assert (found[0]["rule"] if found else None) == rule


def test_an_import_that_prints_much_and_a_secret(tmp_path: Path) -> None:
    body = "print('ghp_' + 'a1B2' * 9)\nfor at in range(100_000): print('x' * 99, at)\nraise ImportError('no more')\n"
    (tmp_path / "prints.py").write_text(body)
    args = command("explain", "--import", "prints", "--python", sys.executable)
    done = subprocess.run(
        args, env=environment(PYTHONPATH=path_of(tmp_path)), text=True, capture_output=True, check=True
    )
    assert "a1B2" not in done.stdout
    assert "ImportError: no more" in done.stdout
    assert "lines more" in done.stdout
    assert len(done.stdout) < 20_000


def test_an_import_that_never_stops_printing(tmp_path: Path) -> None:
    (tmp_path / "floods.py").write_text("import os\nwhile True: os.write(1, b'y' * 65536)\n")
    assert imported(tmp_path, "floods", "--timeout", "20") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--import", "os; x"], "no name of a module"),
        (["--import", "json", "--python", "/nowhere/python"], "there is no such program"),
        (["--import", "json", "--python", shutil.which("true") or ""], "does not answer as a Python does"),
        (["--import", "json", "--timeout", "nan"], "no time to wait"),
        (["--import", "json", "a.log"], "either a LOG or --import"),
        (["/proc/self/mem"], "cannot be read"),
    ],
)
def test_a_question_that_is_none(arguments: list[str], words: str) -> None:
    refused = subprocess.run(command("explain", *arguments), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "what to do:" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_pipes_that_are_closed(tmp_path: Path) -> None:
    closed = subprocess.run(
        [*command("explain", "-")], capture_output=True, text=True, check=False, preexec_fn=lambda: os.close(0)
    )
    assert (closed.returncode, "standard input is closed" in closed.stderr) == (2, True)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(command("explain", pipe, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        pipe.write_text(f"[1/2] nvcc -c a.cu\n{CAUSE}\n")
        assert one.stdout is not None
        assert one.stderr is not None
        assert one.stdout.readline() == b"{\n"
        one.stdout.close()
        assert one.stderr.read() == b""


def test_an_import_that_works_and_one_of_nothing(tmp_path: Path) -> None:
    assert imported(tmp_path, "json") == []
    assert imported(tmp_path, "nothing_of_that_name")[0]["rule"] == "import-absent"


def test_a_log_of_200_megabytes(tmp_path: Path) -> None:
    """Two seconds are the aim on an idle machine; processor time is what other work here does not change."""
    line = b"2025-11-03T09:00:%02d.1Z [%06d/999999] /usr/local/cuda/bin/nvcc -Werror -c csrc/error_path_%d.cu -o k.o\n"
    block = b"".join(line % (number % 60, number, number) for number in range(50_000))
    log = tmp_path / "large.log"
    with log.open("wb") as file:
        for place in range(200_000_000 // len(block)):
            file.write(block + (CAUSE.encode() + b"\n" if place == 20 else b""))
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command("explain", log, "--json"), capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - began:.2f} s, {after.ru_maxrss / 1024:.0f} MiB at most")
    found = json.loads(done.stdout)["findings"][0]
    assert found["rule"] == "oom-compiler"
    assert found["evidence"][-1] == {"line": 21 * 50_000 + 1, "text": CAUSE}
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4


def test_a_command_that_fails_ends_with_its_cause(tmp_path: Path) -> None:
    with pytest.raises(proc.ProcessError) as raised:
        proc.run(["sh", "-c", f'echo "[1/2] nvcc -c a.cu"; echo "{CAUSE}"; exit 1'], log=tmp_path / "log")
    assert CAUSE in str(raised.value)
    assert str(raised.value).rstrip().splitlines()[-1].startswith("  the cause, certain: the kernel ended cicc")
    assert raised.value.remedy.startswith("run fewer")


# --- what the engine's own verbs end with


def ends(done: subprocess.CompletedProcess[str], status: int, cause: str, remedy: str, *, first: str) -> None:
    """The last two lines of an error: the cause, and what to do, that begins with the cause's own remedy."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    *_, why, do = done.stderr.rstrip().splitlines()
    assert why.startswith(f"  the cause, {cause}")
    assert do.startswith(f"  what to do: {remedy}")
    assert first in done.stderr


def test_a_build_that_fails_ends_with_its_cause(mill: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = mill("build", "--matrix", PROJECTS / "unfetched" / "matrix.yaml", "--store", STORE)
    ends(
        done,
        4,
        "certain: cutlass/numeric_types.h belongs to a Git submodule that was not fetched",
        "`git submodule update --init --recursive`",
        first="ended with status 1:",
    )
    assert "the whole output is in" in done.stderr


def test_a_build_that_fails_for_a_reason_of_its_own_ends_with_none(
    mill: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = mill("build", "--matrix", PROJECTS / "broken" / "matrix.yaml", "--store", STORE)
    assert done.returncode == 4
    assert "undeclared_name" in done.stderr
    assert "the cause" not in done.stderr


def test_a_gate_ends_with_the_cause_of_an_import_that_fails(tmp_path: Path) -> None:
    stub = tmp_path / "libcudart.so.11.0"
    subprocess.run(["gcc", "-shared", "-o", str(stub), f"-Wl,-soname,{stub.name}", "-x", "c", os.devnull], check=True)
    package = compiled(tmp_path, "badlib", "int PyInit_ext(void) { return 0; }\n", "-Wl,--no-as-needed", str(stub))
    stub.unlink()
    members = {f"badlib/{path.name}": path.read_bytes() for path in package.iterdir()}
    beside = os.environ.get("WHEELMILL_TEST_PYTHON")
    where = ["--python", beside] if beside else []
    asked = ("--namespace", "badlib", "--samples", "badlib.testing", "--gates", "ops", "--store", STORE)
    args = command("test", wheel(tmp_path, "badlib", members), *asked, *where)
    ends(
        subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False),
        1,
        "certain: nothing brings libcudart.so.11.0",
        "install the wheel that was built for torch's CUDA",
        first="does not pass",
    )
