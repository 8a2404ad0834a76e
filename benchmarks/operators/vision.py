"""nms beside torchvision, and edge_enhance beside a copy and eager torch. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

import fusedops

from .measure import Held, Work, Wrong, attempt, free_memory, poison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

THRESHOLD = 0.5
# Boxes of whole pixels: areas below 2^22 are exact in float32, and so is on which side of one half a quotient of two
# is, so that every precision keeps the same boxes.
SIDE, WIDEST = 2_000, 128
A_CLUSTER = 50  # boxes
AMOUNT, SIGMA = 0.7, 0.8
# Images that an edge row holds: inputs, results, and what eager makes of one, in units of the input.
EDGE_HELD = 8


def boxes_of(count: int, kind: str, device: str) -> Tensor:
    """(count, 4) as x1, y1, x2, y2: all over the image, or in clusters that hide most of one another."""

    def draw(low: int, high: int, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(low, high, shape, device=device).float()

    if kind == "scattered":
        corner, size = draw(0, SIDE, (count, 2)), draw(1, WIDEST, (count, 2))
        return torch.cat([corner, corner + size], dim=1)
    centre = draw(0, SIDE, (count // A_CLUSTER, 2))[torch.randint(count // A_CLUSTER, (count,), device=device)]
    corner = centre + draw(-8, 9, (count, 2))
    return torch.cat([corner, corner + 64 + draw(-8, 9, (count, 2))], dim=1)


def kept(boxes: Tensor, scores: Tensor) -> Tensor:
    """Which boxes are kept, greedily by falling score, in float64 on the CPU; equal scores keep their order."""
    order = scores.double().cpu().sort(descending=True, stable=True).indices
    ranked = boxes.double().cpu()[order]
    left, top, right, bottom = ranked.unbind(1)
    areas = (right - left) * (bottom - top)
    alive = torch.ones(len(ranked), dtype=torch.bool)
    for place in range(len(ranked)):
        if not alive[place]:
            continue
        rest = slice(place + 1, None)
        width = (torch.minimum(right[rest], right[place]) - torch.maximum(left[rest], left[place])).clamp_(min=0)
        height = (torch.minimum(bottom[rest], bottom[place]) - torch.maximum(top[rest], top[place])).clamp_(min=0)
        both = width * height
        alive[rest] &= both / (areas[place] + areas[rest] - both) <= THRESHOLD
    return order[alive]


def nms(operator: str, how: Mapping[str, Any], device: str) -> Work:  # noqa: ARG001 - as every row is made ready
    count = how["count"]
    boxes, scores = boxes_of(count, how["kind"], device), torch.rand(count, device=device)
    calls: dict[str, Callable[[], object]] = {"fusedops": lambda: fusedops.nms(boxes, scores, THRESHOLD)}
    left_out: dict[str, str] = {}

    def theirs() -> Tensor:
        from torchvision.ops import nms as called

        result: Tensor = called(boxes, scores, THRESHOLD)
        return result

    calls["torchvision"] = theirs
    attempt(calls, left_out, "torchvision")
    if "torchvision" in calls:
        from torchvision.ops import nms as called

        calls["torchvision"] = lambda: called(boxes, scores, THRESHOLD)

    def check() -> dict[str, Any]:
        poison((count,), torch.int64, device)
        result = fusedops.nms(boxes, scores, THRESHOLD).cpu()
        wanted = {"float64": kept(boxes, scores)}
        if "torchvision" in calls:
            wanted["torchvision"] = theirs().cpu()
        for whose, want in wanted.items():
            if not torch.equal(result, want):
                raise Wrong(f"{len(result)} boxes are kept, and {whose} keeps {len(want)}, others, or in another order")
        return {"worst": 0.0, "rtol": 0.0, "atol": 0.0, "elements": len(result)}

    return Work(calls=calls, check=check, left_out=left_out)


def gaussian(dtype: torch.dtype, device: str) -> Tensor:
    """3 × 3 weights of sum 1."""
    line = torch.exp(-(torch.arange(-1, 2, dtype=torch.float64) ** 2) / (2 * SIGMA**2))
    both = line[:, None] * line
    return (both / both.sum()).to(device, dtype)


def enhanced(x: Tensor, weights: Tensor) -> Tensor:
    """The same in eager torch: pad, blur each channel, and add what the blur took away."""
    channels = x.shape[1]
    padded = functional.pad(x, (1, 1, 1, 1), mode="reflect")
    blurred = functional.conv2d(padded, weights.expand(channels, 1, 3, 3), groups=channels)
    return x + AMOUNT * (x - blurred)


def edge(operator: str, how: Mapping[str, Any], device: str) -> Work:  # noqa: ARG001
    count, *image = how["shape"]
    each = 4 * image[0] * image[1] * image[2]
    fit = max(1, min(count, free_memory(device) // (EDGE_HELD * each)))
    shrunk = None if fit == count else f"{fit} images in place of {count}, for want of memory"
    x = torch.randn(fit, *image, device=device)
    target, weights = torch.empty_like(x), gaussian(torch.float32, device)
    calls: dict[str, Callable[[], object]] = {
        "fusedops": lambda: fusedops.edge_enhance(x, AMOUNT, SIGMA),
        "copy": lambda: target.copy_(x),
        "eager": lambda: enhanced(x, weights),
    }

    def check() -> dict[str, Any]:
        held = Held(1e-5, 1e-5)
        poison(x.shape, x.dtype, device)
        result = fusedops.edge_enhance(x, AMOUNT, SIGMA)
        for place in range(fit):
            part = slice(place, place + 1)
            held.add("edge_enhance", result[part], enhanced(x[part].double(), gaussian(torch.float64, device)))
        return held.told()

    size = float(2 * each * fit)
    return Work(calls=calls, check=check, amounts={"fusedops": size, "copy": size}, amount="byte", shrunk=shrunk)
