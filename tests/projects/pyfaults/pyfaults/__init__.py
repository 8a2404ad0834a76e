"""Operators in Python alone that each hold one fault, and their clean twins `NAME_clean`: torch.ops.pyfaults.NAME."""

import fcntl
import os
import time

import torch
from torch import Tensor

LIBRARY = torch.library.Library("pyfaults", "DEF")
SCRATCH: list[Tensor] = []
HELD = []


def define(name, call, *, tensors=1, fake=torch.empty_like, backward=None, schema=None):
    """Register an operator: kernels for both devices, and unless they are None, a fake kernel and a gradient."""
    schema = schema or f"({', '.join('Tensor ' + 'xy'[place] for place in range(tensors))}) -> Tensor"
    LIBRARY.define(f"{name}{schema}")
    for key in ("CPU", "CUDA"):
        LIBRARY.impl(name, call, key)
    if fake is not None:
        torch.library.register_fake(f"pyfaults::{name}", lambda x, *_: fake(x), lib=LIBRARY)
    if backward is not None:
        torch.library.register_autograd(
            f"pyfaults::{name}", backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
        )


def pair(name, fault, clean, **common):
    """Define an operator and its twin, which differ in what `fault` and `clean` say of `define`."""
    define(name, **{**common, **fault})
    define(f"{name}_clean", **{**common, **clean})


def double(x):
    return x * 2


def mutate(x):
    return x.mul_(2).clone()


def as_if_contiguous(x):
    stride = torch.empty(x.shape).stride()
    return x.as_strided(x.shape, stride) * 2


def abort(x):
    os.abort()


def leave(x):
    os._exit(3)


def sleep(x):
    time.sleep(600)


def through_scratch(x):
    SCRATCH[:] = [x]
    time.sleep(0.002)
    return SCRATCH[0] * 2


def launch_nothing(x):
    if not x.numel():
        raise RuntimeError("pyfaults: invalid configuration argument")
    return x * 2


def into(factor):
    """Multiply in place, and return nothing."""

    def call(x):
        x.mul_(factor)

    return call


def some(dtype):
    """A fake result whose size is of data's making."""
    return lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=dtype)


def crowd(x):
    """As if it took so much memory that two processes of a run cannot do so at a time."""
    if not HELD:
        HELD.append(open(os.path.join(os.path.dirname(os.getcwd()), "crowd.lock"), "w"))
    try:
        fcntl.flock(HELD[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RuntimeError("CUDA out of memory. Tried to allocate 100 GiB") from None
    time.sleep(0.1)
    return x * 2


def gradient(formula):
    return lambda ctx, grad: formula(grad, *ctx.saved_tensors)


def square(x):
    return x * x


def noisy(grad, x):
    return 2 * grad * x + torch.rand_like(x) * 1e-12


right = {"backward": gradient(lambda grad, x: 2 * grad * x)}
both = {"backward": gradient(lambda grad, x, y: (grad * y, grad * x))}
pair("wrong_value", {"call": lambda x: x * 2.001}, {"call": double})
pair("fake_missing", {"fake": None}, {}, call=double)
pair("fake_wrong_shape", {"fake": lambda x: x.new_empty(x.shape + (1,))}, {}, call=double)
pair("undeclared_mutation", {"call": mutate}, {"call": double})
pair("aliasing_output", {"call": lambda x: x}, {"call": lambda x: x.clone()})
pair("strides_ignored", {"call": as_if_contiguous}, {"call": double})
pair("empty_launch", {"call": launch_nothing}, {"call": double})
pair("shared_scratch", {"call": through_scratch}, {"call": double})
pair("wrong_gradient", {"backward": gradient(lambda grad, x: grad * x)}, right, call=square)
pair("random_gradient", {"backward": gradient(noisy)}, right, call=square)
missing = {"backward": gradient(lambda grad, x, y: (grad * y, None))}
pair("gradient_missing", missing, both, call=torch.mul, tensors=2)
pair("no_gradient", {}, right, call=lambda x: square(x).detach())
pair("wrong_in_place", {"call": into(2.001)}, {"call": into(2)}, schema="(Tensor(a!) x) -> ()", fake=lambda x: None)
pair("fake_wrong_dtype", {"fake": some(torch.int64)}, {"fake": some(None)}, call=lambda x: x[x > 0])
pair("crowded", {"call": crowd}, {"call": crowd})
pair("crash", {"call": abort}, {"call": double})
pair("leaves", {"call": leave}, {"call": double})
pair("hang", {"call": sleep}, {"call": double})
define("unsampled", double)
