"""Operators in processes that Python's multiprocessing starts anew."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import multiprocessing
import sys


def right(name):
    import torch

    from fusedops.testing import OPERATORS, samples

    operator = OPERATORS[name]
    dtype = torch.float32 if torch.float32 in operator.dtypes else operator.dtypes[0]
    for sample in samples(operator, "cpu", dtype):
        operator.op(*sample.args)
    return name


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "forkserver":
        # So that a process begins where fusedops is imported already, as a server of a user's may.
        context.set_forkserver_preload(["fusedops"])
    from fusedops.testing import OPERATORS

    with context.Pool(2) as pool:
        assert pool.map(right, OPERATORS) == list(OPERATORS)
    print(len(OPERATORS))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_every_operator_in_processes_started_by(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), method], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
