"""The operators' tests run against the installed fusedops, on the CPU and on a GPU if there is one.

They need torch and pytest alone. Tests marked `cuda` have no meaning without a GPU and are
deselected there; the others have a `device` argument and run once for each device.
"""

import pytest
import torch

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cuda: needs a CUDA device; deselected where there is none")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    needing = [item for item in items if item.get_closest_marker("cuda")]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", DEVICES)
