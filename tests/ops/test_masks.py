"""The clamps' masks of one bit an element, and that they alone are kept for the gradient on CUDA."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops.testing import DTYPES

ops = torch.ops.fusedops
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "clip_add": lambda x: fusedops.clip_add(x, -0.5, 0.75, 0.1),
    "scale_clamp_add": lambda x: fusedops.scale_clamp_add(x, 1.5, -0.5, 0.75, 0.1),
    "clip_add_operator": lambda x: ops.clip_add(x, -0.5, 0.75, 0.1),
    "scale_clamp_add_operator": lambda x: ops.scale_clamp_add(x, 1.5, -0.5, 0.75, 0.1),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def gradient_from_x(name: str, grad: Tensor, x: Tensor) -> Tensor:
    """By the operator that reads `x` again."""
    if name.startswith("clip_add"):
        return ops.clip_add_backward(grad, x, -0.5, 0.75)
    return ops.scale_clamp_add_backward(grad, x, 1.5, -0.5, 0.75)


def unpacked(mask: Tensor, elements: int) -> Tensor:
    return (mask[:, None] >> torch.arange(8, device=mask.device) & 1).view(-1)[:elements].bool()


@dtypes
def test_every_tail_and_alignment(dtype: torch.dtype, device: str) -> None:
    pool = torch.randn(96).to(device, dtype)
    grads = torch.randn(96).to(device, dtype)
    for offset in range(9):
        for size in range(40):
            x, grad = pool[offset:][:size], grads[2 * offset :][:size]
            out, mask = ops.clip_add_forward(x, -0.5, 0.75, 0.1)
            assert torch.equal(out, ops.clip_add(x, -0.5, 0.75, 0.1))
            assert torch.equal(unpacked(mask, size), (x >= -0.5) & (x <= 0.75))
            assert not unpacked(mask, 8 * mask.numel())[size:].any()
            expected = ops.clip_add_backward(grad, x, -0.5, 0.75)
            assert torch.equal(ops.masked_scale(grad, mask, [1], 1.0), expected)


@dtypes
def test_blocks_and_threads_meet(dtype: torch.dtype, device: str) -> None:
    for size in (2047, 2048, 2049, 300_007):
        x, grad = (torch.randn(size).to(device, dtype) for _ in range(2))
        out, mask = ops.scale_clamp_add_forward(x, -1.5, -0.5, 0.75, 0.1)
        assert torch.equal(out, ops.scale_clamp_add(x, -1.5, -0.5, 0.75, 0.1))
        expected = ops.scale_clamp_add_backward(grad, x, -1.5, -0.5, 0.75)
        assert torch.equal(ops.masked_scale(grad, mask, [1], -1.5), expected)


def test_strides_with_gaps_are_refused(device: str) -> None:
    mask = torch.zeros(1, dtype=torch.uint8, device=device)
    for stride in ([4, 1], [0, 1], [1, 1]):
        with pytest.raises(RuntimeError, match="stride must be that of elements that fill one run of memory"):
            ops.masked_scale(torch.ones(2, 3, device=device), mask, stride, 1.0)


def test_mask_with_gaps(device: str) -> None:
    mask = torch.arange(8, dtype=torch.uint8, device=device)
    grad = torch.randn(30, device=device)
    assert torch.equal(ops.masked_scale(grad, mask[::2], [1], 2.0), ops.masked_scale(grad, mask[::2].clone(), [1], 2.0))


def test_vmap(device: str) -> None:
    x, grad = (torch.randn(3, 5, 7, device=device) for _ in range(2))

    def both(x: Tensor, grad: Tensor) -> Any:
        out, mask = ops.clip_add_forward(x, -0.5, 0.75, 0.1)
        return out, mask, ops.masked_scale(grad, mask, [7, 1], 2.0)

    singles = [both(one, other) for one, other in zip(x, grad, strict=True)]
    for got, want in zip(torch.vmap(both)(x, grad), zip(*singles, strict=True), strict=True):
        assert torch.equal(got, torch.stack(want))
    mask = singles[0][1]
    one_mask = torch.vmap(lambda grad: ops.masked_scale(grad, mask, [1, 5], 2.0), in_dims=1)(grad.movedim(0, 1))
    assert torch.equal(one_mask, torch.stack([ops.masked_scale(other, mask, [1, 5], 2.0) for other in grad]))


@pytest.mark.parametrize("name", CALLS)
def test_batched_gradients(name: str, device: str) -> None:
    x = torch.randn(5, 7, device=device).t().requires_grad_()
    y = CALLS[name](x)
    seeds = torch.randn(3, 7, 5, device=device)
    (batched,) = torch.autograd.grad(y, x, seeds, is_grads_batched=True)
    expected = torch.stack([gradient_from_x(name, seed, x.detach()) for seed in seeds])
    assert torch.equal(batched, expected)


@pytest.mark.cuda
@dtypes
@pytest.mark.parametrize("name", CALLS)
def test_bits_are_what_is_kept_on_cuda(name: str, dtype: torch.dtype) -> None:
    for x in (torch.randn(1001), torch.randn(6, 10).t(), torch.randn(6, 10)[::2, 1::3], torch.randn(0, 3)):
        x = x.to("cuda", dtype).requires_grad_()  # noqa: PLW2901
        y = CALLS[name](x)
        (kept,) = y.grad_fn.saved_tensors
        assert kept.dtype == torch.uint8
        assert kept.shape == ((x.numel() + 7) // 8,)
        seed = torch.randn_like(y)
        (gradient,) = torch.autograd.grad(y, x, seed, create_graph=True)
        assert torch.equal(gradient, gradient_from_x(name, seed, x.detach()))
        assert gradient.stride() == y.stride()


@pytest.mark.cuda
@calls
def test_memory_until_the_gradient(call: Callable[[Tensor], Tensor]) -> None:
    elements = 2**22
    x = torch.randn(elements, device="cuda", requires_grad=True)
    y = call(x * 1)  # which nothing but the graph would keep
    before = torch.cuda.memory_allocated()
    y = y.detach()
    freed = before - torch.cuda.memory_allocated()
    assert elements // 8 <= freed < elements // 8 + 4096


@pytest.mark.cuda
@calls
def test_input_may_change_before_the_gradient(call: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(1000, device="cuda", requires_grad=True)
    (expected,) = torch.autograd.grad(call(x).sum(), x)
    changed = x * 1
    y = call(changed)
    changed.zero_()
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)


@pytest.mark.cuda
@calls
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_graph_holds_the_mask(call: Callable[[Tensor], Tensor], dynamic: bool) -> None:
    from torch._dynamo.backends.common import aot_autograd

    targets: list[str] = []

    def keep(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        targets.extend(str(node.target) for node in graph.graph.nodes if "fusedops" in str(node.target))
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=dynamic, backend=aot_autograd(fw_compiler=keep))
    for rows in (5, 6, 16):
        x = torch.randn(rows, 7, device="cuda").t().requires_grad_()
        (gradient,) = torch.autograd.grad(compiled(x).square().sum(), x)
        assert torch.equal(gradient, torch.autograd.grad(call(x).square().sum(), x)[0])
    assert [target for target in targets if "_forward" in target]
    assert [target for target in targets if "masked_scale" in target]
    assert not [target for target in targets if "_backward" in target]
    assert len(targets) == (2 if dynamic else 6)
