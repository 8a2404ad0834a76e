"""The tables that are read out of torch's cpp_extension.py, of the forms that they have in torch 1.13 to 2.15."""

from __future__ import annotations

import pytest

from wheelmill import doctor_extension
from wheelmill.doctor_extension import Tables

TEXT = """
MINIMUM_GCC_VERSION = (5, 0, 0)
VersionMap = dict[str, tuple]
CUDA_GCC_VERSIONS: VersionMap = {
    '11.0': (MINIMUM_GCC_VERSION, (10, 0)),
    '11.6': ((6, 0, 0), (11, 5, 0)),
    '13.0': ((6, 0, 0), (16, 0)),
}
CUDA_CLANG_VERSIONS = {'13.0': ((7, 0), (21, 0)), **OTHERS, 'odd': 3}
raise SystemExit('it was run')

def _get_cuda_arch_flags(cflags=None):
    named_arches = collections.OrderedDict([('Ampere', '8.0;8.6+PTX'), ('Ada', '8.9+PTX')])
    supported_arches = ['8.0', '8.6',
                        '9.0a']
    valid_arch_strings = supported_arches + [s + "+PTX" for s in supported_arches]
"""


def test_the_tables() -> None:
    assert doctor_extension.read(TEXT) == Tables(
        arches=("8.0", "8.6", "9.0a"),
        names={"Ampere": "8.0;8.6+PTX", "Ada": "8.9+PTX"},
        gcc={"11.0": 9, "11.6": 11, "13.0": 15},
        clang={"13.0": 20},
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def",
        "\0",
        "(" * 5000,
        "supported_arches = f()\nnamed_arches = OrderedDict(x)\nCUDA_GCC_VERSIONS = {'13.0': (1, x), 3: 4}",
        "supported_arches = 3\nnamed_arches = [1, (2,)]\nCUDA_GCC_VERSIONS = []",
    ],
)
def test_a_file_without_them(text: str) -> None:
    assert doctor_extension.read(text) == Tables()
