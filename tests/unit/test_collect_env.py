"""The output of collect_env: of each fact, its line and what is unknown without it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelmill import collect_env
from wheelmill.errors import InputError
from wheelmill.which_env import Gpu, Libc

HEAD = "Collecting environment information...\nPyTorch version: 2.8.0+cu128\n"


def parsed(*lines: str) -> collect_env.Environment:
    return collect_env.parse(HEAD + "\n".join(lines))


def test_nothing_but_a_version_leaves_the_rest_unknown() -> None:
    env = parsed()
    assert (env.python, env.system, env.libc, env.driver, env.gpus) == (None, None, None, None, None)
    assert env.torch is not None
    assert (env.torch.cuda, env.torch.origin) == ("12.8", "pytorch")


def test_the_libc_is_its_own_line_and_not_the_platforms() -> None:
    line = "Python platform: Linux-5.10.216-tegra-aarch64-with-glibc2.29"
    assert parsed(line, "Libc version: glibc-2.31").libc == Libc(kind="glibc", version="2.31")
    assert parsed(line).libc == Libc(kind="glibc")
    assert parsed(line).machine == "aarch64"


def test_no_cuda_says_nothing_of_the_gpus() -> None:
    assert parsed("GPU models and configuration: No CUDA", "Nvidia driver version: No CUDA").gpus is None
    assert parsed("Nvidia driver version: No CUDA").driver is None
    assert parsed("Nvidia driver version: Could not collect").driver is None


def test_gpus_in_order_by_name() -> None:
    env = parsed(
        "GPU models and configuration: ",
        "GPU 1: NVIDIA GeForce GT 9999",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)",
        "Nvidia driver version: 550.54",
    )
    assert env.gpus == (
        Gpu(name="NVIDIA H100 80GB HBM3", capability="9.0"),
        Gpu(name="NVIDIA GeForce GT 9999", capability=None),
    )


def test_quoted_and_windows_texts() -> None:
    text = HEAD + "OS: Debian GNU/Linux 12 (x86_64)\nPython version: 3.12.1 (main)"
    quoted = "\r\n".join(f"> {line}" for line in text.splitlines())
    assert collect_env.parse(quoted) == collect_env.parse(text)
    assert collect_env.parse(quoted).system == "linux"


@pytest.mark.parametrize("text", ["", "hello", "{}", "PyTorch 2.8", "\0" * 100])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="collect_env"):
        collect_env.parse(text)


LONG = 500_000


@pytest.mark.parametrize(
    "line",
    [
        "GPU 0: a" + " " * LONG + "x",
        "GPU 0: " + "(UUID " * (LONG // 6),
        "Title: a" + "\t" * LONG + "x",
        "[conda] torch" + " " * LONG,
        "".join(f"GPU {number}: NVIDIA H100\n" for number in range(9999)),
    ],
    ids=["GPU", "UUID", "line", "conda", "many GPUs"],
)
def test_long_texts_are_read_in_one_pass(line: str) -> None:
    started = time.process_time()
    collect_env.parse(f"{HEAD}\n{line}")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("line", ["PyTorch version: " + "1." * 200 + "1", "Libc version: glibc-99999.1"])
def test_values_that_cannot_be_are_refused(line: str) -> None:
    with pytest.raises(InputError, match="states what cannot be"):
        collect_env.parse(f"OS: Linux\n{line}\n")


TITLES = st.sampled_from(
    [
        *("PyTorch version", "OS", "Python version", "Python platform", "Libc version", "Nvidia driver version"),
        *("CUDA used to build PyTorch", "ROCM used to build PyTorch", "GPU models and configuration", "GPU 0"),
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(TITLES, st.text(max_size=30)), max_size=12))
def test_any_values_end_in_an_environment_or_a_refusal(lines: list[tuple[str, str]]) -> None:
    try:
        collect_env.parse("\n".join(f"{title}: {value}" for title, value in lines))
    except InputError:
        return
