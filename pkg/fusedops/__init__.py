"""Operators for PyTorch on CPU and CUDA, from clip-and-add to NMS and local attention, with their gradients."""

from fusedops._load import load_library

load_library()

# Each module registers its operator's Python side, which needs the library's schemas.
from fusedops.affine import affine  # noqa: E402
from fusedops.clip_add import clip_add  # noqa: E402
from fusedops.copy_async import copy_async  # noqa: E402
from fusedops.edge_enhance import edge_enhance  # noqa: E402
from fusedops.local_attention import local_attention  # noqa: E402
from fusedops.matmul import matmul  # noqa: E402
from fusedops.nms import batched_nms, nms  # noqa: E402
from fusedops.scale_clamp_add import scale_clamp_add  # noqa: E402
from fusedops.vector_add import vector_add  # noqa: E402

__all__ = [
    "affine",
    "batched_nms",
    "clip_add",
    "copy_async",
    "edge_enhance",
    "local_attention",
    "matmul",
    "nms",
    "scale_clamp_add",
    "vector_add",
]
