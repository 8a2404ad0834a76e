"""CPU loops give the same bytes whichever vector instructions the processor has."""

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fusedops.testing import DTYPES, OPERATORS, samples
from fusedops.testing.pointwise import POINTWISE

NAMES = (*POINTWISE, "edge_enhance", "edge_enhance_backward")

PRINTED = "import test_widths; print(*test_widths.digests(), sep=chr(10))"


def digests() -> list[str]:
    """A line for each operator and dtype: the hash of every sample's result, NaN made one."""
    lines = []
    for name in NAMES:
        for dtype in DTYPES:
            results = [OPERATORS[name].op(*sample.args) for sample in samples(OPERATORS[name], "cpu", dtype)]
            joined = torch.cat([torch.where(one.isnan(), torch.nan, one).flatten() for one in results])
            memory = ctypes.string_at(joined.data_ptr(), joined.numel() * joined.itemsize)
            digest = hashlib.sha256(memory).hexdigest()
            lines.append(f"{name} {dtype} {digest}")
    return lines


def digests_with(capability: str) -> list[str]:
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    command = [sys.executable, "-c", PRINTED]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=Path(__file__).parent
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="needs AVX2")
def test_every_width_gives_the_same_bytes() -> None:
    baseline = digests_with("default")
    assert len(baseline) == len(NAMES) * len(DTYPES)
    assert digests_with("avx2") == baseline
    assert digests_with("avx512") == baseline
