"""Where a wheel is proven: the default index's torch first, the newest first."""

from wheelmill.facts import Facts
from wheelmill.model import Cell, Wheel
from wheelmill.prove import ENGINE_PYTHON, _candidates


def wheel(cuda: str, *cells: tuple[str, str]) -> Wheel:
    return Wheel(
        id=f"{cuda}-stable2.10",
        cuda=cuda,
        torch="2.10",
        torch_abi="stable",
        python=None,
        python_abi="none",
        sm=(),
        local=cuda,
        requires="torch>=2.10",
        cells=tuple(Cell(cuda=cuda, torch=torch, python=python) for torch, python in cells),
    )


def order(made: Wheel, known: Facts) -> list[tuple[str, str | None]]:
    return [(cell.id, backend) for cell, backend in _candidates(made, known)]


def test_the_default_indexs_variant_comes_first(known: Facts) -> None:
    made = wheel("cu130", ("2.10", "3.12"), ("2.11", "3.12"), ("2.12", "3.12"))
    assert order(made, known) == [
        ("cu130-torch2.12-cp312", None),
        ("cu130-torch2.11-cp312", None),
        ("cu130-torch2.10-cp312", "cu130"),
    ]


def test_a_cpu_wheel_asks_the_cpu_index_and_then_the_default_one(known: Facts) -> None:
    assert order(wheel("cpu", ("2.11", "3.12")), known) == [
        ("cpu-torch2.11-cp312", "cpu"),
        ("cpu-torch2.11-cp312", None),
    ]


def test_the_engines_own_python_is_preferred_and_free_threaded_ones_are_not_taken(known: Facts) -> None:
    made = wheel("cu130", ("2.11", "3.13t"), ("2.11", "3.9"), ("2.11", ENGINE_PYTHON))
    assert order(made, known) == [(f"cu130-torch2.11-cp{ENGINE_PYTHON.replace('.', '')}", None)]
