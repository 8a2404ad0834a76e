"""Gradient formulas, registered with the dispatcher at the least that a formula in Python can cost.

`torch.library.register_autograd` does the same for any operator, but enters Python twice a call whether
or not a gradient is needed, and `torch.func.grad` cannot pass through it. What is used here instead has
been in torch since 2.0; where a later torch lacks it, that function is what registers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

try:
    from torch._C import (
        _after_autograd_keyset,
        _are_functorch_transforms_active,
        _AutoDispatchBelowAutograd,
        _is_any_autocast_enabled,
    )
    from torch._functorch.autograd_function import enable_single_level_autograd_function
    from torch.autograd.function import _SingleLevelFunction
except ImportError:
    _SingleLevelFunction = None

try:
    from torch._C import _any_requires_grad
except ImportError:  # torch 2.4

    def _any_requires_grad(*args: Any) -> bool:
        return any(isinstance(arg, Tensor) and arg.requires_grad for arg in args)


_library = torch.library.Library("fusedops", "FRAGMENT")

Backward = Callable[..., Any]
SetupContext = Callable[[Any, tuple[Any, ...], Any], None]


class Formula(NamedTuple):
    """An overload, and its gradient as `register_autograd` takes it."""

    op: Any
    backward: Backward
    setup_context: SetupContext


def register_autograd(
    op: Any, backward: Backward, setup_context: SetupContext, *, on_cuda: Formula | None = None
) -> Callable[..., Any]:
    """Gives the overload `op` a gradient, and returns a function that calls it at less cost.

    `setup_context(ctx, inputs, output)` and `backward(ctx, *grads)` are as in
    `torch.library.register_autograd`. The function takes what `op` takes, all of it and by position. It
    passes by what the dispatcher would ask of Python for a call without gradients. `backward` returns a tuple.

    `on_cuda` is another operator of the same arguments, the first of whose results is that of `op`. It is
    called instead where a gradient is needed and the first argument is on CUDA, except under functorch's
    transforms: what it makes besides is for the gradient.
    """
    schema = op._schema  # noqa: SLF001 (there is no public name for it)
    if _SingleLevelFunction is None:
        torch.library.register_autograd(schema.name, backward, setup_context=setup_context)
        return op
    formula, keyed = _functions(Formula(op, backward, setup_context))
    cuda_formula, cuda_keyed = _functions(on_cuda, only_first=True) if on_cuda else (formula, keyed)
    arguments = schema.arguments
    grad_enabled, compiling = torch.is_grad_enabled, torch.compiler.is_compiling

    def kernel(keyset: Any, *args: Any) -> Any:
        # The dispatcher leaves out arguments that have their default value.
        args += tuple(argument.default_value for argument in arguments[len(args) :])
        if not (grad_enabled() and _any_requires_grad(*args)):
            with _AutoDispatchBelowAutograd():
                return op.redispatch(keyset & _after_autograd_keyset, *args)
        if not _are_functorch_transforms_active():
            return (cuda_keyed if args[0].is_cuda else keyed).apply(*args, keyset)
        # The dispatcher has come here for one level of the transforms, and goes on to the next below.
        with enable_single_level_autograd_function():
            return keyed.apply(*args, keyset)

    _library.impl(op, kernel, "Autograd", with_keyset=True)

    below = _below_autograd(op)

    def call(*args: Any) -> Any:
        if compiling() or _are_functorch_transforms_active() or _is_any_autocast_enabled():
            return op(*args)
        if grad_enabled() and _any_requires_grad(*args):
            return (cuda_formula if args[0].is_cuda else formula).apply(*args)
        return below(*args)

    return call


def _below_autograd(op: Any) -> Callable[..., Any]:
    """`op` under `_AutoDispatchBelowAutograd`, whose making, entering and leaving take twice the time of this."""
    call, key = op._op, torch._C.DispatchKey.AutogradFunctionality  # noqa: SLF001
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded  # noqa: SLF001
    exclude = torch._C._dispatch_tls_set_dispatch_key_excluded  # noqa: SLF001

    def below(*args: Any) -> Any:
        if excluded(key):
            return call(*args)
        exclude(key, True)  # noqa: FBT003
        try:
            return call(*args)
        finally:
            exclude(key, False)  # noqa: FBT003

    return below


def _functions(made: Formula, *, only_first: bool = False) -> tuple[Any, Any]:
    """Two autograd functions: of the operator's arguments, and of them and the keys that are left to dispatch with.

    With `only_first` the first of its results is the function's.
    """
    op, backward, setup_context = made

    below = _below_autograd(op)

    def forward(ctx: Any, *args: Any) -> Any:
        output = below(*args)
        setup_context(ctx, args, output)
        return output[0] if only_first else output

    def keyed_forward(ctx: Any, *args: Any) -> Any:
        inputs, keyset = args[:-1], args[-1]
        # An autograd function's forward has gradients off, which are for the levels below to record.
        with torch.set_grad_enabled(_are_functorch_transforms_active()), _AutoDispatchBelowAutograd():
            output = op.redispatch(keyset & _after_autograd_keyset, *inputs)
        setup_context(ctx, inputs, output)
        return output[0] if only_first else output

    def keyed_backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return (*backward(ctx, *grads), None)

    def function(forward: Any, backward: Any) -> Any:
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        # Compiled autograd asks for it; only torch.autograd.Function, which this is not, has one.
        members["_compiled_autograd_key"] = staticmethod(lambda ctx: (ctx._autograd_function_id,))  # noqa: SLF001
        made = type(op.__name__, (_SingleLevelFunction,), members)
        made._backward_cls.apply = backward  # noqa: SLF001 (what the engine calls; torch's own looks `backward` up)
        return made

    return function(forward, backward), function(keyed_forward, keyed_backward)
