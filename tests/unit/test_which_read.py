"""Flags over what was read."""

from __future__ import annotations

from typing import Any

import pytest

from wheelmill import which_read
from wheelmill.errors import InputError
from wheelmill.which_env import Driver, Environment, Gpu, Libc, Python, Torch
from wheelmill.which_read import Stated

READ = Environment(
    python=Python(version="3.12.3", abi="cp312"),
    system="linux",
    machine="x86_64",
    libc=Libc(kind="glibc", version="2.36"),
    torch=Torch(version="2.6.0+cu124", cuda="12.4", cxx11_abi=False, origin="pytorch"),
    driver=Driver(version="550.54", cuda="12.4"),
    gpus=(Gpu(name="NVIDIA H100", capability="9.0"),),
)


def after(**flags: Any) -> Environment:
    return which_read.override(READ, Stated(**flags))


def test_no_flag_changes_nothing() -> None:
    assert after() == READ


def test_another_torch_brings_nothing_of_the_old_one() -> None:
    assert after(torch="2.11.0+cu130").torch == Torch(version="2.11.0+cu130", cuda="13.0", origin="pytorch")
    assert after(torch="2.11.0").torch == Torch(version="2.11.0")
    assert after(torch="none").torch == Torch(version=None)
    assert after(cuda="cu126").torch == Torch(version="2.6.0+cu124", cuda="12.6", cxx11_abi=False, origin="pytorch")


def test_another_driver_serves_what_it_serves() -> None:
    driver = after(driver="535.1").driver
    assert driver is not None
    assert driver.serves == "12.2"
    assert after(driver_cuda="13.0").driver == Driver(version="550.54", cuda="13.0")


def test_pythons_platforms_and_gpus() -> None:
    assert after(python="3.13t").python == Python(version="3.13", abi="cp313t")
    assert after(abi="cp312d").python == Python(version="3.12.3", abi="cp312d")
    env = after(platform="win_amd64")
    assert (env.system, env.machine, env.libc) == ("windows", "x86_64", None)
    assert after(platform="linux_aarch64").libc == READ.libc
    assert after(platform="musllinux_1_2_x86_64").libc == Libc(kind="musl", version="1.2")
    words = ("9.0", "sm_120", "89", "NVIDIA L40S")
    assert [gpu.capability for gpu in after(gpus=words).gpus or ()] == ["9.0", "12.0", "8.9", "8.9"]
    assert after(gpus=("none",)).gpus == ()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"torch": "2.6.0 ; rm"}, "--torch"),
        ({"cuda": "12"}, "--cuda 12"),
        ({"driver": "5; x"}, "--driver"),
        ({"driver_cuda": "twelve"}, "--driver"),
        ({"gpus": ("none", "9.0")}, "--gpu none"),
        ({"platform": "win_amd64_x"}, "--platform"),
        ({"glibc": "2.3.4"}, "--glibc"),
        ({"python": "312"}, "--python-version"),
        ({"abi": "cp 312"}, "--abi"),
    ],
)
def test_what_is_no_fact(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        after(**flags)
    assert caught.value.remedy


def test_a_cuda_of_no_torch() -> None:
    with pytest.raises(InputError, match="none is known"):
        which_read.override(Environment(), Stated(cuda="12.4"))
