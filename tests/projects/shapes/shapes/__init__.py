"""Operators that are not pointwise, in Python alone, each with a twin NAME_wrong that holds a fault: torch.ops.shapes."""

import torch

LIBRARY = torch.library.Library("shapes", "DEF")


def define(name, schema, call, fake, backward=None):
    """Register an operator with one kernel for both devices, a fake kernel, and unless it is None a gradient."""
    LIBRARY.define(f"{name}{schema}")
    for key in ("CPU", "CUDA"):
        LIBRARY.impl(name, call, key)
    torch.library.register_fake(f"shapes::{name}", fake, lib=LIBRARY)
    if backward is not None:
        formula, save = backward
        torch.library.register_autograd(f"shapes::{name}", formula, setup_context=save)


def pair(name, schema, right, wrong, fake, backward=None):
    define(name, schema, right, fake, backward)
    define(f"{name}_wrong", schema, wrong, fake, backward)


def product(a, b):
    torch._check(a.dim() == 2 and b.dim() == 2 and a.shape[1] == b.shape[0], lambda: "shapes: b must have a's columns")
    return a @ b


def product_wrong(a, b):
    return a @ b if a.is_contiguous() else a.contiguous().mT.reshape(a.shape) @ b


def product_gradient(ctx, grad):
    a, b = ctx.saved_tensors
    return grad @ b.mT, a.mT @ grad


def keep(x, bound):
    """Where x is above the bound: an int64 result whose size is of data's making."""
    return (x > bound).nonzero().flatten()


def keep_wrong(x, bound):
    found = keep(x, bound)
    return torch.where(found > 2**20, found + 1, found)  # by less than a float's tolerance


def keep_fake(x, bound):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def order(x):
    """Values and where they were: a float and an integer result."""
    values, places = x.sort(dim=-1, stable=True)
    return values.clone(), places


def order_wrong(x):
    values, places = order(x)
    return values, places.flip(-1)


def order_save(ctx, inputs, output):
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def order_gradient(ctx, grad, _):
    (places,) = ctx.saved_tensors
    return torch.zeros_like(grad).scatter(-1, places, grad)


def halved(x):
    """In half precision alone."""
    torch._check(x.dtype in (torch.float16, torch.bfloat16), lambda: "shapes: x must be a half")
    return (x.float() * 0.3).to(x.dtype)


def halved_wrong(x):
    return ((x.float() * 0.3).to(x.dtype).float() * 1.02).to(x.dtype)


def store(out, x):
    """Writes, and returns nothing."""
    out.copy_(x * 2)


def store_wrong(out, x):
    out.copy_(x * 2.001)


def laid(x):
    """The elements in the order of their strides, as a mask of bits may have them."""
    return torch.empty_like(x).copy_(x).as_strided((x.numel(),), (1,)).clone()


def laid_wrong(x):
    return x.as_strided((x.numel(),), (1,)).clone()


def save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


pair(
    "product",
    "(Tensor a, Tensor b) -> Tensor",
    product,
    product_wrong,
    lambda a, b: a.new_empty(a.shape[0], b.shape[1]),
    (product_gradient, save),
)
pair("keep", "(Tensor x, float bound) -> Tensor", keep, keep_wrong, keep_fake)
pair(
    "order",
    "(Tensor x) -> (Tensor, Tensor)",
    order,
    order_wrong,
    lambda x: (torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)),
    (order_gradient, order_save),
)
pair("halved", "(Tensor x) -> Tensor", halved, halved_wrong, torch.empty_like)
pair("store", "(Tensor(a!) out, Tensor x) -> ()", store, store_wrong, lambda out, x: None)
pair("laid", "(Tensor x) -> Tensor", laid, laid_wrong, lambda x: x.new_empty(x.numel()))
