"""nms and batched_nms against torchvision and against nms of each class; compiled, exported, under autocast."""

from collections.abc import Callable, Iterator
from math import inf, nan

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops import reference
from fusedops.testing import DTYPES, OPERATORS, samples

Generator = torch.Generator

KINDS = ("spread", "dense", "whole", "negative", "special")
SCORES = ("distinct", "tied", "special")
THRESHOLDS = (0.5, 0.3, 1 / 3, 0.0, 1.0, -0.2, nan, inf, -inf)


def make_boxes(kind: str, n: int, generator: Generator) -> Tensor:
    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    corner, size = uniform(n, 2) * 500, uniform(n, 2) * 100
    if kind == "dense":
        corner = corner / 25
    elif kind == "whole":  # quotients that are the threshold, and boxes without area
        corner, size = (uniform(n, 2) * 12).floor(), (uniform(n, 2) * 8).floor()
    elif kind == "negative":
        size = size - 40
    boxes = torch.cat([corner, corner + size], 1)
    if kind == "special":
        values = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e38, -1e38, 1e-40], dtype=torch.float64)
        some = uniform(n, 4) < 0.15
        boxes[some] = values[torch.randint(8, (int(some.sum()),), generator=generator)]
    return boxes


def make_scores(kind: str, n: int, generator: Generator) -> Tensor:
    scores = torch.rand(n, generator=generator, dtype=torch.float64)
    if kind != "distinct":
        scores = (scores * 6).floor() - 2
    if kind == "special":
        values = torch.tensor([nan, inf, -inf, -0.0], dtype=torch.float64)
        some = torch.rand(n, generator=generator) < 0.3
        scores[some] = values[torch.randint(4, (int(some.sum()),), generator=generator)]
    return scores


def make(kind: str, scores: str, n: int, dtype: torch.dtype, device: str) -> tuple[Tensor, Tensor, Tensor]:
    generator = Generator().manual_seed(n)
    boxes = make_boxes(kind, n, generator).to(device, dtype)
    classes = torch.randint(-2, 3, (n,), generator=generator).to(device) * 2**40
    return boxes, make_scores(scores, n, generator).to(device, dtype), classes


def by_falling(scores: Tensor) -> Tensor:
    # On CUDA torch's own sort puts a NaN whose sign is set last, and conversions make such.
    return scores.cpu().argsort(descending=True, stable=True).to(scores.device)


def by_class(nms: Callable[..., Tensor], boxes: Tensor, scores: Tensor, idxs: Tensor, threshold: float) -> Tensor:
    keep = torch.zeros(len(scores), dtype=torch.bool, device=scores.device)
    for one in idxs.unique():
        its = (idxs == one).nonzero()[:, 0]
        keep[its[nms(boxes[its], scores[its], threshold)]] = True
    order = by_falling(scores)
    return order[keep[order]]


@pytest.mark.torchvision
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", SCORES)
def test_indices_are_torchvisions(kind: str, scores: str, device: str) -> None:
    import torchvision

    dtypes = [torch.float32, torch.float64, *([torch.float16] if device == "cuda" else [])]
    for dtype in dtypes:
        for n in (0, 1, 2, 31, 64, 65, 200, 1000):
            boxes, its_scores, classes = make(kind, scores, n, dtype, device)
            for threshold in THRESHOLDS:
                expected = torchvision.ops.nms(boxes, its_scores, threshold)
                assert torch.equal(fusedops.nms(boxes, its_scores, threshold), expected), (dtype, n, threshold)
                expected = by_class(torchvision.ops.nms, boxes, its_scores, classes, threshold)
                actual = fusedops.batched_nms(boxes, its_scores, classes, threshold)
                assert torch.equal(actual, expected), (dtype, n, threshold)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batched_is_nms_of_each_class(kind: str, dtype: torch.dtype, device: str) -> None:
    for n in (1, 70, 3000):
        boxes, scores, classes = make(kind, "special", n, dtype, device)
        expected = by_class(fusedops.nms, boxes, scores, classes, 0.3)
        assert torch.equal(fusedops.batched_nms(boxes, scores, classes, 0.3), expected)
        each = torch.arange(n, device=device)
        assert torch.equal(fusedops.batched_nms(boxes, scores, each, 0.3), by_falling(scores))
        assert torch.equal(fusedops.batched_nms(boxes, scores, each.sign() * 0, 0.3), fusedops.nms(boxes, scores, 0.3))


@pytest.mark.parametrize("kind", ["spread", "dense"])
@pytest.mark.parametrize("n", [4095, 4096, 4097, 8192, 8193, 20_000])
def test_many_boxes(kind: str, n: int, device: str) -> None:
    boxes, scores, classes = make(kind, "distinct", n, torch.float64, device)
    few = boxes / 4  # more are kept of boxes that lie further apart
    for some in (boxes, few):
        actual = fusedops.nms(some, scores, 0.2)
        if n == 4097 or len(actual) < 1000:  # as long as the reference is quick
            assert torch.equal(actual, reference.nms(some, scores, 0.2))
    actual = fusedops.batched_nms(boxes, scores, classes, 0.2)
    assert torch.equal(actual, by_class(fusedops.nms, boxes, scores, classes, 0.2))


def test_float16_and_bfloat16_on_cpu_are_computed_as_float32() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        boxes, scores, _ = make("spread", "distinct", 500, dtype, "cpu")
        assert torch.equal(fusedops.nms(boxes, scores, 0.5), fusedops.nms(boxes.float(), scores.float(), 0.5))


def test_a_long_chain(device: str) -> None:
    n = 1000
    places = torch.arange(n, device=device, dtype=torch.float32)
    boxes = torch.stack([places * 0, places * 8, places * 0 + 8, places * 8 + 20], 1)
    expected = torch.arange(0, n, 2, device=device)
    assert torch.equal(fusedops.nms(boxes, -places, 0.4), expected)


def test_result_owns_its_memory_alone(device: str) -> None:
    boxes = torch.tensor([0.0, 0.0, 8.0, 8.0], device=device).expand(5000, 4)
    kept = fusedops.nms(boxes, torch.arange(5000.0, device=device), 0.5)
    assert kept.tolist() == [4999]
    assert kept.untyped_storage().nbytes() == 8 * kept.numel()
    assert kept.is_contiguous()
    assert kept.device == boxes.device


def test_no_gradient_and_no_complaint(device: str) -> None:
    boxes, scores, classes = make("spread", "distinct", 50, torch.float64, device)
    expected = fusedops.nms(boxes, scores, 0.5)
    boxes, scores = boxes.requires_grad_(), scores.requires_grad_()
    for kept in (fusedops.nms(boxes.t().contiguous().t(), scores, 0.5), fusedops.nms(boxes, scores, 0.5)):
        assert not kept.requires_grad
        assert torch.equal(kept, expected)
    assert not fusedops.batched_nms(boxes, scores, classes, 0.5).requires_grad

    def loss(scores: Tensor) -> Tensor:
        return scores[fusedops.nms(boxes.detach(), scores, 0.5)].sum()

    (gradient,) = torch.autograd.grad(loss(scores), scores)
    assert torch.equal(gradient.nonzero()[:, 0], expected.sort()[0])
    assert torch.equal(torch.func.grad(loss)(scores.detach()), gradient)


def test_vmap_names_batched_nms(device: str) -> None:
    boxes, scores, classes = make("spread", "distinct", 20, torch.float32, device)
    both = torch.stack([boxes, boxes]), torch.stack([scores, scores])
    if not hasattr(torch.library, "register_vmap"):  # this torch loops over the batch
        kept = torch.vmap(lambda boxes, scores: fusedops.nms(boxes, scores, 0.5))(*both)
        assert torch.equal(kept[1], fusedops.nms(boxes, scores, 0.5))
        return
    with pytest.raises(RuntimeError, match=r"fusedops\.batched_nms"):
        torch.vmap(lambda boxes, scores: fusedops.nms(boxes, scores, 0.5))(*both)
    with pytest.raises(RuntimeError, match=r"fusedops\.batched_nms"):
        torch.vmap(lambda boxes, scores: fusedops.batched_nms(boxes, scores, classes, 0.5))(*both)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_computes_in_float32(dtype: torch.dtype, device: str) -> None:
    boxes, scores, classes = make("spread", "distinct", 500, dtype, device)
    wide = boxes.float(), scores.float()
    with torch.autocast(device, torch.bfloat16):
        kept = fusedops.nms(boxes, scores.float(), 0.5)  # one dtype is left of the two
        batched = fusedops.batched_nms(boxes, scores, classes, 0.5)
        double = fusedops.nms(boxes.double(), scores.double(), 0.5)
    assert torch.equal(kept, fusedops.nms(*wide, 0.5))
    assert torch.equal(batched, fusedops.batched_nms(*wide, classes, 0.5))
    assert torch.equal(double, fusedops.nms(boxes.double(), scores.double(), 0.5))


@pytest.fixture
def dynamic_lengths() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        yield


def best(boxes: Tensor, scores: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    kept = fusedops.nms(boxes, scores, 0.3)
    batched = fusedops.batched_nms(boxes, scores.sigmoid(), classes, 0.3)
    return boxes[kept] * 2, scores[batched].cos()


@pytest.mark.usefixtures("dynamic_lengths")
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic: bool, device: str) -> None:
    compiled = torch.compile(best, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for n in (40, 90, 1):
        call = make("dense", "distinct", n, torch.float32, device)
        torch.testing.assert_close(compiled(*call), best(*call), rtol=0, atol=0)


@pytest.mark.usefixtures("dynamic_lengths")
def test_compiled_on_what_another_call_kept(device: str) -> None:
    def twice(boxes: Tensor, scores: Tensor) -> Tensor:
        kept = fusedops.nms(boxes, scores, 0.5)
        return kept[fusedops.nms(boxes[kept], scores[kept], 0.3)]

    boxes, scores, _ = make("dense", "distinct", 60, torch.float32, device)
    compiled = torch.compile(twice, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(boxes, scores), twice(boxes, scores))


@pytest.mark.filterwarnings("ignore:At pre-dispatch tracing")  # of torch 2.4, and of every operator
def test_export(device: str) -> None:
    class Best(torch.nn.Module):
        def forward(self, boxes: Tensor, scores: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
            return best(boxes, scores, classes)

    n = torch.export.Dim("n", min=2)
    call = make("dense", "distinct", 40, torch.float32, device)
    exported = torch.export.export(Best(), call, dynamic_shapes=({0: n}, {0: n}, {0: n}))
    for n in (40, 90):
        call = make("dense", "distinct", n, torch.float32, device)
        torch.testing.assert_close(exported.module()(*call), best(*call), rtol=0, atol=0)


def test_inference_mode(device: str) -> None:
    with torch.inference_mode():
        boxes, scores, _ = make("dense", "distinct", 40, torch.float32, device)
        kept = fusedops.nms(boxes, scores, 0.3)
    assert torch.equal(kept, fusedops.nms(boxes, scores, 0.3))


@pytest.mark.cuda
def test_capture_is_refused() -> None:
    boxes, scores, _ = make("dense", "distinct", 40, torch.float32, "cuda")
    expected = fusedops.nms(boxes, scores, 0.3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = scores * 2
        with pytest.raises(RuntimeError, match="fusedops::nms: cannot be captured in a CUDA graph"):
            fusedops.nms(boxes, scores, 0.3)
    graph.replay()
    assert torch.equal(doubled, scores * 2)
    assert torch.equal(fusedops.nms(boxes, scores, 0.3), expected)


@pytest.mark.cuda
@pytest.mark.parametrize("n", [70_000, 200_000])
def test_very_many_boxes(n: int) -> None:
    """Beyond the panels whose bits one launch makes; memory stays bounded."""
    boxes, scores, classes = make("spread", "distinct", n, torch.float32, "cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = fusedops.nms(boxes, scores, 0.5)
    assert torch.cuda.max_memory_allocated() - before < 200 * 2**20
    assert torch.equal(kept.cpu(), fusedops.nms(boxes.cpu(), scores.cpu(), 0.5)) or n > 100_000
    batched = fusedops.batched_nms(boxes, scores, classes, 0.5)
    assert torch.equal(batched, by_class(fusedops.nms, boxes, scores, classes, 0.5))


@pytest.mark.cuda
@pytest.mark.parametrize("n", [1000, 20_000])
def test_concurrent_streams(n: int) -> None:
    calls = [make("spread", "distinct", n - k, torch.float32, "cuda") for k in range(4)]
    expected = [fusedops.nms(boxes, scores, 0.5) for boxes, scores, _ in calls]
    torch.cuda.synchronize()
    for (boxes, scores, _), kept in zip(calls, expected, strict=True):
        with torch.cuda.stream(torch.cuda.Stream()):
            assert torch.equal(fusedops.nms(boxes, scores, 0.5), kept)


@pytest.mark.parametrize("name", ["nms", "batched_nms"])
def test_the_same_on_a_view_of_the_same(name: str, device: str) -> None:
    operator = OPERATORS[name]
    for sample in samples(operator, device, torch.float32):
        boxes, scores, *rest = sample.args
        wide = torch.zeros(len(scores), 9, device=device)
        wide[:, 1:5], wide[:, 7] = boxes, scores
        assert torch.equal(operator.op(wide[:, 1:5], wide[:, 7], *rest), operator.op(*sample.args)), sample.name
