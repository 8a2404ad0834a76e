"""The workflow of a project: written once, recognised, never in place of somebody's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from wheelmill import ci_template
from wheelmill.errors import GateError, InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "matrix.yaml").write_text("version: 1\n")
    return tmp_path / "matrix.yaml"


def test_it_is_written_and_then_up_to_date(matrix: Path) -> None:
    with pytest.raises(GateError, match="is not there"):
        ci_template.check(matrix)
    assert "is written" in ci_template.write(matrix)
    assert "is up to date" in ci_template.check(matrix)
    assert "is up to date" in ci_template.write(matrix)
    text = (matrix.parent / ci_template.WHERE).read_text()
    assert len(text.splitlines()) <= 10
    found = yaml.safe_load(text)
    assert found["permissions"] == {}
    assert found["jobs"]["wheels"] == {
        "permissions": {"contents": "read"},
        "uses": "wheelmill/wheelmill/.github/workflows/wheels.yml@v1",
    }


def test_a_project_in_a_folder_is_named_to_the_workflow(matrix: Path) -> None:
    inner = matrix.parent / 'ext "a"'
    inner.mkdir()
    (inner / "wheels.yaml").write_text("version: 1\n")
    ci_template.write(inner / "wheels.yaml")
    found = yaml.safe_load((matrix.parent / ci_template.WHERE).read_text())
    assert found["jobs"]["wheels"]["with"] == {"project": 'ext "a"', "matrix": "wheels.yaml"}


def test_a_second_project_does_not_take_the_place_of_the_first(matrix: Path) -> None:
    ci_template.write(matrix)
    inner = matrix.parent / "kernels"
    inner.mkdir()
    (inner / "matrix.yaml").write_text("version: 1\n")
    before = (matrix.parent / ci_template.WHERE).read_text()
    with pytest.raises(InputError, match="builds another project") as caught:
        ci_template.write(inner / "matrix.yaml")
    assert "add a job" in caught.value.remedy
    assert (matrix.parent / ci_template.WHERE).read_text() == before


def test_an_expression_is_no_name(matrix: Path) -> None:
    inner = matrix.parent / "${{ secrets.A }}"
    inner.mkdir()
    (inner / "matrix.yaml").write_text("version: 1\n")
    with pytest.raises(InputError, match="as an expression"):
        ci_template.write(inner / "matrix.yaml")


@pytest.mark.parametrize("change", [str.upper, lambda text: text + "# mine\n", lambda _: "name: mine\n", lambda _: ""])
def test_what_somebody_wrote_or_changed_is_left(matrix: Path, change) -> None:
    ci_template.write(matrix)
    path = matrix.parent / ci_template.WHERE
    path.write_text(change(path.read_text()))
    before = path.read_text()
    with pytest.raises(InputError, match="not overwritten"):
        ci_template.write(matrix)
    with pytest.raises(GateError, match="nothing says that it is right"):
        ci_template.check(matrix)
    assert path.read_text() == before


def test_an_earlier_engines_is_replaced(matrix: Path) -> None:
    body = "name: wheels\n"
    path = matrix.parent / ci_template.WHERE
    path.parent.mkdir(parents=True)
    path.write_text(f"# Written by `wheelmill ci --write`; digest {ci_template.digest(body)}\n{body}")
    with pytest.raises(GateError, match="another version"):
        ci_template.check(matrix)
    assert "is written" in ci_template.write(matrix)
    assert "is up to date" in ci_template.check(matrix)


def test_without_a_matrix_there_is_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not here"):
        ci_template.write(tmp_path / "matrix.yaml")
