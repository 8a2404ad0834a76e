"""Sliding-window attention: what it must be beyond its samples, and under the rest of torch."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import fusedops
from fusedops import reference
from fusedops.testing.local_attention import TOLERANCES


def heads(*shape: int, device: str, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(shape, dtype=torch.float64, device=device).to(dtype) for _ in range(3)]


def assert_reference(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    rtol, atol = TOLERANCES[dtype]
    torch.testing.assert_close(actual.double(), expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)


@pytest.mark.parametrize("window", [0, 1, 31, 64, 200])
@pytest.mark.parametrize("causal", [False, True])
def test_windows(window: int, causal: bool, device: str) -> None:
    for dim in (1, 20, 64, 100):
        tensors = heads(1, 2, 150, dim, device=device, dtype=torch.float32)
        result = fusedops.local_attention(*tensors, window, causal)
        expected = reference.local_attention(*(t.double() for t in tensors), window, causal)
        assert_reference(result, expected, torch.float32)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_all_is_full_attention(causal: bool, device: str) -> None:
    tensors = [t.requires_grad_() for t in heads(2, 3, 70, 16, device=device)]
    result = fusedops.local_attention(*tensors, 10**12, causal)
    expected = scaled_dot_product_attention(*tensors, is_causal=causal)
    torch.testing.assert_close(result, expected)
    weight = torch.randn_like(result)
    torch.testing.assert_close(
        torch.autograd.grad(result, tensors, weight), torch.autograd.grad(expected, tensors, weight)
    )


def test_gradients_are_autograds_of_the_reference(device: str) -> None:
    for causal in (False, True):
        tensors = [t.requires_grad_() for t in heads(1, 2, 90, 12, device=device)]
        result = fusedops.local_attention(*tensors, 9, causal, 0.4)
        expected = reference.local_attention(*tensors, 9, causal, 0.4)
        weight = torch.randn_like(result)
        actual_grads = torch.autograd.grad(result, tensors, weight)
        torch.testing.assert_close(actual_grads, torch.autograd.grad(expected, tensors, weight))


def test_second_gradients_over_many_blocks(device: str) -> None:
    tensors = [t.requires_grad_() for t in heads(1, 1, 75, 4, device=device)]

    def twice(attention: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(attention(*tensors, 7, causal=True).square().sum(), tensors, create_graph=True)
        return torch.autograd.grad(sum(grad.sin().sum() for grad in first), tensors)

    torch.testing.assert_close(twice(fusedops.local_attention), twice(reference.local_attention))


def test_second_gradients_of_16_bit_tensors(device: str) -> None:
    tensors = [t.requires_grad_() for t in heads(1, 1, 20, 8, device=device, dtype=torch.bfloat16)]
    first = torch.autograd.grad(fusedops.local_attention(*tensors, 3).sum(), tensors, create_graph=True)
    second = torch.autograd.grad(sum(grad.float().square().sum() for grad in first), tensors)
    assert all(grad.dtype == torch.bfloat16 and grad.isfinite().all() for grad in second)


def test_gradient_by_way_of_the_sums(device: str) -> None:
    tensors = [t.requires_grad_() for t in heads(1, 1, 20, 8, device=device)]
    _, lse = torch.ops.fusedops.local_attention_forward(*tensors, 3)
    _, expected = reference.local_attention_forward(*tensors, 3)
    actual_grads = torch.autograd.grad(lse.sum(), tensors[:2])
    torch.testing.assert_close(actual_grads, torch.autograd.grad(expected.sum(), tensors[:2]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [0, 1, 2], ids=["q", "k", "v"])
def test_rows_that_do_not_see_it_stay_finite(at: int, value: float, device: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        tensors = heads(1, 1, 200, 24, device=device, dtype=dtype)
        tensors[at][0, 0, 100, 5] = value
        result = fusedops.local_attention(*tensors, 10)
        assert result[0, 0, :90].isfinite().all()
        assert result[0, 0, 111:].isfinite().all()
        assert_reference(result, reference.local_attention(*(t.double() for t in tensors), 10), dtype)


def test_result_and_gradients_lie_as_their_inputs(device: str) -> None:
    x = torch.randn(2, 9, 3, 2, 8, device=device, requires_grad=True)
    q, k, v = x.unbind(2)
    result = fusedops.local_attention(*(t.transpose(1, 2) for t in (q, k, v)), 2)
    assert result.transpose(1, 2).is_contiguous()
    q = torch.randn(2, 9, 3, 8, device=device).transpose(1, 2).requires_grad_()
    assert fusedops.local_attention(q, q, q, 2).stride() == q.stride()
    columns = torch.randn(1, 2, 4, 9, device=device).mT
    assert fusedops.local_attention(columns, columns, columns, 2).is_contiguous()


def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return fusedops.local_attention(q, k, v, 3, causal=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic: bool, device: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (11, 17):
        tensors = [t.transpose(1, 2).requires_grad_() for t in heads(2, rows, 3, 8, device=device)]
        result, expected = compiled(*tensors), call(*tensors)
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()
        weight = torch.randn_like(expected)
        torch.testing.assert_close(
            torch.autograd.grad(result, tensors, weight), torch.autograd.grad(expected, tensors, weight)
        )


def test_export(device: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return call(q, k, v)

    rows = {2: torch.export.Dim("rows", min=2)}
    exported = torch.export.export(
        Module(), tuple(heads(2, 3, 11, 8, device=device)), dynamic_shapes=(rows, rows, rows)
    )
    tensors = heads(2, 3, 19, 8, device=device)
    torch.testing.assert_close(exported.module()(*tensors), call(*tensors))


@pytest.mark.parametrize("op", [call, torch.ops.fusedops.local_attention.default])
def test_vmap_and_func_grad(op: Callable[..., Tensor], device: str) -> None:
    q, k, v = heads(4, 2, 3, 7, 5, device=device)
    shared = v[0]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return op(q, k, v) if op is call else op(q, k, v, 3, causal=True)

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v).square().sum()

    result = torch.vmap(attend, in_dims=(0, 2, None))(q, k.movedim(0, 2), shared)
    each = [attend(q[i], k[i], shared) for i in range(4)]
    torch.testing.assert_close(result, torch.stack(each))
    gradient = torch.vmap(torch.func.grad(loss), in_dims=(0, 0, None))(q, k, shared)
    leaf = q.clone().requires_grad_()
    total = sum(loss(leaf[i], k[i], shared) for i in range(4))
    torch.testing.assert_close(gradient, torch.autograd.grad(total, leaf, create_graph=True)[0])

    def slope(q: Tensor) -> Tensor:
        return torch.func.grad(loss)(q, k[0], shared).sin().sum()

    one = q[0].clone().requires_grad_()
    (first,) = torch.autograd.grad(loss(one, k[0], shared), one, create_graph=True)
    expected = torch.autograd.grad(first.sin().sum(), one)[0]
    torch.testing.assert_close(torch.func.grad(slope)(q[0]), expected)


@pytest.mark.parametrize("op", [call, lambda *t: torch.ops.fusedops.local_attention(*t, 3, causal=True)])
def test_autocast(op: Callable[..., Tensor], device: str) -> None:
    tensors = [t.requires_grad_() for t in heads(1, 2, 9, 8, device=device, dtype=torch.float32)]
    with torch.autocast(device, torch.bfloat16):
        result = op(*tensors)
        assert op(*(t.double() for t in tensors)).dtype == torch.float64
        with torch.inference_mode():
            assert op(*tensors).dtype == torch.bfloat16
    assert result.dtype == torch.bfloat16
    expected = op(*(t.bfloat16() for t in tensors))
    assert torch.equal(result, expected)
    assert all(grad.dtype == torch.float32 for grad in torch.autograd.grad(result.float().sum(), tensors))


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_memory_is_linear_in_rows(dtype: torch.dtype) -> None:
    def peak(rows: int) -> int:
        tensors = [t.requires_grad_() for t in heads(1, 1, rows, 64, device="cuda", dtype=dtype)]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        fusedops.local_attention(*tensors, 256).sum().backward()
        return torch.cuda.max_memory_allocated() - before

    assert peak(2**16) <= 4.2 * peak(2**14)


@pytest.mark.cuda
def test_more_blocks_than_a_grid_is_high() -> None:
    rows = 65_535 * 128 + 77
    q, k, v = heads(1, 1, rows, 1, device="cuda", dtype=torch.float16)
    result = fusedops.local_attention(q, k, v, 2)
    end = slice(rows - 100, rows)
    expected = reference.local_attention(*(t[:, :, end].double() for t in (q, k, v)), 2)
    assert_reference(result[:, :, end][:, :, 2:], expected[:, :, 2:], torch.float16)
