"""Operators that each hold one fault, and their clean twins: torch.ops.faultops.FAULT and FAULT_clean."""

from pathlib import Path

import torch

torch.ops.load_library(str(Path(__file__).with_name("libfaultops.so")))

# Each registers the Python side of operators, which needs the library's schemas.
from faultops import contract, gradients  # noqa: E402

__all__ = ["contract", "gradients"]
