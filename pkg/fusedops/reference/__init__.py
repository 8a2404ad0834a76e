"""What each operator computes, in plain torch: the meaning that kernels are held to.

Called with float64 tensors these give the values to compare with.
"""

from fusedops.reference.local_attention import (
    local_attention,
    local_attention_backward,
    local_attention_forward,
)
from fusedops.reference.pointwise import (
    affine,
    clip_add,
    clip_add_backward,
    scale_clamp_add,
    scale_clamp_add_backward,
    vector_add,
)

__all__ = [
    "affine",
    "clip_add",
    "clip_add_backward",
    "local_attention",
    "local_attention_backward",
    "local_attention_forward",
    "scale_clamp_add",
    "scale_clamp_add_backward",
    "vector_add",
]
