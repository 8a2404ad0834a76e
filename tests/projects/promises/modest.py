# torch==2.13.*
import torch

ANSWER = int(torch.ones(()).item())
