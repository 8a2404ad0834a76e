import torch

from . import _C


def shift_clip(x: torch.Tensor, shift: float, low: float, high: float) -> torch.Tensor:
    return _C.shift_clip(x, shift, low, high)
