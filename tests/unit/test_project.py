"""What a project's files tell the engine."""

from pathlib import Path

import pytest

from wheelmill import project
from wheelmill.errors import InputError

SCIKIT = '[build-system]\nrequires = ["scikit-build-core>=0.10"]\nbuild-backend = "scikit_build_core.build"\n'
WITH_TORCH = '[build-system]\nrequires = ["setuptools", "torch>=2.4"]\nbuild-backend = "setuptools.build_meta"\n'


@pytest.fixture(autouse=True)
def _no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_in_git", lambda _: None)


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py").replace("_toml", ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "imports"),
    [
        ({"pyproject_toml": SCIKIT}, False),
        ({"pyproject_toml": WITH_TORCH}, True),
        ({"setup_py": "from torch.utils.cpp_extension import CUDAExtension"}, True),
        ({"setup_py": "from setuptools import setup"}, False),
        ({"pyproject_toml": SCIKIT, "setup_py": "import torch"}, False),
    ],
)
def test_a_build_that_imports_torch_is_told_from_one_that_needs_its_headers(
    tmp_path: Path, files: dict[str, str], imports: bool
) -> None:
    root = write(tmp_path, **files)
    assert project.read(root, (), "auto").imports_torch is imports
    assert project.read(root, (), "import").imports_torch
    assert not project.read(root, (), "headers").imports_torch


def test_torch_is_left_to_the_cell_and_tools_are_added(tmp_path: Path) -> None:
    root = write(tmp_path, pyproject_toml=WITH_TORCH)
    assert project.build_requirements(project.read(root, (), "auto")) == [
        "setuptools",
        "ninja>=1.11",
        "wheel",
        "numpy",
    ]
    (root / "CMakeLists.txt").write_text("")
    assert "cmake>=3.26" in project.build_requirements(project.read(root, (), "auto"))


def test_the_hash_follows_content_name_and_mode(tmp_path: Path) -> None:
    root = write(tmp_path, setup_py="", src__a_py="1")
    first = project.read(root, (), "auto")
    assert first.files == ("setup.py", "src/a.py")
    hashes = {first.sha256}
    (root / "src" / "a.py").write_text("2")
    hashes.add(project.read(root, (), "auto").sha256)
    (root / "src" / "a.py").rename(root / "src" / "b.py")
    hashes.add(project.read(root, (), "auto").sha256)
    (root / "src" / "b.py").chmod(0o755)
    hashes.add(project.read(root, (), "auto").sha256)
    assert len(hashes) == 4


def test_sources_narrow_what_counts(tmp_path: Path) -> None:
    root = write(tmp_path, setup_py="", src__a_py="1", docs__page_py="1")
    narrow = project.read(root, ("src", "setup.py"), "auto")
    assert narrow.files == ("setup.py", "src/a.py")
    (root / "docs" / "page.py").write_text("2")
    assert project.read(root, ("src", "setup.py"), "auto").sha256 == narrow.sha256
    with pytest.raises(InputError, match="has no such file"):
        project.read(root, ("srcs",), "auto")


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "project", setup_py="")
    (tmp_path / "outside.h").write_text("")
    (root / "inside.h").symlink_to("../outside.h")
    with pytest.raises(InputError, match="outside the project"):
        project.read(root, (), "auto")


def test_no_project_and_no_toml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither pyproject"):
        project.read(tmp_path, (), "auto")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[build-system", "pyproject.toml"),
        ('build-system = "x"', "build-system"),
        ('[build-system]\nrequires = "setuptools"', "build-system.requires"),
        ('[build-system]\nrequires = ["not a req !!"]', "build-system.requires"),
        ('[build-system]\nrequires = []\nbuild-backend = ["a"]', "build-system.build-backend"),
    ],
)
def test_a_build_system_that_cannot_be_understood(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, pyproject_toml=text)
    with pytest.raises(InputError, match=said):
        project.read(tmp_path, (), "auto")


def test_outputs_are_no_sources(tmp_path: Path) -> None:
    root = write(tmp_path, setup_py="", matrix__yaml="", wheels__a_py="")
    outputs = [root / "matrix" / "yaml", root / "wheels", tmp_path.parent / "elsewhere"]
    assert project.read(root, (), "auto", outputs).files == ("setup.py",)


def test_a_folder_that_ignores_itself_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    for name, ignored in (("made", "*\n"), ("kept", "*.o\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".gitignore").write_text(ignored)
        (tmp_path / name / "a.txt").write_text("")
    assert project.read(tmp_path, [], "auto").files == ("kept/.gitignore", "kept/a.txt", "setup.py")


def test_a_copy_holds_the_files_and_no_other(tmp_path: Path) -> None:
    root = write(tmp_path / "from", setup_py="s", src__a_py="1", docs__page_py="1")
    project.copy(project.read(root, ("src", "setup.py"), "auto"), tmp_path / "to")
    copied = sorted(str(p.relative_to(tmp_path / "to")) for p in (tmp_path / "to").rglob("*") if p.is_file())
    assert copied == ["setup.py", "src/a.py"]
