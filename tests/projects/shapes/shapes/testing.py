"""Samples of every operator, some of which have dtypes and tolerances of their own."""

from dataclasses import dataclass

import torch

DTYPES = (torch.float32, torch.float64)
TOLERANCES = {torch.float32: (1e-6, 1e-6), torch.float64: (1e-14, 1e-14)}


class Operator:
    capturable = True

    def __init__(self, name):
        self.name, self.base = name, name.removesuffix("_wrong")
        self.differentiable = self.base in ("product", "order")
        if self.base == "halved":
            self.dtypes = (torch.bfloat16, torch.float16)
            self.tolerances = {torch.bfloat16: (2**-8, 1e-6), torch.float16: (2**-11, 1e-6)}
        elif self.base == "product":
            self.tolerances = {torch.float32: (1e-5, 1e-5), torch.float64: (1e-13, 1e-13)}
        elif self.base == "keep":
            self.capturable = False

    @property
    def op(self):
        return getattr(torch.ops.shapes, self.name).default


@dataclass(frozen=True)
class Sample:
    operator: Operator
    name: str
    args: tuple

    def reference(self):
        first, *others = (one.double() if isinstance(one, torch.Tensor) else one for one in self.args)
        match self.operator.base:
            case "product":
                return first @ others[0]
            case "keep":
                return torch.tensor([at for at, one in enumerate(first.tolist()) if one > others[0]], dtype=torch.int64)
            case "order":
                return tuple(first.sort(dim=-1, stable=True))
            case "halved":
                return first * 0.3
            case "store":
                return others[0] * 2
            case "laid":
                return first.permute(sorted(range(first.dim()), key=lambda at: -first.stride(at))).flatten()


OPERATORS = {
    name: Operator(name)
    for base in ("product", "keep", "order", "halved", "store", "laid")
    for name in (base, f"{base}_wrong")
}


def samples(operator, device, dtype):
    generator = torch.Generator().manual_seed(0)

    def make(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    match operator.base:
        case "product":
            calls = {"wide": (make(3, 5), make(5, 2)), "tall": (make(7, 1), make(1, 4))}
        case "keep":
            far = torch.zeros(2**20 + 3, dtype=dtype, device=device)
            far[-1] = 1
            calls = {"some": (make(30), 0.1), "none": (make(5), 100.0), "far": (far, 0.5)}
        case "order":
            calls = {"rows": (make(3, 7),), "one": (make(1),)}
        case "halved":
            calls = {"typical": (make(3, 7),)}
        case "store":
            calls = {"typical": (make(3, 7), make(3, 7))}
        case "laid":
            calls = {"turned": (make(3, 7).t(),), "cube": (make(2, 3, 4).permute(1, 2, 0),)}
    for name, args in calls.items():
        yield Sample(operator, name, args)
