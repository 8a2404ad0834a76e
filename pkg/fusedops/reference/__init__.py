"""What each operator computes, in plain torch: the meaning that kernels are held to.

Called with float64 tensors these give the values to compare with.
"""

from fusedops.reference.copy_async import copy_async, copy_async_out
from fusedops.reference.edge_enhance import edge_enhance, edge_enhance_backward
from fusedops.reference.local_attention import (
    local_attention,
    local_attention_backward,
    local_attention_forward,
)
from fusedops.reference.matmul import matmul
from fusedops.reference.nms import batched_nms, nms
from fusedops.reference.pointwise import (
    affine,
    clip_add,
    clip_add_backward,
    clip_add_forward,
    masked_scale,
    scale_clamp_add,
    scale_clamp_add_backward,
    scale_clamp_add_forward,
    vector_add,
)

__all__ = [
    "affine",
    "batched_nms",
    "clip_add",
    "clip_add_backward",
    "clip_add_forward",
    "copy_async",
    "copy_async_out",
    "edge_enhance",
    "edge_enhance_backward",
    "local_attention",
    "local_attention_backward",
    "local_attention_forward",
    "masked_scale",
    "matmul",
    "nms",
    "scale_clamp_add",
    "scale_clamp_add_backward",
    "scale_clamp_add_forward",
    "vector_add",
]
