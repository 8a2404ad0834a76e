"""Loads the compiled library, which registers the operators with torch's dispatcher."""

from pathlib import Path

import torch

LIBRARY = Path(__file__).with_name("libfusedops.so")


def load_library() -> None:
    """Loads `LIBRARY`; raises ImportError that says why it cannot be and what to do."""
    if not LIBRARY.exists():
        message = (
            f"fusedops is not built: {LIBRARY} does not exist. Python found the source folder in "
            "place of an installed wheel; install fusedops, and import it from another folder."
        )
        raise ImportError(message)
    try:
        torch.ops.load_library(str(LIBRARY))
    except OSError as error:
        # Since 2.13 torch raises an OSError of its own from the loader's.
        raise ImportError(_explain(str(error.__cause__ or error))) from error


def _explain(error: str) -> str:
    torch_here = f"torch {torch.__version__} ({_cuda_of_torch()})"
    remedy = "Install the fusedops wheel that was built for this torch and CUDA."
    if "libcudart" in error:
        reason = f"This wheel's kernels need the runtime of another CUDA major version than {torch_here} brings"
    elif "libtorch_cuda" in error or "libc10_cuda" in error:
        reason = f"This wheel holds CUDA kernels, and {torch_here} was built without CUDA"
        remedy = "Install the fusedops wheel for CPU, or a torch with CUDA."
    elif "undefined symbol" in error:
        reason = f"This wheel was built for another torch release than {torch_here}"
    elif "GLIBC" in error:
        reason = "This wheel was built for a newer Linux than this one"
        remedy = "Install a fusedops wheel whose manylinux tag this system's pip accepts."
    else:
        reason = f"The library could not be loaded beside {torch_here}"
    return f"{reason}: {error}. {remedy}"


def _cuda_of_torch() -> str:
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
