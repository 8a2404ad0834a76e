"""The unsharp mask: borders, layout, its adjoint, and its place in the rest of torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops import reference
from fusedops.testing import DTYPES, OPERATORS

KERNEL_SIZES = pytest.mark.parametrize("kernel_size", [3, 5])
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_reference(name: str, x: Tensor, *numbers: float) -> None:
    operator = OPERATORS[name]
    rtol, atol = operator.tolerances[x.dtype]
    expected = operator.reference(x.double(), *numbers)
    torch.testing.assert_close(operator.op(x, *numbers).double(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", ["edge_enhance", "edge_enhance_backward"])
@KERNEL_SIZES
@dtypes
def test_every_width_and_height(name: str, kernel_size: int, dtype: torch.dtype, device: str) -> None:
    vector = 16 // dtype.itemsize
    least = kernel_size // 2 + 1
    for height in (least, least + 1, 5, 18, 35):
        for width in sorted({least, least + 1, vector, 2 * vector, 3 * vector, 2 * vector + 1, 33 * vector, 515}):
            if width >= least:
                assert_reference(name, torch.randn(2, 1, height, width).to(device, dtype), 0.9, 1.1, kernel_size)


@KERNEL_SIZES
@dtypes
def test_misaligned_rows(kernel_size: int, dtype: torch.dtype, device: str) -> None:
    pool = torch.randn(6 * 32 + 9).to(device, dtype)
    for offset in range(9):
        x = pool[offset:][: 6 * 32].view(1, 1, 6, 32)
        assert_reference("edge_enhance", x, 0.9, 1.1, kernel_size)


@KERNEL_SIZES
def test_a_value_does_not_depend_on_where_it_stands(kernel_size: int, device: str) -> None:
    x = torch.randn(1, 1, 70, 96, device=device)
    whole = fusedops.edge_enhance(x, 0.9, 1.1, kernel_size)
    for top, left in ((1, 0), (16, 1), (33, 7)):
        part = fusedops.edge_enhance(x[..., top : top + 20, left : left + 37], 0.9, 1.1, kernel_size)
        inner = whole[..., top + 2 : top + 18, left + 2 : left + 35]
        assert torch.equal(part[..., 2:18, 2:35], inner)


@KERNEL_SIZES
def test_a_plain_image_stays(kernel_size: int, device: str) -> None:
    x = torch.full((2, 3, 9, 16), 0.7, dtype=torch.float64, device=device)
    torch.testing.assert_close(fusedops.edge_enhance(x, 5.0, 1.3, kernel_size), x)


@KERNEL_SIZES
@pytest.mark.parametrize("shape", [(2, 3, 7, 16), (1, 1, 3, 3), (1, 2, 33, 21)])
def test_backward_is_the_adjoint(kernel_size: int, shape: tuple[int, ...], device: str) -> None:
    x, y = (torch.randn(shape, dtype=torch.float64, device=device) for _ in range(2))
    forward = fusedops.edge_enhance(x, 0.9, 1.1, kernel_size)
    backward = torch.ops.fusedops.edge_enhance_backward(y, 0.9, 1.1, kernel_size)
    torch.testing.assert_close((forward * y).sum(), (x * backward).sum())


@dtypes
def test_gradient_is_that_of_the_reference(dtype: torch.dtype, device: str) -> None:
    x = torch.randn(2, 3, 9, 16).to(device, dtype).requires_grad_()
    seed = torch.randn_like(x)
    (gradient,) = torch.autograd.grad(fusedops.edge_enhance(x, 0.9, 1.1), x, seed)
    wide = x.detach().double().requires_grad_()
    (expected,) = torch.autograd.grad(reference.edge_enhance(wide, 0.9, 1.1), wide, seed.double())
    rtol, atol = OPERATORS["edge_enhance"].tolerances[dtype]
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient.double(), expected, rtol=rtol, atol=atol)


def test_third_derivative_exists(device: str) -> None:
    x = torch.randn(1, 1, 5, 8, dtype=torch.float64, device=device, requires_grad=True)
    weight = torch.ones_like(x, requires_grad=True)
    (first,) = torch.autograd.grad(fusedops.edge_enhance(x, 0.9, 1.1), x, weight, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), weight, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), weight)
    assert third.shape == x.shape


def test_result_is_contiguous(device: str) -> None:
    x = torch.randn(2, 3, 5, 8, device=device).contiguous(memory_format=torch.channels_last)
    result = fusedops.edge_enhance(x, 0.9, 1.1)
    assert result.is_contiguous()
    assert torch.equal(result, fusedops.edge_enhance(x.contiguous(), 0.9, 1.1))


def test_no_channels(device: str) -> None:
    assert fusedops.edge_enhance(torch.ones(2, 0, 5, 7, device=device), 0.9, 1.1).shape == (2, 0, 5, 7)


def test_too_long_is_refused(device: str) -> None:
    x = torch.ones(1, 1, 2, 1, device=device).expand(1, 1, 2, 2**28 + 1)
    with pytest.raises(RuntimeError, match=r"x must have .* at most 2\^28, but got \[1, 1, 2, 268435457\]"):
        fusedops.edge_enhance(x, 0.9, 1.1)


CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "default_window": lambda x: fusedops.edge_enhance(x, 0.9, 1.1),
    "larger_window": lambda x: fusedops.edge_enhance(x.sin(), -0.4, 0.7, 5).exp(),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def value_and_gradient(call: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    y = call(x)
    return y.detach(), torch.autograd.grad(y.square().sum(), x)[0]


@calls
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(call: Callable[[Tensor], Tensor], dynamic: bool, device: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for shape in ((2, 3, 7, 9), (1, 2, 8, 12)):
        x = torch.randn(shape, device=device)
        torch.testing.assert_close(value_and_gradient(compiled, x), value_and_gradient(call, x))


def test_export(device: str) -> None:
    class Sharpen(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return fusedops.edge_enhance(x, 0.9, 1.1, 5)

    dims = {d: torch.export.Dim(f"d{d}", min=3, max=64) for d in (2, 3)}
    x = torch.randn(2, 3, 7, 9, device=device)
    exported = torch.export.export(Sharpen(), (x,), dynamic_shapes={"x": dims}).module()
    other = torch.randn(2, 3, 12, 8, device=device)
    assert torch.equal(exported(other), fusedops.edge_enhance(other, 0.9, 1.1, 5))


@calls
@pytest.mark.parametrize("dim", [0, 2, -1])
def test_vmap_and_grad(call: Callable[[Tensor], Tensor], dim: int, device: str) -> None:
    x = torch.randn(4, 2, 3, 6, 8, device=device).movedim(0, dim)
    alone = torch.stack([call(one) for one in x.unbind(dim)])
    torch.testing.assert_close(torch.func.vmap(call, in_dims=dim)(x), alone)
    gradient = torch.func.grad(lambda x: call(x).square().sum())
    each = torch.stack([value_and_gradient(call, one)[1] for one in x.unbind(dim)])
    torch.testing.assert_close(torch.func.vmap(gradient, in_dims=dim)(x), each)


@pytest.mark.cuda
@pytest.mark.parametrize("width", [46_342, 46_344], ids=["elements", "vectors"])
def test_a_plane_beyond_2_to_31_elements(width: int) -> None:
    height = 46_400
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 5 * height * width:
        pytest.skip("needs 11 GB of free GPU memory")
    x = torch.zeros(1, 1, height, width, dtype=torch.float16, device="cuda")
    tops = (0, 2**31 // width - 8, height - 32)
    for top in tops:
        x[..., top : top + 32, :] = torch.randn(32, width, device="cuda").half()
    result = fusedops.edge_enhance(x, 0.9, 1.1, 5)
    for top in tops:
        part = fusedops.edge_enhance(x[..., top : top + 32, :], 0.9, 1.1, 5)
        assert torch.equal(result[..., top + 2 : top + 30, :], part[..., 2:30, :])


@pytest.mark.cuda
def test_captured_in_a_graph() -> None:
    x = torch.randn(2, 3, 40, 64, device="cuda")
    static = torch.zeros_like(x)
    fusedops.edge_enhance(static, 0.9, 1.1)  # loads the kernel, which a capture need not allow
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fusedops.edge_enhance(static, 0.9, 1.1)
    static.copy_(x)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, fusedops.edge_enhance(x, 0.9, 1.1))


@pytest.mark.cuda
@KERNEL_SIZES
@dtypes
def test_strips_of_every_length(kernel_size: int, dtype: torch.dtype) -> None:
    """Enough elements for the longest strips, the last of which is shorter."""
    for name in ("edge_enhance", "edge_enhance_backward"):
        for width in (2048, 2047):
            assert_reference(name, torch.randn(3, 3, 1030, width).to("cuda", dtype), 0.9, 1.1, kernel_size)
