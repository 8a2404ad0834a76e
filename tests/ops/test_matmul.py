"""Products of matrices: shapes, layouts and rounding, and what differentiates, compiles and batches them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops.testing import DTYPES

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)

SHAPES = {
    "vector_vector": ((5,), (5,)),
    "vector_matrix": ((5,), (5, 3)),
    "matrix_vector": ((4, 5), (5,)),
    "vector_batch": ((5,), (2, 3, 5, 4)),
    "batch_vector": ((2, 3, 4, 5), (5,)),
    "matrix_matrix": ((4, 5), (5, 3)),
    "matrix_batch": ((4, 5), (2, 5, 3)),
    "batch_matrix": ((2, 4, 5), (5, 3)),
    "one_row_batch": ((7, 1, 5), (5, 3)),
    "broadcast": ((2, 1, 4, 5), (3, 5, 2)),
    "no_sums": ((4, 0), (0, 3)),
    "no_rows": ((2, 0, 5), (5, 3)),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def integers(*shape: int, dtype: torch.dtype, device: str) -> Tensor:
    """Values whose sums of products are exact in float32, so that the order of a sum changes nothing."""
    return torch.randint(-2, 3, shape).to(device, dtype)


def assert_exact(a: Tensor, b: Tensor) -> None:
    """The exact product, rounded once."""
    result = fusedops.matmul(a, b)
    assert result.is_contiguous()
    assert torch.equal(result, torch.matmul(a.double(), b.double()).to(a.dtype))


def both(*shapes: tuple[int, ...], device: str) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True) for shape in shapes)


@shapes
@dtypes
def test_shapes_are_torchs(shape: tuple[tuple[int, ...], ...], dtype: torch.dtype, device: str) -> None:
    assert_exact(*(integers(*one, dtype=dtype, device=device) for one in shape))


@dtypes
@pytest.mark.parametrize("size", [1, 2, 7, 8, 31, 33, 64, 129])
def test_every_layout_and_alignment(size: int, dtype: torch.dtype, device: str) -> None:
    for offset in (0, 1, 8):
        pool = integers(offset + 4 * 140 * 140, dtype=dtype, device=device)[offset:]
        left, right = pool[: 136 * 136].view(136, 136), pool[136 * 136 : 2 * 136 * 136].view(136, 136)
        for a in (left[: size + 1, :size], left[:size, : size + 1].t(), left[: 2 * size + 1 : 2, :size]):
            for b in (right[:size, : size + 2], right[: size + 2, :size].t()):
                assert_exact(a[:, : b.shape[0]], b)


@dtypes
def test_batches_in_place(dtype: torch.dtype, device: str) -> None:
    a = integers(3, 4, 5, 8, dtype=dtype, device=device)
    b = integers(3, 4, 8, 6, dtype=dtype, device=device)
    assert_exact(a, b)
    assert_exact(a.transpose(0, 1), b.transpose(0, 1))
    assert_exact(a[:, :, None], b[:, None])
    assert_exact(a[:, :1], b)
    assert_exact(a[:1, 2:3], b[..., ::2])
    assert_exact(a.expand(2, 3, 4, 5, 8), b[1:2])


@dtypes
def test_rows_that_overlap_or_repeat(dtype: torch.dtype, device: str) -> None:
    pool, b = integers(400, dtype=dtype, device=device), integers(8, 16, dtype=dtype, device=device)
    for strides in ((1, 1), (3, 1), (1, 3), (0, 1), (1, 0), (8, 1), (0, 0)):
        assert_exact(pool.as_strided((40, 8), strides), b)
        assert_exact(b.t(), pool.as_strided((8, 40), strides))


def test_special_values(device: str) -> None:
    inf, nan = float("inf"), float("nan")
    a = torch.tensor([[inf, 0.0], [nan, 0.0], [1.0, 2.0]], device=device)
    b = torch.tensor([[0.0, 1.0], [1.0, 1.0]], device=device)
    expected = torch.tensor([[nan, inf], [nan, nan], [2.0, 3.0]], device=device)
    assert torch.equal(fusedops.matmul(a, b).nan_to_num(9.0), expected.nan_to_num(9.0))


@shapes
def test_gradients_are_torchs(shape: tuple[tuple[int, ...], ...], device: str) -> None:
    tensors = both(*shape, device=device)
    result, expected = fusedops.matmul(*tensors), torch.matmul(*tensors)
    seed = torch.randn_like(expected)
    actual = torch.autograd.grad(result, tensors, seed, create_graph=True)
    torch.testing.assert_close(actual, torch.autograd.grad(expected, tensors, seed, create_graph=True))
    assert torch.autograd.gradgradcheck(fusedops.matmul, tensors)


def test_gradient_of_one_factor(device: str) -> None:
    a, b = both((2, 3), (3, 4), device=device)
    fusedops.matmul(a.detach(), b).sum().backward()
    assert a.grad is None
    assert b.grad is not None


@shapes
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(shape: tuple[tuple[int, ...], ...], dynamic: bool, device: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(fusedops.matmul, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    tensors = both(*shape, device=device)
    result, expected = compiled(*tensors), fusedops.matmul(*tensors)
    torch.testing.assert_close(result, expected)
    seed = torch.randn_like(expected)
    actual = torch.autograd.grad(result, tensors, seed)
    torch.testing.assert_close(actual, torch.autograd.grad(expected, tensors, seed))


class Product(torch.nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return fusedops.matmul(a, b)


def test_export(device: str) -> None:
    a, b = (torch.randn(shape, device=device) for shape in ((2, 4, 5), (5, 3)))
    batch = {0: torch.export.Dim("batch", min=2, max=64)}
    program = torch.export.export(Product(), (a, b), dynamic_shapes={"a": batch, "b": None})
    more = torch.randn(7, 4, 5, device=device)
    torch.testing.assert_close(program.module()(more, b), fusedops.matmul(more, b))


@pytest.mark.parametrize("in_dims", [(0, 0), (1, None), (None, 2), (2, 1)])
def test_vmap(in_dims: tuple[int | None, ...], device: str) -> None:
    def factor(shape: tuple[int, ...], dim: int | None) -> Tensor:
        one = torch.randn(shape, device=device)
        return one if dim is None else torch.stack([one, one * 2, one - 1], dim)

    for shapes in (((4, 5), (5, 2)), ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((2, 1, 4, 5), (6, 5, 3))):
        tensors = [factor(*one) for one in zip(shapes, in_dims, strict=True)]
        actual = torch.vmap(fusedops.matmul, in_dims)(*tensors)
        torch.testing.assert_close(actual, torch.vmap(torch.matmul, in_dims)(*tensors))


def test_func_grad(device: str) -> None:
    def loss(product: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda a, b: product(a, b).square().sum()

    a, b = (torch.randn(shape, dtype=torch.float64, device=device) for shape in ((3, 2, 4), (4, 3)))
    actual, expected = (
        torch.vmap(torch.func.grad(loss(product), argnums=(0, 1)), (0, None))(a, b)
        for product in (fusedops.matmul, torch.matmul)
    )
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast(dtype: torch.dtype, device: str) -> None:
    a = torch.randn(3, 4, device=device, requires_grad=True)
    b = torch.randn(4, 2, device=device, dtype=torch.bfloat16)
    with torch.autocast(device, dtype):
        result = fusedops.matmul(a, b)
        assert fusedops.matmul(a.double(), b.double()).dtype == torch.float64
    assert result.dtype == dtype
    torch.testing.assert_close(result, fusedops.matmul(a.to(dtype), b.to(dtype)))
    result.sum().backward()
    assert a.grad is not None
    assert a.grad.dtype == torch.float32


def test_function_refuses_what_has_no_dimension(device: str) -> None:
    with pytest.raises(RuntimeError, match="a must have 2 or more dimensions"):
        fusedops.matmul(torch.ones((), device=device), torch.ones(2, device=device))
