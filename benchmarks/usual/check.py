"""Compares an installed wheel's operators with fusedops' reference, on the CPU, over fusedops' samples.

    python check.py MODULE NAMESPACE RESULT.json [--samples FOLDER]

Imports MODULE, which must register the operators in torch.ops.NAMESPACE. The samples are those of the installed
fusedops, or with --samples of a folder that holds its Python files, used without its compiled library. The
result says with which torch and how many calls of each operator were right, or what was wrong; then exits 1.
"""

import argparse
import importlib
import json
import platform
import sys
from pathlib import Path
from types import ModuleType

import torch


def load_samples(folder: Path | None) -> ModuleType:
    """`fusedops.testing`, from the folder if one is given."""
    if folder is not None:
        package = ModuleType("fusedops")
        package.__path__ = [str(folder)]
        sys.modules["fusedops"] = package
    return importlib.import_module("fusedops.testing")


def compute(namespace: str, testing: ModuleType) -> dict[str, int]:
    """The number of calls of each operator; raises AssertionError at the first wrong value."""
    calls = dict.fromkeys(testing.OPERATORS, 0)
    for name, operator in testing.OPERATORS.items():
        op = getattr(getattr(torch.ops, namespace), name).default
        for dtype in testing.DTYPES:
            rtol, atol = testing.TOLERANCES[dtype]
            for sample in testing.samples(operator, "cpu", dtype):
                value = op(*sample.args)
                if value.dtype != dtype:
                    raise AssertionError(f"{name} of {dtype} gave {value.dtype}")
                torch.testing.assert_close(value.double(), sample.reference(), rtol=rtol, atol=atol, equal_nan=True)
                calls[name] += 1
    return calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("namespace")
    parser.add_argument("result", type=Path)
    parser.add_argument("--samples", type=Path)
    options = parser.parse_args()
    result = {"python": platform.python_version(), "torch": torch.__version__, "error": None}
    try:
        importlib.import_module(options.module)
        result["calls"] = compute(options.namespace, load_samples(options.samples))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the wheel belongs in the result
        result["error"] = f"{type(error).__name__}: {error}"
    options.result.write_text(json.dumps(result))
    return int(result["error"] is not None)


if __name__ == "__main__":
    sys.exit(main())
