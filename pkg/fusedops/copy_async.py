"""A copy on a tensor's device, in the order of a stream, for which the host never waits."""

from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor

from fusedops import _autograd
from fusedops._autograd import register_autograd
from fusedops._registration import check_like, register_pointwise_vmap

_copy_async = torch.ops.fusedops.copy_async.default
_copy_async_out = torch.ops.fusedops.copy_async_out.default

_PLAIN = (Tensor, torch.nn.Parameter)


def copy_async(x: Tensor, out: Tensor | None = None) -> Tensor:
    """A copy of `x` on its device, queued on the current stream; the host does not wait for it.

    `x` has any dtype, shape and strides, on CPU or CUDA; the result has its shape and dtype and lies as
    `torch.empty_like(x)`. With `out`, of the same shape, dtype and device and with any strides, the
    copy goes there and `out` is returned; it may be `x`'s memory, and then nothing is done, but not a
    part of it. Where both lie densely and alike a CUDA copy is one `cudaMemcpyAsync` and a CPU copy a
    `memcpy`, split over torch's threads.

    On CUDA the caching allocator is told (`Tensor.record_stream`) that the current stream uses `x` and
    `out`: either may have been allocated on another stream and be dropped right after the call, and
    its memory is not given out again before the copy has run. What stays with the caller is order: a
    stream that is still to write `x`, or to read what `out` held, must be waited for by the current
    stream, with an event or `wait_stream`, before the call. Nothing is recorded while a CUDA graph
    is captured or under `torch.compile`, where memory has other owners.

    The gradient is passed on as it is. With `out` there is none: like torch's own `out=` it
    refuses an `x` or `out` that requires gradients while they are being recorded. Raises RuntimeError
    for that, for an `out` of another shape, dtype or device, and for one that shares a part of `x`'s
    memory (also where the two have different strides and their ranges of memory meet).
    """
    if out is None:
        result = _call(x)
    else:
        _copy_async_out(x, out)
        result = out
    if x.is_cuda:
        _hold(x, out)
    return result


def _hold(x: Tensor, out: Tensor | None) -> None:
    if torch.compiler.is_compiling() or type(x) not in _PLAIN or torch.cuda.is_current_stream_capturing():
        return
    stream = torch.cuda.current_stream(x.device)
    for used in (x, out):
        if used is not None:
            _unwrapped(used).record_stream(stream)


def _unwrapped(tensor: Tensor) -> Tensor:
    """The tensor that torch.func's transforms have wrapped, if so: the memory is its."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


@torch.library.register_fake("fusedops::copy_async")
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.register_fake("fusedops::copy_async_out")
def _(x: Tensor, out: Tensor) -> None:
    check_like("copy_async_out", "out", out, "x", x)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:  # noqa: ARG001
    return (grad,)


def _write(keyset: Any, x: Tensor, out: Tensor) -> None:
    """What torch's in-place operators do besides writing: refuse gradients, and count the change of `out`."""
    if torch.is_grad_enabled() and (x.requires_grad or out.requires_grad):
        raise RuntimeError(
            "fusedops::copy_async_out: x and out must not require gradients, which a copy into out does "
            "not carry; detach them, or call it under torch.no_grad()"
        )
    with _autograd._AutoDispatchBelowAutograd():  # noqa: SLF001
        _copy_async_out.redispatch(keyset & _autograd._after_autograd_keyset, x, out)  # noqa: SLF001
    torch.autograd.graph.increment_version(out)


_call = register_autograd(_copy_async, _backward, _save)
if _autograd._SingleLevelFunction is not None:  # noqa: SLF001
    _autograd._library.impl(_copy_async_out, _write, "Autograd", with_keyset=True)  # noqa: SLF001
register_pointwise_vmap("fusedops::copy_async", _copy_async, tensors=1)
