"""matrix.yaml → Matrix: defaults, and one clear message for each bad input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill import matrix
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALLEST = 'version: 1\ntorch: ">=2.4"\ncuda: [cpu, cu130]\n'

BAD = [
    # text, line, key, what is told, what the remedy says
    ('version: 2\ntorch: ">=2.4"\ncuda: [cpu]\n', 1, "version", "not one of the values", "reads version: 1"),
    ('version: "1"\ntorch: ">=2.4"\ncuda: [cpu]\n', 1, "version", "not one of the values", "reads version: 1"),
    ("version: 1\ncuda: [cpu]\n", 1, "torch", "the key is missing", 'torch: ">=2.4"'),
    ("- version\n", 1, "", "this is a list, but a mapping is needed", "key: value"),
    ('version: [1]\ntorch: ">=2.4"\ncuda: [cpu]\n', 1, "version", "this is a list, but 1 is needed", "version: 1"),
    ("words\n", 1, "", "this is text, but a mapping is needed", "key: value"),
    (SMALLEST + "pythn: x\n", 4, "pythn", "no such key", 'Did you mean "python"?'),
    (SMALLEST + "policy: {glib: x}\n", 4, "policy.glib", "no such key", 'Did you mean "glibc"?'),
    (SMALLEST + 'torch: ">=2.5"\n', 4, "torch", "given twice, on lines 2 and 4", "Keep one"),
    (SMALLEST + "<<: {a: 1}\n", 4, "<<", "no such key", "Known: version"),
    (SMALLEST + "? [a, b]\n: c\n", 4, "", "a key must be a plain word", "key: value"),
    ("version: 1\ntorch: {text: 1}\ncuda: [cpu]\n", 2, "torch", "this is a mapping, but", 'torch: ">=2.4"'),
    ("version: 1\ntorch: []\ncuda: [cpu]\n", 2, "torch", "the list is empty", "Give at least one"),
    ("version: 1\ntorch:\ncuda: [cpu]\n", 2, "torch", "this is empty", '">=2.4"'),
    ("version: 1\ntorch: true\ncuda: [cpu]\n", 2, "torch", "this is true or false", '">=2.4"'),
    ("version: 1\ntorch: [2.10]\ncuda: [cpu]\n", 2, "torch[0]", "drops its last zero", 'Quote it: "2.10"'),
    ("version: 1\ntorch: [2.11]\ncuda: [cpu]\n", 2, "torch[0]", "2.11 as a number.", 'Quote it: "2.11"'),
    ('version: 1\ntorch: "2.11"\ncuda: [cpu]\n', 2, "torch", "no version range", '["2.11"]'),
    ('version: 1\ntorch: ">=2.11.1"\ncuda: [cpu]\n', 2, "torch", "minor releases", ">=2.11."),
    ('version: 1\ntorch: ["2.11.0"]\ncuda: [cpu]\n', 2, "torch[0]", "not of the form", "A minor release of torch"),
    ('version: 1\ntorch: ["2.9", "2.9"]\ncuda: [cpu]\n', 2, "torch[1]", "listed twice", "Keep one"),
    ('version: 1\ntorch: ">=2.4"\ncuda: cu130\n', 3, "cuda", "a list is needed", "Write [cu130]."),
    ('version: 1\ntorch: ">=2.4"\ncuda: [130]\n', 3, "cuda[0]", "this is a number", "cu130"),
    (SMALLEST + "python: [3.10]\n", 4, "python[0]", "drops its last zero", '"3.10"'),
    (SMALLEST + 'python: "3.11"\n', 4, "python", "no version range", '["3.11"]'),
    (SMALLEST + 'python: ["3"]\n', 4, "python[0]", "not of the form", '"3.11"'),
    (SMALLEST + "sm: {default: 8.0}\n", 4, "sm.default", "drops its last zero", '"8.0"'),
    (SMALLEST + 'sm:\n  cu126: ["8.0"]\n', 5, "sm.cu126", "not in `cuda`", "Add cu126"),
    (SMALLEST + "sm: {cpu: all}\n", 4, "sm.cpu", "no GPU targets", "Remove"),
    (SMALLEST + "sm: {defualt: all}\n", 4, "sm.defualt", "no such key", '"default"'),
    (SMALLEST + "abi: {torch: stable>=2.9}\n", 4, "abi.torch", "no stable ABI", "stable>=2.10"),
    (SMALLEST + "abi: {torch: stable}\n", 4, "abi.torch", "not of the form", "stable>=2.10"),
    (SMALLEST + "abi: {python: }\n", 4, "abi.python", "this is empty, but one of none, abi3", "per-version"),
    (SMALLEST + "operators:\n", 4, "operators", "this is empty, but a mapping", "namespace: NAME"),
    (SMALLEST + "project: {name: 12}\n", 4, "project.name", "as a number", 'Quote it: "12"'),
    (SMALLEST + "facts: !path x\n", 4, "facts", "the tag !path, but a text", "TOML file"),
    (SMALLEST + "abi: {python: abi2}\n", 4, "abi.python", "not one of the values", '"abi3"'),
    (SMALLEST + "policy: {glibc: 2.28}\n", 4, "policy.glibc", "as a number", '"2.28"'),
    (SMALLEST + 'policy: {glibc: "3"}\n', 4, "policy.glibc", "not of the form", '"2.28"'),
    (SMALLEST + "policy: {size: 200}\n", 4, "policy.size", "a text is needed", "200MB"),
    (SMALLEST + "policy: {size: 200XB}\n", 4, "policy.size", "not of the form", "200MB"),
    (SMALLEST + "policy: {size: 0MB}\n", 4, "policy.size", "not of the form", "200MB"),
    (SMALLEST + "gates: {publish: [audti]}\n", 4, "gates.publish[0]", "not one of", '"audit"'),
    (SMALLEST + "operators: {samples: a.b}\n", 4, "operators.namespace", "missing", "namespace: NAME"),
    (SMALLEST + "operators: {namespace: a-b}\n", 4, "operators.namespace", "not of the form", "torch.ops"),
    (SMALLEST + "toolkit: {minor: any}\n", 4, "toolkit.minor", "not one of", "exact, same-major"),
    (SMALLEST + "project: {path: nowhere}\n", 4, "project.path", "is no folder", "relative"),
    (SMALLEST + "facts: nowhere.toml\n", 4, "facts", "is no file", "relative"),
]


@pytest.mark.parametrize(("text", "line", "key", "told", "remedy"), BAD)
def test_bad_input_is_one_message_with_line_key_and_remedy(
    write: Callable[[str], Path], text: str, line: int, key: str, told: str, remedy: str
) -> None:
    file = write(text)
    with pytest.raises(InputError) as caught:
        matrix.load(file)
    where = f"{file}:{line}: {key}: " if key else f"{file}:{line}: "
    assert str(caught.value).startswith(where)
    assert told in str(caught.value)
    assert remedy in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_problems_are_told_together_in_order(write: Callable[[str], Path]) -> None:
    file = write('version: 3\ntorch: [2.10, "2.4.1"]\ncuda: []\npython: "3.11"\npolicy: {siez: 1MB}\n')
    with pytest.raises(InputError) as caught:
        matrix.load(file)
    text = str(caught.value)
    assert text.startswith(f"{file} has 6 problems.")
    places = [":1: version", ":2: torch[0]", ":2: torch[1]", ":3: cuda", ":4: python", ":5: policy.siez"]
    assert [text.index(place) for place in places] == sorted(text.index(place) for place in places)
    assert text.count("what to do: ") == 6


def test_a_refused_item_keeps_its_place(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        matrix.load(write('version: 1\ntorch: [2.10, "x"]\ncuda: [cpu]\n'))
    assert 'torch[1]: "x"' in str(caught.value)


def test_smallest_matrix_has_the_defaults_of_an_ordinary_extension(write: Callable[[str], Path]) -> None:
    made = matrix.load(write(SMALLEST))
    assert made.torch.range == ">=2.4"
    assert made.cuda == ("cpu", "cu130")
    assert not made.python.range
    assert dict(made.sm) == {"default": ("all-major",)}
    assert made.stable_from is None
    assert made.python_abi == "version"
    assert made.operators is None
    assert made.policy == matrix.Policy(glibc="2.28", size=None)
    assert made.gates["publish"] == ("audit", "cover")
    assert made.toolkit_minor == "exact"
    assert made.project.build_torch == "auto"
    assert made.project.sources == ()


def test_every_key_is_read(write: Callable[[str], Path]) -> None:
    text = SMALLEST + (
        'python: ["3.11", "3.13t"]\n'
        'sm: {default: "8.0;9.0+PTX", cu130: all}\n'
        "abi: {torch: stable>=2.11, python: none}\n"
        "operators: {namespace: ops, samples: ops.testing}\n"
        'policy: {glibc: "2.34", size: 1.5MiB}\n'
        "gates: {publish: [audit]}\n"
        "toolkit: {minor: same-major}\n"
        "project: {path: ., sources: [csrc], name: my-ops, build_torch: headers}\n"
    )
    made = matrix.load(write(text))
    assert made.python.listed == ("3.11", "3.13t")
    assert dict(made.sm) == {"default": ("8.0", "9.0+PTX"), "cu130": ("all",)}
    assert (made.stable_from, made.python_abi) == ("2.11", "none")
    assert made.operators == matrix.Operators(namespace="ops", samples="ops.testing")
    assert made.policy == matrix.Policy(glibc="2.34", size=1572864)
    assert made.gates["publish"] == ("audit",)
    assert made.toolkit_minor == "same-major"
    assert (made.project.name, made.project.build_torch) == ("my-ops", "headers")
    assert made.line("python[1]") == 4
    assert made.line("cuda[0]") == 3
    assert made.line("sm.cu130[4]") == 5
    assert made.line("nothing") == 1


def test_operators_bring_their_gates(write: Callable[[str], Path]) -> None:
    made = matrix.load(write(SMALLEST + "operators: {namespace: ops}\n"))
    assert made.gates["publish"] == ("audit", "cover", "ops", "gradcheck", "sanitize")


def test_python_defaults_to_the_projects_own_range(write: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "ext"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\nrequires-python = ">=3.11,<3.13"\n')
    made = matrix.load(write(SMALLEST + "project: {path: ext}\n"))
    assert made.python.among(("3.10", "3.11", "3.12", "3.13")) == ("3.11", "3.12")


@pytest.mark.parametrize("text", ["[project", '[project]\nrequires-python = "newer"\n'])
def test_an_unreadable_requires_python_is_told(write: Callable[[str], Path], tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InputError, match="python: the key is left out, and requires-python cannot be read"):
        matrix.load(write(SMALLEST))
