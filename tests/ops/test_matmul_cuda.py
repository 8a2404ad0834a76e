"""What only a GPU shows of matmul: its kernels at the sizes that each is for, streams, graphs and offsets."""

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops.testing import DTYPES

pytestmark = pytest.mark.cuda

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
BITS_16 = [torch.float16, torch.bfloat16]


def integers(*shape: int, dtype: torch.dtype) -> Tensor:
    """Values whose sums of products are exact in float32, so that the order of a sum changes nothing."""
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def assert_exact(a: Tensor, b: Tensor) -> None:
    """The exact product, rounded once."""
    expected = torch.matmul(a.double(), b.double()).to(a.dtype)
    assert torch.equal(fusedops.matmul(a, b), expected)


def layouts(rows: int, columns: int, dtype: torch.dtype) -> list[Tensor]:
    return [integers(rows, columns, dtype=dtype), integers(columns, rows, dtype=dtype).t()]


@dtypes
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(2048, 2048, 512), (2000, 2312, 136), (1920, 1928, 8), (2049, 2050, 77), (2056, 2049, 264), (129, 16392, 72)],
    ids=str,
)
def test_large_in_every_layout(m: int, n: int, k: int, dtype: torch.dtype) -> None:
    for a in layouts(m, k, dtype):
        for b in layouts(k, n, dtype):
            assert_exact(a, b)


@dtypes
def test_sums_over_many_stages(dtype: torch.dtype) -> None:
    for k in (4096, 4100, 20_000):
        assert_exact(integers(260, k, dtype=dtype), integers(300, k, dtype=dtype).t())
    if dtype in BITS_16:  # tiles enough for every kernel
        assert_exact(integers(2048, 4160, dtype=dtype), integers(4160, 2176, dtype=dtype))


@dtypes
def test_batches_of_large_matrices(dtype: torch.dtype) -> None:
    a, b = integers(6, 2, 520, 136, dtype=dtype), integers(6, 2, 136, 776, dtype=dtype)
    assert_exact(a, b)
    assert_exact(a.transpose(0, 1), b.transpose(0, 1))
    assert_exact(a, b[:1])
    assert_exact(a[:, :1], b)
    assert_exact(a, b[2, 1])
    assert_exact(a[1, 0], b)
    assert_exact(a[:, :, None], b[:, None])


@dtypes
def test_many_small_matrices(dtype: torch.dtype) -> None:
    assert_exact(integers(70_000, 3, 5, dtype=dtype), integers(70_000, 5, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", BITS_16, ids=str)
def test_every_alignment_of_large_tiles(dtype: torch.dtype) -> None:
    pool_a, pool_b = integers(2100, 272, dtype=dtype), integers(272, 2100, dtype=dtype)
    for offset in (1, 4, 8):
        assert_exact(pool_a[:2048, offset:264], pool_b[offset:264, :2048])
        assert_exact(pool_a[:2048, :264], pool_b[:264, offset : offset + 2048])
        assert_exact(pool_b[:264, offset : offset + 1999].t(), pool_a[offset : offset + 2048, :264].t())


def test_float32_is_not_tf32() -> None:
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        a, b = (torch.randn(2048, 2048, device="cuda") for _ in range(2))
        error = (fusedops.matmul(a, b).double() - a.double() @ b.double()).abs().max().item()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    assert error < 1e-3  # TF32 is off by about 0.1


@dtypes
def test_follows_its_producer_on_a_side_stream(dtype: torch.dtype) -> None:
    a, b = integers(2048, 264, dtype=dtype), integers(264, 2048, dtype=dtype)
    expected = fusedops.matmul(a, b)
    late = torch.zeros_like(a)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        late.copy_(a)
        result = fusedops.matmul(late, b)
    side.synchronize()
    assert torch.equal(result, expected)


@dtypes
def test_captured_in_a_graph(dtype: torch.dtype) -> None:
    a, b = integers(2048, 264, dtype=dtype), integers(264, 2048, dtype=dtype)
    static = torch.zeros_like(a)
    fusedops.matmul(static, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fusedops.matmul(static, b)
    static.copy_(a)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, fusedops.matmul(a, b))


def test_another_device_than_the_current() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    a, b = (integers(2048, 2048, dtype=torch.bfloat16) for _ in range(2))
    expected = fusedops.matmul(a, b)
    with torch.cuda.device(0):
        result = fusedops.matmul(a.to("cuda:1"), b.to("cuda:1"))
        assert torch.cuda.current_device() == 0
    assert torch.equal(result.to(expected.device), expected)


@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "misaligned"])
def test_beyond_2_to_31_elements(offset: int) -> None:
    rows, columns = 2**17 + 3, 2**14 + 8
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 3 * 2 * rows * columns:
        pytest.skip("needs 13 GiB of free GPU memory")
    whole = torch.zeros(rows * columns + offset, dtype=torch.float16, device="cuda")[offset:].view(rows, columns)
    whole[-200:, -64:] = integers(200, 64, dtype=torch.float16)
    b = integers(columns, 16, dtype=torch.float16)
    result = fusedops.matmul(whole, b)
    assert torch.equal(result[-200:], fusedops.matmul(whole[-200:].clone(), b))
    assert torch.equal(fusedops.matmul(b.t(), whole.t()), result.t())
