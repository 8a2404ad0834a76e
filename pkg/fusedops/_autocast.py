"""What autocast does with an operator's arguments."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import _library

_KEYS = {device: getattr(torch._C.DispatchKey, f"Autocast{device.upper()}") for device in ("cpu", "cuda")}  # noqa: SLF001


def register_autocast_float32(op: Any) -> None:
    """Under autocast, of any dtype, the overload `op` takes 16-bit tensors as float32."""

    def widened(tensor: Tensor, device: str) -> Tensor:  # noqa: ARG001
        return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor

    _register(op, widened)


def register_autocast_lower_precision(op: Any) -> None:
    """Under autocast, the overload `op` takes floating tensors in its dtype, float64 apart."""

    def cast(tensor: Tensor, device: str) -> Tensor:
        eligible = tensor.is_floating_point() and tensor.dtype != torch.float64
        return tensor.to(torch.get_autocast_dtype(device)) if eligible else tensor

    _register(op, cast)


def _register(op: Any, cast: Callable[[Tensor, str], Tensor]) -> None:
    excluded = torch._C.DispatchKeySet(_KEYS["cpu"]) | torch._C.DispatchKeySet(_KEYS["cuda"])  # noqa: SLF001

    def rule(device: str) -> Callable[..., Any]:
        def kernel(*args: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(excluded):  # noqa: SLF001
                return op(*(cast(arg, device) if isinstance(arg, Tensor) else arg for arg in args))

        return kernel

    for device, key in _KEYS.items():
        _library.impl(op, rule(device), key.name)
