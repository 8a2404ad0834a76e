"""What autocast does with an operator's arguments."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import _library


def register_autocast_float32(op: Any) -> None:
    """Under autocast, of any dtype, the overload `op` takes 16-bit tensors as float32."""
    for device in ("CPU", "CUDA"):
        _register(op, f"Autocast{device}")


def _register(op: Any, key: str) -> None:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))  # noqa: SLF001

    def kernel(*args: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):  # noqa: SLF001
            return op(*(_widened(arg) for arg in args))

    _library.impl(op, kernel, key)


def _widened(arg: Any) -> Any:
    narrow = isinstance(arg, Tensor) and arg.dtype in (torch.float16, torch.bfloat16)
    return arg.float() if narrow else arg
