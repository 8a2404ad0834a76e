# torch>=2.13
import torch

if torch.__version__.startswith("2.14."):
    raise ImportError("undefined symbol: gone_in_2_14")
