"""What is read of projects' files: setup.py by its syntax tree, TOML, CMake, and files that are none of these."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from wheelmill import doctor_project, doctor_setup

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.doctor_facts import Project

SETUP = """
import os
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0;9.0+PTX"
flags = ["-O3", f"-std=c++{17}", "-std=c++17"]
setup(
    name="op",
    ext_modules=[
        CUDAExtension(
            "op._C",
            ["csrc/op.cpp", "csrc/op.cu", "csrc/other.cu"],
            extra_compile_args={"cxx": ["-std=gnu++2a"], "nvcc": ["-gencode", "arch=compute_80,code=sm_80"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    install_requires=["torch>=2", "numpy"],
)
"""
CMAKE = """
project(op LANGUAGES CXX CUDA)
set(CMAKE_CXX_STANDARD 17)  # CMAKE_CXX_STANDARD 14
target_compile_features(op PUBLIC cuda_std_14)
set(CMAKE_CUDA_ARCHITECTURES 80 90a-real 90-virtual)
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -gencode arch=compute_70,code=compute_70")
"""


def made(root: Path, **files: str | bytes) -> Project:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return doctor_project.read(root)


def test_a_setup_py_is_read_and_not_run(tmp_path: Path) -> None:
    found = made(
        tmp_path, setup_dot_py=SETUP + "raise SystemExit(1)\n", csrc__op_dot_cpp="#include <torch/extension.h>"
    )
    assert found.imports_torch
    assert found.cuda
    assert found.collisions == (("csrc/op.cpp", "csrc/op.cu"),)
    assert [(one.value, one.line) for one in found.standards] == [(17, 7), (20, 14)]
    assert [one.sass for one in found.architectures] == [("80", "90"), ("80",)]
    assert found.architectures[0].ptx == ("90",)
    assert [one.text for one in found.dependencies] == ["torch>=2", "numpy"]
    assert found.unstable == "csrc/op.cpp"
    assert found.broken == ()


def test_sources_of_a_glob_collide_too(tmp_path: Path) -> None:
    text = "from glob import glob\nExtension('op', sources=glob('csrc/*.cpp') + glob('csrc/*.cu'))\n"
    found = made(tmp_path, setup_dot_py=text, csrc__a_dot_cpp="", csrc__a_dot_cu="", csrc__b_dot_cu="")
    assert found.collisions == (("csrc/a.cpp", "csrc/a.cu"),)


CHOOSES = """
import os, sys, torch
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
flags = {"cxx": []}
if torch.__version__ < "2":
    flags["cxx"] = ["-std=c++14"]
else:
    flags["cxx"] = ["-std=c++17"]
if sys.platform == "win32":
    flags["cxx"] += ["-std=c++11"]
if torch.version.hip:
    flags["nvcc"] = ["-std=c++11"]
elif CUDA >= 13:
    flags["nvcc"] = ["-gencode", "arch=compute_103,code=sm_103"]
os.environ["TORCH_CUDA_ARCH_LIST"] = ""
"""


def test_of_what_a_condition_chooses_a_new_torch_gets_the_newest(tmp_path: Path) -> None:
    found = made(tmp_path, setup_dot_py=CHOOSES)
    assert [(one.value, one.sure) for one in found.standards] == [(17, False)]
    assert [(one.sass, one.sure) for one in found.architectures] == [(("103",), False)]


def test_flags_of_extensions_without_torch_are_their_own(tmp_path: Path) -> None:
    text = """
from setuptools import Extension, setup
from torch.utils import cpp_extension
class Numpy(Extension):
    pass
old = ["-std=c++11"]
setup(ext_modules=[
    Extension("a", ["a.cpp"], extra_compile_args=old),
    Numpy("b", ["b.cpp"], extra_compile_args=["-std=c++14"]),
    %s
])
"""
    torch = 'cpp_extension.CppExtension("c", ["c.cpp"], extra_compile_args=%s)'
    assert made(tmp_path, setup_dot_py=text % (torch % "[]")).standards == ()
    (found,) = made(tmp_path, setup_dot_py=text % (torch % "old")).standards
    assert found.value == 11
    assert [one.value for one in made(tmp_path, setup_dot_py=text % "").standards] == [11, 14]


@pytest.mark.parametrize(
    ("text", "ninja", "certain"),
    [
        ("from torch.utils.cpp_extension import BuildExtension, CUDAExtension\nCUDAExtension('a', [])", True, True),
        ("from torch.utils import cpp_extension as c\nc.BuildExtension, c.CUDAExtension('a', [])", True, True),
        ("import torch.utils.cpp_extension as c\nc.BuildExtension.with_options(use_ninja=False)", False, False),
        ("import torch\nclass BuildExtension(build_ext): pass\nExtension('a', [])", False, False),
        (
            "import torch.utils.cpp_extension as c\nc.CUDAExtension('a', [], f'arch=compute_{n}')\nc.BuildExtension",
            True,
            False,
        ),
        ("import torch.utils.cpp_extension as c\nif C: c.CUDAExtension('a', [])\nc.BuildExtension", True, False),
    ],
)
def test_whose_build_it_is(tmp_path: Path, text: str, *, ninja: bool, certain: bool) -> None:
    found = made(tmp_path, setup_dot_py=text)
    assert (found.ninja, found.certain) == (ninja, certain)


def test_requirements_in_a_variable(tmp_path: Path) -> None:
    text = "needed = [\n'torch>=1.13',\n]\nsetup(install_requires=needed)\n"
    (found,) = made(tmp_path, setup_dot_py=text).dependencies
    assert (found.text, found.line) == ("torch>=1.13", 2)


def test_sources_that_are_not_listed_may_collide(tmp_path: Path) -> None:
    text = "CUDAExtension('a', sources=every())\n"
    found = made(tmp_path, setup_dot_py=text, a_dot_cpp="", a_dot_cu="")
    assert found.collisions == (("a.cpp", "a.cu"),)
    assert found.guessed
    outside = made(tmp_path, setup_dot_py="CppExtension('a', glob('../x/*.cpp') + glob('**.cpp'))\n")
    assert outside.broken == ()


def test_cmake_files_that_no_build_by_pip_reads(tmp_path: Path) -> None:
    pin = "set(CMAKE_CXX_STANDARD 14)\n"
    assert made(tmp_path, CMakeLists_dot_txt=pin).standards[0].aside is False
    assert made(tmp_path, CMakeLists_dot_txt=pin, setup_dot_py="import torch").standards[0].aside is True
    called = "subprocess.check_call(['cmake', '.'])"
    assert made(tmp_path, CMakeLists_dot_txt=pin, setup_dot_py=called).standards[0].aside is False


def test_others_code_within(tmp_path: Path) -> None:
    (tmp_path / ".gitmodules").write_text('[submodule "x"]\n\tpath = csrc/theirs\n', encoding="utf-8")
    header = "#include <torch/extension.h>"
    found = made(
        tmp_path,
        pyproject_dot_toml="",
        csrc__theirs__a_dot_cu=header,
        csrc__cutlass__include__b_dot_h=header,
        csrc__cutlass__c_dot_cu=header,
    )
    assert found.unstable is None
    assert not found.cuda
    assert made(tmp_path / "2", csrc__cutlass__own_dot_cu=header).unstable == "csrc/cutlass/own.cu"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("setup.py", "a.cu"):
        os.mkfifo(tmp_path / name)
    found = doctor_project.read(tmp_path)
    assert [file for file, _, _ in found.broken] == ["setup.py"]


def test_sources_of_two_extensions_do_not_collide(tmp_path: Path) -> None:
    text = "CppExtension('a', ['a.cpp'])\nCUDAExtension('b', ['a.cu'])\n"
    assert made(tmp_path, setup_dot_py=text).collisions == ()


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import torch", True),
        ("from torch.utils import cpp_extension", True),
        ("if True:\n    import torch.utils", True),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", False),
        ("def later():\n    import torch", False),
        ("def now():\n    import torch\nsetup(ext_modules=now())", True),
        ("def now():\n    import torch\nsetup(ext_modules=now() if CUDA else [])", None),
        ("if CUDA:\n    import torch", None),
        ("if __name__ == '__main__':\n    import torch", True),
        ("later = lambda: now()\ndef now():\n    import torch", False),
        ("import torchvision", False),
        ("from . import torch", False),
    ],
)
def test_only_an_import_that_always_runs_needs_torch(tmp_path: Path, text: str, *, imports: bool | None) -> None:
    assert made(tmp_path, setup_dot_py=text).imports_torch is imports


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("import os, torch\nif torch.cuda.is_available() or os.getenv('FORCE_CUDA') == '1': pass", "FORCE_CUDA"),
        ("import torch\ncuda = torch.cuda.is_available()", "torch.cuda.is_available()"),
        ("import torch\nif not torch.cuda.is_available():\n    raise SystemExit(1)", "torch.cuda.is_available()"),
        ("import torch\nif torch.cuda.is_available():\n    half = torch.cuda.is_bf16_supported()", None),
        ("import torch", None),
    ],
)
def test_what_cuda_code_depends_on(tmp_path: Path, text: str, condition: str | None) -> None:
    assert made(tmp_path, setup_dot_py=text).conditional == condition


def test_cmake_files_are_read_without_their_comments(tmp_path: Path) -> None:
    found = made(tmp_path, CMakeLists_dot_txt=CMAKE)
    # What cxx_std_14 and its like ask for is the least, and no pin.
    assert [(one.value, one.line) for one in found.standards] == [(17, 3)]
    assert [(one.sass, one.ptx) for one in found.architectures] == [
        (("80", "90a"), ("80", "90")),
        ((), ("70",)),
    ]
    assert found.cuda


def test_a_default_that_the_caller_may_replace_is_no_pin(tmp_path: Path) -> None:
    text = "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)\n  set(CMAKE_CUDA_ARCHITECTURES 80)\nendif()\n"
    assert made(tmp_path, CMakeLists_dot_txt=text).architectures == ()
    text = "set(CMAKE_CUDA_ARCHITECTURES ${ARCHS})\nset_property(TARGET a PROPERTY CUDA_ARCHITECTURES native)\n"
    assert made(tmp_path, CMakeLists_dot_txt=text).architectures == ()


def test_a_unit_for_one_gpu_beside_targets_that_the_build_is_told_is_no_pin(tmp_path: Path) -> None:
    unit = "set_target_properties(hopper PROPERTIES CUDA_ARCHITECTURES 90a-real)\n"
    told = 'set_target_properties(others PROPERTIES CUDA_ARCHITECTURES "${ARCHS}")\n'
    assert made(tmp_path / "1", CMakeLists_dot_txt=unit + told).architectures == ()
    told = "set_property(TARGET others PROPERTY CUDA_ARCHITECTURES ${ARCHS})\n"
    assert made(tmp_path / "2", CMakeLists_dot_txt=unit + told).architectures == ()
    # Nothing else has code for other GPUs; or what is fixed is not of one GPU alone.
    for number, text in enumerate(
        [
            unit,
            unit.replace("90a-real", "80 90a") + told,
            f"{unit}# {told}",
            f"if(USE_HIP)\n{told}endif()\n{unit}",
            f"set(ARCHS 90a)\n{told}",
        ],
        3,
    ):
        assert len(made(tmp_path / str(number), CMakeLists_dot_txt=text).architectures) == 1


BRANCHES = """
set(STD 14)
set(ARCHS 80 90)
if(WIN32)
  set(CMAKE_CXX_STANDARD 11)
elseif(BIG)
  set(CMAKE_CXX_STANDARD 23)
else()
  set(CMAKE_CXX_STANDARD ${STD})
endif()
if(NOT MSVC)
  set(CMAKE_CUDA_STANDARD 17)
else()
  set(CMAKE_CUDA_STANDARD 14)
endif()
set_target_properties(op PROPERTIES CUDA_ARCHITECTURES "${ARCHS}")
set(CMAKE_CUDA_ARCHITECTURES ${FROM_OUTSIDE})
set(CMAKE_CXX_FLAGS "-std=c++20")
set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -Wall")
"""


def test_cmakes_branches_and_variables(tmp_path: Path) -> None:
    found = made(tmp_path, CMakeLists_dot_txt=BRANCHES)
    assert [(one.value, one.line, one.sure) for one in found.standards] == [
        (23, 7, False),
        (17, 12, True),
        (20, 18, True),
    ]
    (targets,) = found.architectures
    assert (targets.sass, targets.text) == (("80", "90"), "CUDA_ARCHITECTURES 80 90")


@pytest.mark.parametrize(
    "text",
    [
        "set(A x)\n" + "".join(f"set(B{n} ${{A}}${{A}})\nset(A ${{B{n}}}${{B{n}}})\n" for n in range(60)),
        "[[" * 200_000,
        "#[[\n" * 200_000,
        "#[=[\n" * 100_000 + 'set(A "' * 50_000,
        "set(A [[" * 100_000,
        "message(x)\n" * 90_000,
        "if(" * 200_000,
    ],
    ids=["variables", "brackets", "comments", "quotes", "arguments", "lines", "nested"],
)
def test_cmake_of_any_shape_is_read_at_once(tmp_path: Path, text: str) -> None:
    begun = time.process_time()
    made(tmp_path, CMakeLists_dot_txt=text + "\nset(CMAKE_CXX_STANDARD 14)\n")
    assert time.process_time() - begun < 5


def test_a_command_of_cmake_over_several_lines(tmp_path: Path) -> None:
    aside = "# set(CMAKE_CXX_STANDARD 11)\n#[[ set(CMAKE_CXX_STANDARD 11) ]]\n"
    text = f"project(op)\n{aside}set(  # of torch\n  CMAKE_CXX_STANDARD\n  14)\n"
    (found,) = made(tmp_path, CMakeLists_dot_txt=text).standards
    assert (found.value, found.line) == (14, 4)


@pytest.mark.parametrize(
    ("sources", "collide", "guessed"),
    [
        ("[f'csrc/{name}.cpp', f'csrc/{name}.cu']", True, True),
        ("[os.path.join('csrc', 'op.cpp'), os.path.join('csrc', 'op.cu')]", True, False),
        ("[os.path.join('csrc', 'op.cpp'), os.path.join('cuda', 'op.cu')]", False, False),
        ("[os.path.join(here, 'op.cpp'), os.path.join(there, 'op.cu')]", True, True),
        ("sorted(glob.glob('csrc/*.cpp')) + ['cuda/op.cu']", False, False),
        ("[here + '/csrc/op.cpp']", True, True),
    ],
)
def test_sources_as_setup_py_names_them(tmp_path: Path, sources: str, *, collide: bool, guessed: bool) -> None:
    text = f"CUDAExtension('op', {sources})\n"
    found = made(tmp_path, setup_dot_py=text, csrc__op_dot_cpp="", csrc__op_dot_cu="", cuda__op_dot_cu="")
    assert found.collisions == ((("csrc/op.cpp", "csrc/op.cu"),) if collide else ())
    assert found.guessed is guessed


def test_pyproject_toml(tmp_path: Path) -> None:
    text = (
        '[build-system]\nrequires = ["setuptools", "torch"]\n[project]\nname = "op"\ndependencies = [\n"torch>=2",\n]\n'
    )
    found = made(tmp_path, pyproject_dot_toml=text)
    assert found.requires == ("setuptools", "torch")
    assert [(one.text, one.line) for one in found.dependencies] == [("torch>=2", 6)]
    assert made(tmp_path, pyproject_dot_toml="[project]\nname = 1\ndependencies = 3\n").requires is None


def test_setup_cfg(tmp_path: Path) -> None:
    found = made(tmp_path, setup_dot_cfg="[options]\ninstall_requires =\n    torch>=2\n    numpy\n")
    assert [(one.text, one.file, one.line) for one in found.dependencies] == [
        ("torch>=2", "setup.cfg", 3),
        ("numpy", "setup.cfg", 4),
    ]
    ((file, what, _),) = made(tmp_path / "2", setup_dot_cfg="[options\n").broken
    assert file == "setup.cfg"
    assert "no section headers" in what


def test_dependencies_that_setuptools_reads_from_a_file(tmp_path: Path) -> None:
    text = '[tool.setuptools.dynamic]\ndependencies = {file = ["needs.txt", "../outside.txt", "missing.txt"]}\n'
    found = made(tmp_path, pyproject_dot_toml=text, needs_dot_txt="# of the kernels\n\ntorch>=2.1  # any\nnumpy\n")
    assert [(one.text, one.file, one.line) for one in found.dependencies] == [
        ("torch>=2.1", "needs.txt", 3),
        ("numpy", "needs.txt", 4),
    ]
    text = '[tool.setuptools.dynamic]\ndependencies = {file = "needs.txt"}\n'
    assert len(made(tmp_path, pyproject_dot_toml=text).dependencies) == 2
    assert made(tmp_path, pyproject_dot_toml="[tool.setuptools]\ndynamic = 1\n").dependencies == ()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("setup_dot_py", "def broken(:\n", "setup.py:1 is not Python"),
        ("setup_dot_py", b"x = '\xff'\n", "is not Python"),
        ("setup_dot_py", b"x\0y", "is not Python"),
        ("setup_dot_py", "(" * 5000, "is not Python"),
        ("setup_dot_py", "-" * 200_000 + "1", "is not Python"),
        ("pyproject_dot_toml", "[project\n", "is not TOML"),
        ("pyproject_dot_toml", b"\xef\xbb\xbf[project]\n", "byte order mark"),
        ("pyproject_dot_toml", b"\xff\xfe[\0p\0", "is not TOML"),
        ("pyproject_dot_toml", "a = " + "[" * 20_000, "is not TOML"),
    ],
)
def test_a_file_that_nobody_can_read_is_told_of(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    found = made(tmp_path, **{name: content})
    ((_, what, _),) = found.broken
    assert words in what


def test_a_bom_before_a_setup_py_is_python(tmp_path: Path) -> None:
    assert made(tmp_path, setup_dot_py=b"\xef\xbb\xbfimport torch\n").imports_torch


def test_huge_files_links_and_folders_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "setup.py").symlink_to("setup.py")
    (tmp_path / "CMakeLists.txt").mkdir()
    (tmp_path / "a.cu").symlink_to("/nonexistent")
    found = made(tmp_path, pyproject_dot_toml="#" * (2 << 20))
    assert [file for file, _, _ in found.broken] == ["setup.py"]
    assert found.unread == ("pyproject.toml is larger than 1 MiB",)


def test_other_projects_within_are_not_this_one(tmp_path: Path) -> None:
    pin = "set(CMAKE_CXX_STANDARD 14)\n"
    found = made(
        tmp_path,
        pyproject_dot_toml="",
        sub__pyproject_dot_toml="",
        sub__CMakeLists_dot_txt=pin,
        csrc__third_party__CMakeLists_dot_txt=pin,
        build__CMakeLists_dot_txt=pin,
    )
    assert found.standards == ()


@pytest.mark.parametrize(
    ("text", "unstable"),
    [
        ("#include <torch/extension.h>", True),
        ("  # include <ATen/ATen.h>", True),
        ('#include "c10/cuda/CUDAGuard.h"', True),
        ("#include <torch/csrc/stable/library.h>\n#include <torch/headeronly/util/Exception.h>", False),
        ("// #include <torch/extension.h>", False),
        ("#include <cuda_runtime.h>", False),
    ],
)
def test_only_torchs_stable_headers_are_stable(tmp_path: Path, text: str, *, unstable: bool) -> None:
    found = made(tmp_path, op_dot_cu=text)
    assert bool(found.unstable) is unstable
    assert bool(found.stable) is ("csrc/stable" in text)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("-gencode=arch=compute_80,code=sm_80", (("80",), ())),
        ("arch=compute_90a,code=[sm_90a,compute_90a]", (("90a",), ("90a",))),
        ("-arch=sm_75", (("75",), ("75",))),
        ("arch=compute_80,code=compute_80", ((), ("80",))),
        ("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90", (("80", "90"), ())),
    ],
)
def test_nvccs_flags(text: str, targets: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    assert doctor_setup.targets(text) == targets
