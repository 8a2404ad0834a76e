import torch

from demo import _C


def twice(x: torch.Tensor) -> torch.Tensor:
    return _C.twice(x)
