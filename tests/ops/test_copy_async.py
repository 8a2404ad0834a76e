"""copy_async: any dtype, memory that is shared, gradients; on a GPU its order and that nothing waits."""

import time

import pytest
import torch
from torch import Tensor

import fusedops

ANY_DTYPE = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
]


def of(dtype: torch.dtype, *shape: int, device: str) -> Tensor:
    """Bytes at random, but for bool."""
    if dtype == torch.bool:
        return torch.rand(shape, device=device) < 0.5
    size = torch.empty(0, dtype=dtype).element_size()
    return torch.randint(64, (*shape, size), dtype=torch.uint8, device=device).view(dtype).squeeze(-1)


def bits(x: Tensor) -> Tensor:
    return x.contiguous().view(torch.uint8) if x.dtype != torch.bool else x


@pytest.mark.parametrize("dtype", ANY_DTYPE, ids=str)
def test_any_dtype(dtype: torch.dtype, device: str) -> None:
    for x in (of(dtype, 5, 7, device=device), of(dtype, 5, 7, device=device).t(), of(dtype, 600_001, device=device)):
        copy = fusedops.copy_async(x)
        assert copy.dtype == dtype
        assert copy.stride() == torch.empty_like(x).stride()
        assert copy.data_ptr() != x.data_ptr()
        assert torch.equal(bits(copy), bits(x))
        out = torch.empty_like(x)
        assert fusedops.copy_async(x, out=out) is out
        assert torch.equal(bits(out), bits(x))
    x = of(dtype, 6, 10, device=device)[::2, 1::3]
    assert torch.equal(bits(fusedops.copy_async(x)), bits(x))


def test_conjugates_and_negatives(device: str) -> None:
    x = torch.randn(4, 5, dtype=torch.complex64, device=device)
    for view in (x.conj(), x.conj().imag, torch._neg_view(x.real)):
        expected = view.resolve_conj().resolve_neg()
        assert torch.equal(fusedops.copy_async(view).resolve_conj().resolve_neg(), expected)
        out = torch.zeros_like(expected)
        fusedops.copy_async(view, out=out)
        assert torch.equal(out, expected)


def test_the_same_memory_is_left_alone(device: str) -> None:
    for x in (
        torch.randn(3, 4, device=device),
        torch.randn(6, 4, device=device)[::2, 1:3],
        torch.randn(0, device=device),
    ):
        before = x.clone()
        assert fusedops.copy_async(x, out=x) is x
        fusedops.copy_async(x, out=x.view_as(x))
        assert torch.equal(x, before)


def test_part_of_the_same_memory_is_refused(device: str) -> None:
    line, square = torch.arange(20.0, device=device), torch.randn(4, 4, device=device)
    sharing = [
        (line[:-1], line[1:]),
        (line[1:], line[:-1]),
        (line[0:-2:2], line[2::2]),
        (square, square.t()),
        (square[:, :3], square[:, 1:]),
        (square[:3, :3], square[1:, 1:]),
        (square[::2], square[:2]),
    ]
    for x, out in sharing:
        before = line.clone(), square.clone()
        with pytest.raises(RuntimeError, match=r"fusedops::copy_async_out: out must share all of x's memory or none"):
            fusedops.copy_async(x, out=out)
        assert torch.equal(line, before[0])
        assert torch.equal(square, before[1])


def test_beside_each_other_in_the_same_memory(device: str) -> None:
    line, square = torch.arange(20.0, device=device), torch.arange(64.0, device=device).view(8, 8)
    for x, out in (
        (line[::2], line[1::2]),
        (line[:10], line[10:]),
        (square[:, :4], square[:, 4:]),
        (square[::2, ::2], square[1::2, 1::2]),
        (square[:4, 1:5].t(), square[4:, 2:6].t()),
    ):
        expected = x.clone()
        fusedops.copy_async(x, out=out)
        assert torch.equal(out, expected)
        assert torch.equal(x, expected)


def test_repeated_elements_are_not_written(device: str) -> None:
    with pytest.raises(RuntimeError):
        fusedops.copy_async(torch.randn(3, 4, device=device), out=torch.zeros(4, device=device).expand(3, 4))


def test_gradient_is_passed_on(device: str) -> None:
    x = torch.randn(3, 4, device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad((fusedops.copy_async(x) ** 3).sum(), x, create_graph=True)
    assert torch.equal(gradient, 3 * x**2)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert torch.equal(second, 6 * x)


def test_out_refuses_gradients_where_they_are_recorded(device: str) -> None:
    x, out = torch.randn(3, device=device), torch.zeros(3, device=device)
    for pair in ((x.clone().requires_grad_(), out), (x, out.clone().requires_grad_())):
        with pytest.raises(RuntimeError, match="fusedops::copy_async_out: x and out must not require gradients"):
            fusedops.copy_async(pair[0], out=pair[1])
        with torch.no_grad():
            fusedops.copy_async(pair[0], out=pair[1])
        assert torch.equal(pair[0], pair[1])


def test_backward_notices_what_out_overwrote(device: str) -> None:
    x = torch.randn(3, device=device, requires_grad=True)
    saved = torch.randn(3, device=device)
    y = (x * saved).sum()
    fusedops.copy_async(torch.ones(3, device=device), out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_compile_with_out(backend: str, device: str) -> None:
    def call(x: Tensor, out: Tensor) -> Tensor:
        return fusedops.copy_async(x.sin(), out=out) + fusedops.copy_async(x)

    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend=backend)
    x, out = torch.randn(4, 5, device=device), torch.zeros(4, 5, device=device)
    torch.testing.assert_close(compiled(x, out), x.sin() + x)
    torch.testing.assert_close(out, x.sin())


def test_inference_mode(device: str) -> None:
    with torch.inference_mode():
        x, out = torch.randn(4, device=device), torch.zeros(4, device=device)
        assert torch.equal(fusedops.copy_async(x, out=out), x)
        assert torch.equal(fusedops.copy_async(x), x)


SLEEP = 400_000_000
"""Cycles: a fifth of a second and more."""


@pytest.mark.cuda
@pytest.mark.parametrize("strided", [False, True])
def test_host_does_not_wait(strided: bool) -> None:
    x = torch.randn(2000, 2000, device="cuda")
    x = x[::2, ::2] if strided else x
    out = torch.zeros_like(x)
    fusedops.copy_async(x)
    fusedops.copy_async(x, out=out.zero_())
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(SLEEP)
        start = time.perf_counter()
        copy = fusedops.copy_async(x)
        fusedops.copy_async(x, out=out)
        took = time.perf_counter() - start
        busy = not torch.cuda.current_stream().query()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert busy
    assert took < 0.05
    assert torch.equal(copy, x)
    assert torch.equal(out, x)


@pytest.mark.cuda
@pytest.mark.parametrize("strided", [False, True])
def test_order_is_that_of_the_stream(strided: bool) -> None:
    source = torch.randn(1000, 1000, device="cuda")
    x = torch.zeros(1000, 2000, device="cuda")[:, ::2] if strided else torch.zeros(1000, 1000, device="cuda")
    out = torch.zeros(1000, 1000, device="cuda")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        x.copy_(source)
        copy = fusedops.copy_async(x)
        fusedops.copy_async(x, out=out)
        x.zero_()
    side.synchronize()
    assert torch.equal(copy, source)
    assert torch.equal(out, source)


@pytest.mark.cuda
@pytest.mark.parametrize("with_out", [False, True])
def test_memory_dropped_at_once_is_not_given_out_too_early(with_out: bool) -> None:
    side = torch.cuda.Stream()
    x = torch.full((1_234_567,), 3.0, device="cuda")  # of the default stream
    target = torch.zeros(1_234_567, device="cuda")
    address = x.data_ptr()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        copy = fusedops.copy_async(x, out=target if with_out else None)
    del x
    # Were the memory free, the default stream would get it back and write it before the copy reads.
    others = [torch.full((1_234_567,), 5.0, device="cuda") for _ in range(4)]
    assert all(other.data_ptr() != address for other in others)
    side.synchronize()
    assert bool((copy == 3.0).all())


@pytest.mark.cuda
@pytest.mark.parametrize("strided", [False, True])
def test_captured_in_a_graph(strided: bool) -> None:
    x = torch.zeros(300, 2, device="cuda")[:, 0] if strided else torch.zeros(300, device="cuda")
    out = torch.zeros(300, device="cuda")
    fusedops.copy_async(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copy = fusedops.copy_async(x)
        fusedops.copy_async(copy, out=out)
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert bool((copy == value).all())
        assert bool((out == value).all())


@pytest.mark.cuda
def test_beyond_2_to_31_elements() -> None:
    size = 2**31 + 17
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 3 * size:
        pytest.skip("needs 6 GiB of free GPU memory")
    x = torch.zeros(size, dtype=torch.uint8, device="cuda")
    x[-5:] = 7
    copy = fusedops.copy_async(x)
    assert int(copy[-6:].sum()) == 35
    assert int(copy[:100].sum()) == 0
