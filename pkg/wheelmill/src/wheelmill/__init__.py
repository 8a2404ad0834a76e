"""wheelmill: builds, proves and publishes PyTorch C++/CUDA extension wheels for a whole matrix."""

__version__ = "0.1.0"
