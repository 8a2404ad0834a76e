"""Samples of nms and batched_nms: boxes whose coordinates are small whole numbers, exact in every dtype.

Their quotients are ratios of whole numbers, and the thresholds are far from all of these, so that
every dtype keeps what float64 keeps. Classes are 3 for batched_nms.
"""

from collections.abc import Iterator
from math import inf, nan

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample

THRESHOLD = 0.4142


class _Made:
    """Makes boxes and scores on the CPU, and hands them over to a device."""

    def __init__(self, device: Device, dtype: torch.dtype) -> None:
        self._generator = torch.Generator().manual_seed(0)
        self._device, self._dtype = device, dtype

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self._generator).double()

    def tensor(self, values: Tensor | list[float]) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float64).to(self._device, self._dtype)

    def boxes(self, n: int, *, place: int = 200, size: int = 50) -> Tensor:
        corner = self.whole(0, place, n, 2)
        return self.tensor(torch.cat([corner, corner + self.whole(1, size, n, 2)], 1))

    def scores(self, n: int) -> Tensor:
        return self.tensor(torch.rand(n, generator=self._generator, dtype=torch.float64))

    def clusters(self, n: int) -> Tensor:
        """Boxes of which few are kept: 25 heaps, and in each nearly all overlap each other well."""
        corner = self.whole(0, 5, n, 2) * 40 + self.whole(0, 4, n, 2)
        return self.tensor(torch.cat([corner, corner + 30 + self.whole(0, 4, n, 2)], 1))

    def classes(self, n: int) -> Tensor:
        return (self.whole(0, 3, n) * 2**40 - 5).long().to(self._device)


# Beyond a word of bits, a panel and what is sorted in one launch (csrc/nms/compare.cuh, nms.h).
_SIZES = (2, 63, 64, 65, 130, 4097)
_MANY = 9000

_SPECIAL_BOXES = [
    [0, 0, 8, 8],
    [0, 0, 8, 8],
    [nan, 0, 8, 8],
    [0, 0, 8, nan],
    [0, 0, inf, 8],
    [-inf, -inf, inf, inf],
    [inf, inf, inf, inf],
    [1, 1, 1, 1],  # no area
    [8, 8, 0, 0],  # a positive area by two negative sides
    [8, 0, 0, 8],  # a negative area
    [0, 0, 8, 9],
]
_SPECIAL_SCORES = [0.5, 0.5, nan, inf, 0.0, -0.0, -inf, nan, 0.25, 0.75, -1.0]


def _calls(made: _Made) -> Iterator[tuple[str, Tensor, Tensor, float]]:
    yield "typical", made.boxes(100), made.scores(100), THRESHOLD
    yield "empty", made.boxes(0), made.scores(0), THRESHOLD
    yield "one_element", made.boxes(1), made.scores(1), THRESHOLD
    for n in _SIZES:
        yield f"n_{n}", made.clusters(n), made.scores(n), THRESHOLD
    yield "many", made.clusters(_MANY), made.scores(_MANY), THRESHOLD
    yield "disjoint", made.tensor([[9.0 * k, 0, 9.0 * k + 8, 8] for k in range(20)]), made.scores(20), THRESHOLD
    yield "identical", made.tensor([[1.0, 2.0, 30.0, 40.0]] * 70), made.scores(70), THRESHOLD
    # Each overlaps the next alone, so that every other is kept: the longest chain there is.
    chain = [[0, 8.0 * k, 8, 8.0 * k + 20] for k in range(24)]
    yield "chain", made.tensor(chain), made.tensor([24.0 - k for k in range(24)]), THRESHOLD
    yield "tied", made.boxes(100), made.tensor(made.whole(0, 3, 100)), THRESHOLD
    yield "non_contiguous", made.boxes(50).t().contiguous().t(), made.scores(100)[::2], THRESHOLD
    yield "every_other", made.boxes(100)[::2], made.scores(50), THRESHOLD
    yield "misaligned", made.boxes(51).flatten()[3:-1].view(50, 4), made.scores(51)[1:], THRESHOLD
    special, scores = made.tensor(_SPECIAL_BOXES), made.tensor(_SPECIAL_SCORES)
    for threshold in (THRESHOLD, 0.0, 1.0, -1.0, nan, inf, -inf):
        yield f"special_values_{threshold}", special, scores, threshold


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    made = _Made(device, dtype)
    for name, boxes, scores, threshold in _calls(made):
        classes = (made.classes(len(scores)),) if operator.name == "batched_nms" else ()
        yield Sample(operator=operator, name=name, args=(boxes, scores, *classes, threshold))


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    made = _Made(device, dtype)
    boxes, scores = made.boxes(5000, place=1000), made.scores(5000)
    classes = (made.classes(5000),) if operator.name == "batched_nms" else ()
    yield Sample(operator=operator, name="large", args=(boxes, scores, *classes, THRESHOLD))


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    batched = operator.name == "batched_nms"
    boxes, scores = torch.ones(5, 4, device=device), torch.ones(5, device=device)
    idxs = torch.ones(5, dtype=torch.int64, device=device)

    def sample(
        name: str, match: str, boxes: Tensor = boxes, scores: Tensor = scores, idxs: Tensor = idxs
    ) -> ErrorSample:
        args = (boxes, scores, *((idxs,) if batched else ()), 0.5)
        return ErrorSample(operator=operator, name=name, args=args, match=f"fusedops::{operator.name}: {match}")

    integers = "boxes must be a float16, bfloat16, float32 or float64 tensor, but got Int"
    yield sample("integers", integers, boxes=boxes.int(), scores=scores.int())
    yield sample("coordinates", r"boxes must have the shape \(N, 4\), but got \[5, 3\]", boxes=boxes[:, 1:])
    yield sample("dimensions", r"boxes must have the shape \(N, 4\), but got \[5\]", boxes=scores)
    each = r"must have a {} for each box, the shape \[5\], but got \[{}\]"
    yield sample("scores", "scores " + each.format("score", 4), scores=scores[1:])
    yield sample("scores_dimensions", "scores " + each.format("score", "5, 1"), scores=scores[:, None])
    yield sample(
        "dtype",
        "scores must have the dtype of boxes, .*[Ff]loat.*, but got .*[Dd]ouble|float64",
        scores=scores.double(),
    )
    if torch.device(device).type == "cuda":
        yield sample("device", "scores must be on the device of boxes, cuda:[0-9]+, but got cpu", scores=scores.cpu())
    if batched:
        yield sample("idxs", "idxs " + each.format("class", 4), idxs=idxs[1:])
        yield sample("idxs_dtype", "idxs must be an int64 tensor, but got .*[Ii]nt", idxs=idxs.int())
        if torch.device(device).type == "cuda":
            yield sample(
                "idxs_device", "idxs must be on the device of boxes, cuda:[0-9]+, but got cpu", idxs=idxs.cpu()
            )


OPERATORS = [
    Operator(
        name=name,
        reference=made,
        samples=_samples,
        errors=_errors,
        bench=_bench,
        differentiable=False,
        capturable=False,
    )
    for name, made in (("nms", reference.nms), ("batched_nms", reference.batched_nms))
]
