"""Which code a card runs, and which CUDA a driver serves."""

import pytest

from wheelmill import facts, hardware


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("Orin (nvgpu)", "8.7"),
        ("Tesla T4", "7.5"),
        ("Quadro RTX 6000", "7.5"),
        ("Tesla V100-SXM2-32GB", "7.0"),
        ("GeForce GTX 1080 Ti", "6.1"),
        ("AMD Radeon RX 7900 XTX", None),
        ("", None),
    ],
)
def test_names(name: str, capability: str | None) -> None:
    assert hardware.capability(name) == capability


@pytest.mark.parametrize(
    ("capability", "target", "runs"),
    [
        ("8.6", "80", True),
        ("8.6", "86", True),
        ("8.0", "86", False),
        ("9.0", "80", False),
        ("9.0", "90a", True),
        ("10.3", "100a", False),
        ("10.3", "100f", True),
        ("12.1", "120f", True),
        ("12.0", "121f", False),
        ("8.7", "80", False),
        ("8.7", "87", True),
        ("8.9", "87", False),
        ("8.6", "odd", False),
    ],
)
def test_compiled_code(capability: str, target: str, *, runs: bool) -> None:
    assert hardware.runs(capability, [target]) is runs


@pytest.mark.parametrize(
    ("capability", "target", "compiles"),
    [
        ("12.0", "90", True),
        ("9.0", "90a", True),
        ("12.0", "90a", False),
        ("10.3", "100f", True),
        ("12.0", "100f", False),
        ("8.0", "90", False),
        ("8.7", "80", True),
        ("8.0", "odd", False),
    ],
)
def test_ptx(capability: str, target: str, *, compiles: bool) -> None:
    assert hardware.compiles(capability, [target]) is compiles


def test_drivers() -> None:
    assert hardware.serves("550.54.14") == "12.4"
    assert hardware.serves("576.88") == "12.9"
    assert hardware.serves("9999") == list(hardware.table().drivers.values())[-1]
    assert hardware.serves("390.1") is None
    assert hardware.branch_for("12.4") == 550
    assert hardware.branch_for("99.0") is None


def test_every_ptx_isa_of_the_toolkits_is_known_and_an_unknown_one_is_never_readable() -> None:
    for row in facts.load().cuda.values():
        if row.ptx is not None:
            isa = "{}.{}".format(*row.ptx)
            assert isa in hardware.table().isa
    assert hardware.cuda_of_isa("8.4") == "12.4"
    # 12.6 writes the ISA of 12.5.
    assert hardware.cuda_of_isa("8.5") == "12.5"
    assert hardware.cuda_of_isa("9.99") not in hardware.table().isa.values()


def test_the_oldest_driver_of_each_major_is_the_toolkits() -> None:
    for row in facts.load().cuda.values():
        served = hardware.serves(row.driver or "0")
        assert served is not None
        assert served.split(".")[0] == row.minor.split(".")[0]
