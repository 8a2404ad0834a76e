"""Which parts of a setup.py run on this system, by their conditions alone."""

from __future__ import annotations

import ast

import pytest

from wheelmill import doctor_branches


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("sys.platform == 'win32'", True),
        ("os.name == 'nt'", True),
        ("sys.platform != 'darwin'", False),
        ("not os.name == 'nt'", False),
        ("torch.version.hip", True),
        ("torch.version.hip is not None", True),
        ("torch.version.hip is None", False),
        ("IS_ROCM and CUDA_HOME", True),
        ("not IS_ROCM and CUDA_HOME", None),
        ("IS_ROCM or CUDA_HOME", None),
        ("not IS_ROCM or CUDA_HOME", False),
        ("torch.cuda.is_available()", None),
        ("ship == 'it'", None),
    ],
)
def test_conditions_that_hold_elsewhere(text: str, *, known: bool | None) -> None:
    assert doctor_branches.elsewhere(ast.parse(text, mode="eval").body) is known


def test_what_may_run_here_and_what_decides_it() -> None:
    text = "a\nif rocm:\n    b\nelse:\n    c\nif d:\n    e\n    if f:\n        g\nh if not windows else i\n"
    names = [(one.id, group) for one, group in doctor_branches.here(ast.parse(text)) if isinstance(one, ast.Name)]
    assert names == [
        ("a", None),
        ("rocm", None),
        ("c", None),
        ("d", None),
        ("e", 6),
        ("f", 6),
        ("g", 6),
        ("windows", None),
        ("h", None),
    ]
