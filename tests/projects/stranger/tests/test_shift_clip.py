import pytest
import torch
from shift_clip import shift_clip

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_the_sum_between_the_limits(device):
    x = torch.linspace(-2, 2, 1001, device=device)
    assert torch.equal(shift_clip(x, 0.5, -1.0, 1.0), (x + 0.5).clamp(-1.0, 1.0))


def test_another_dtype_is_refused():
    with pytest.raises(RuntimeError, match="must be float32"):
        shift_clip(torch.zeros(2, dtype=torch.float64), 0.0, 0.0, 1.0)
