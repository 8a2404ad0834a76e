"""Builds that write their time or their folder into the wheel are told from one that does not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import PROJECTS, STORE, command

WHEEL = "cpu-torch2.14"


@pytest.fixture
def stamped(tmp_path: Path) -> Path:
    return shutil.copytree(PROJECTS / "stamped", tmp_path / "stamped")


def run(project: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    args = command(*arguments)
    return subprocess.run(args, cwd=project, text=True, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("holds", "cause"), [("time", "an embedded time (__TIME__ writes one)"), ("path", "an embedded path: '/")]
)
def test_the_first_member_that_differs_is_named_with_its_cause(stamped: Path, holds: str, cause: str) -> None:
    (stamped / "holds").write_text(holds)
    done = run(stamped, "repro", "--json", "--store", STORE)
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)["wheels"]
    assert (row["wheel"], row["identical"]) == (WHEEL, False)
    (finding,) = row["findings"]
    assert (finding["rule"], finding["library"]) == ("not-reproducible", "stamped/stamp.py")
    assert cause in finding["message"]
    assert "-ffile-prefix-map" in done.stderr or "SOURCE_DATE_EPOCH" in done.stderr


def test_the_clean_twin_is_silent(stamped: Path) -> None:
    (stamped / "holds").write_text("nothing")
    done = run(stamped, "repro", "--store", STORE)
    assert done.returncode == 0, done.stderr
    assert "the same bytes twice" in done.stdout


def test_a_build_session_compares_once_and_publishes_nothing_that_differs(stamped: Path) -> None:
    store = stamped.parent / "store"
    (store / "torch").mkdir(parents=True)
    for name in ("torch", "resolutions"):
        if (STORE / name).exists():
            shutil.copytree(STORE / name, store / name, dirs_exist_ok=True, copy_function=link)
    build = ("build", "--no-prove", "--repro", "--store", store)
    (stamped / "holds").write_text("nothing")
    assert "build once more" in run(stamped, *build).stderr
    assert "build once more" not in run(stamped, *build).stderr
    (published,) = (stamped / "dist").glob("*.whl")
    (stamped / "holds").write_text("time")
    done = run(stamped, *build)
    assert done.returncode == 1
    assert "is not reproducible" in done.stderr
    assert not published.exists()


def link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def test_two_files(tmp_path: Path) -> None:
    from zipfile import ZipFile, ZipInfo

    for folder, year in (("one", 1980), ("other", 1990)):
        (tmp_path / folder).mkdir()
        with ZipFile(tmp_path / folder / "demo-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr(ZipInfo("demo.py", (year, 1, 1, 0, 0, 0)), "")
    one, other = (tmp_path / folder / "demo-1.0-py3-none-any.whl" for folder in ("one", "other"))
    assert run(tmp_path, "repro", one, one).returncode == 0
    done = run(tmp_path, "repro", one, other)
    assert done.returncode == 1
    assert "demo.py: the timestamp differs: (1980, 1, 1, 0, 0, 0) and (1990, 1, 1, 0, 0, 0)" in done.stderr
