"""fusedops' four operators and their backward operators, as `torch.ops.usual`."""

from pathlib import Path

import torch

(_LIBRARY,) = Path(__file__).parent.glob("_C.*.so")
torch.ops.load_library(str(_LIBRARY))
