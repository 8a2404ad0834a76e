"""The operators' tests run against the installed fusedops, on the CPU and on a GPU if there is one.

They need torch and pytest alone. Tests marked `cuda` have no meaning without a GPU, nor those marked
`torchvision` where it is not installed: they are deselected there. The others have a `device` argument
and run once for each device.
"""

import importlib.util

import pytest
import torch

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cuda: needs a CUDA device; deselected where there is none")
    config.addinivalue_line("markers", "torchvision: compares with torchvision; deselected where it is not installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = {"cuda": torch.cuda.is_available(), "torchvision": importlib.util.find_spec("torchvision") is not None}
    absent = [name for name, present in here.items() if not present]
    needing = [item for item in items if any(item.get_closest_marker(name) for name in absent)]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", DEVICES)
