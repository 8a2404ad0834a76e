"""Non-maximum suppression, a kept box after the other."""

import torch
from torch import Tensor


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The value of fusedops::nms."""
    return batched_nms(boxes, scores, torch.zeros_like(scores, dtype=torch.int64), iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """The value of fusedops::batched_nms."""
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while left.numel() > 0:
        best, left = left[0], left[1:]
        kept.append(best)
        over = _iou(boxes[best], boxes[left]) > iou_threshold
        left = left[~(over & (idxs[left] == idxs[best]))]
    return torch.stack(kept) if kept else left


def _iou(box: Tensor, boxes: Tensor) -> Tensor:
    sides = torch.minimum(box[2:], boxes[:, 2:]) - torch.maximum(box[:2], boxes[:, :2])
    # Not clamp, which would leave the NaN of a difference of infinities.
    common = torch.where(sides > 0, sides, 0.0).prod(-1)
    return common / (_area(box) + _area(boxes) - common)


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
