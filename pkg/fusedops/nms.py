"""Which of overlapping boxes to keep, of one class or of several."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autocast import register_autocast_float32

_nms = torch.ops.fusedops.nms.default
_batched_nms = torch.ops.fusedops.batched_nms.default


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the boxes that no better box overlaps, by falling score.

    A box is dropped where a box before it is kept and their intersection over union exceeds
    `iou_threshold`; "before" is a greater score, or the same score and a lower index, and a NaN is the
    greatest score (of more than 8,192 boxes on CUDA the least where its sign is set, as in torch.sort
    there). `boxes` are (N, 4), a row (x1, y1, x2, y2), and `scores` (N), both float16, bfloat16, float32
    or float64 and on one device, CPU or CUDA, with any strides; N may be 0 and is at most 2^30. The
    result is int64, (K), contiguous, and carries no gradient.

    The indices are exactly those of `torchvision.ops.nms` 0.26 (torchvision/csrc/ops/cpu/nms_kernel.cpp
    and cuda/nms_kernel.cu) for every input that it takes, boxes of zero or negative area, NaN and
    infinities included: each device rounds where its kernel there does, so that the two devices may
    differ where a quotient is the threshold but for its last places. With a NaN, a box neither drops
    others nor is dropped. float16 on CPU and bfloat16, which torchvision refuses, are computed as
    float32, and so are both under autocast.

    On CUDA the host waits for the number of boxes kept, 8 bytes, and for nothing else; so this cannot
    be captured in a CUDA graph. Memory is 2 MiB for each 4,096 boxes, 32 MiB at most, and under 100
    bytes a box. Under `torch.compile` the length is dynamic: `fullgraph=True` needs
    `torch._dynamo.config.capture_dynamic_output_shape_ops`. `torch.vmap` is refused, since each
    batch would keep another number: use `batched_nms`.

    Raises RuntimeError for other shapes, dtypes or devices, and while a CUDA graph is captured.
    """
    return _nms(boxes, scores, iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` for each class by itself: boxes of different `idxs` do not drop each other.

    `idxs` are (N), int64, any values. The result is what `nms` keeps of each class, all by falling
    score. `torchvision.ops.batched_nms` moves the classes apart and so rounds the coordinates; here the
    class is compared, and the boxes stay as they are. Everything else is as in `nms`.
    """
    return _batched_nms(boxes, scores, idxs, iou_threshold)


def _check_boxes(op: str, boxes: Tensor, scores: Tensor) -> None:
    check = torch._check  # noqa: SLF001
    box_shape = f"fusedops::{op}: boxes must have the shape (N, 4), but got "
    check(boxes.dim() == 2, lambda: box_shape + str(list(boxes.shape)))  # noqa: PLR2004
    check(boxes.shape[1] == 4, lambda: box_shape + str(list(boxes.shape)))  # noqa: PLR2004
    check(
        scores.dtype == boxes.dtype,
        lambda: f"fusedops::{op}: scores must have the dtype of boxes, {boxes.dtype}, but got {scores.dtype}",
    )
    _check_each(op, "scores", "score", scores, boxes)


def _check_each(op: str, argument: str, what: str, tensor: Tensor, boxes: Tensor) -> None:
    def message() -> str:
        return (
            f"fusedops::{op}: {argument} must have a {what} for each box, "
            f"the shape [{boxes.shape[0]}], but got {list(tensor.shape)}"
        )

    torch._check(tensor.dim() == 1, message)  # noqa: SLF001
    torch._check(tensor.shape[0] == boxes.shape[0], message)  # noqa: SLF001


def _some_indices(boxes: Tensor) -> Tensor:
    return boxes.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.int64)


@torch.library.register_fake("fusedops::nms")
def _(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:  # noqa: ARG001
    _check_boxes("nms", boxes, scores)
    return _some_indices(boxes)


@torch.library.register_fake("fusedops::batched_nms")
def _(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:  # noqa: ARG001
    _check_boxes("batched_nms", boxes, scores)
    torch._check(  # noqa: SLF001
        idxs.dtype == torch.int64,
        lambda: f"fusedops::batched_nms: idxs must be an int64 tensor, but got {idxs.dtype}",
    )
    _check_each("batched_nms", "idxs", "class", idxs, boxes)
    return _some_indices(boxes)


def _refuse_vmap(info: Any, in_dims: Any, *args: Any) -> Any:  # noqa: ARG001
    raise RuntimeError(
        "fusedops::nms: torch.vmap cannot batch it, since each batch keeps another number of boxes; "
        "call fusedops.batched_nms on the boxes of all batches, with the batch as part of idxs"
    )


for _op in (_nms, _batched_nms):
    register_autocast_float32(_op)
    if hasattr(torch.library, "register_vmap"):
        torch.library.register_vmap(_op._schema.name, _refuse_vmap)  # noqa: SLF001
