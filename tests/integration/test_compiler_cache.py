"""A compiler cache saves compiles, changes no byte, and fails no build."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import compiler_cache, facts, toolkit
from wheelmill.inputs import Inputs
from wheelmill.store import Store

from .conftest import PROJECTS, STORE, command, environment

if TYPE_CHECKING:
    from wheelmill.compiler_tally import Tally


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shutil.copytree(PROJECTS / "cached", tmp_path / "cached")


def build(project: Path, *arguments: str | Path, store: Path = STORE) -> tuple[bytes, dict[str, Any], str]:
    """(the wheel, what JSON says, standard error) of a build that the store did not have."""
    args = command("build", "--no-prove", "--json", "--executor", "local", "--store", store, *arguments)
    done = subprocess.run(args, cwd=project, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    (row,) = said["wheels"]
    assert row["status"] == "built"
    wheel = project / row["file"]
    shutil.rmtree(store / "wheels" / json.loads(Path(f"{wheel}.manifest.json").read_text())["key"])
    return wheel.read_bytes(), said, done.stderr


def counts(said: dict[str, Any]) -> tuple[int, int]:
    found = said["compiler_cache"]
    assert (found["failed"], found["passed"]) == (0, 0)
    return found["hits"], found["misses"]


def linked(store: Path) -> Path:
    """Another store, which holds what the shared one fetched."""
    for name in ("torch", "resolutions", "envs", "requires"):
        shutil.copytree(STORE / name, store / name, symlinks=True, copy_function=lambda a, b: Path(b).hardlink_to(a))
    return store


def test_hits_across_runs_and_places_give_the_bytes_of_a_build_without(project: Path, tmp_path: Path) -> None:
    cache = ("--compiler-cache", tmp_path / "kept" / "cache")
    plain, said, _ = build(project)
    assert "compiler_cache" not in said
    cold, said, _ = build(project, *cache)
    assert counts(said) == (0, 2)
    warm, said, told = build(project, *cache)
    assert counts(said) == (2, 0)
    assert f"compiler cache {cache[1]}: 2 hits, 0 misses" in told
    assert plain == cold == warm
    elsewhere = shutil.copytree(project, tmp_path / "somewhere" / "else")
    there, said, _ = build(elsewhere, *cache, store=linked(tmp_path / "deep" / "down" / "store"))
    assert counts(said) == (2, 0)
    assert there == plain
    (project / "answer.h").write_text("#define ANSWER 43\n")
    changed, said, _ = build(project, *cache)
    assert counts(said) == (1, 1)
    assert changed == build(project)[0] != plain


def test_a_second_build_that_is_compared_is_not_answered_by_the_cache(project: Path, tmp_path: Path) -> None:
    _, said, told = build(project, "--repro", "--compiler-cache", tmp_path / "cache", store=linked(tmp_path / "store"))
    assert "build once more" in told
    assert counts(said) == (0, 2)


def test_a_cache_inside_of_the_project_is_none_of_its_sources(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    keys = []
    for _ in range(2):
        build(project, "--compiler-cache", project / "kept")
        (manifest,) = (project / "dist").glob("*.manifest.json")
        keys.append(json.loads(manifest.read_text())["key"])
    assert keys[0] == keys[1]


@pytest.mark.parametrize(("fault", "said"), [("a file", "is no folder"), ("not ours to write", "/proc/cache")])
def test_a_cache_that_cannot_be_used_is_told_once(project: Path, tmp_path: Path, fault: str, said: str) -> None:
    folder = Path("/proc/cache")
    if fault == "a file":
        folder = tmp_path / "file"
        folder.write_text("")
    _, made, told = build(project, "--compiler-cache", folder)
    assert made["compiler_cache"] is None
    assert told.count("no compiler cache in") == 1
    assert said in told


def test_a_cache_whose_files_are_damaged_is_mended(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    plain, _, _ = build(project, "--compiler-cache", cache)
    for path in (cache / "ccache" / "objects").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    mended, said, _ = build(project, "--compiler-cache", cache)
    assert mended == plain
    assert counts(said) == (0, 2)
    assert counts(build(project, "--compiler-cache", cache)[1]) == (2, 0)


class Bench:
    """A folder in which compilers are called as a build calls them."""

    def __init__(self, folder: Path) -> None:
        # A folder of sources alone, as a build's copy is.
        self.root, self.folder, self.runs = folder, folder / "source", 0
        self.folder.mkdir()
        store = Store(STORE)
        kit = toolkit.pypi(store, facts.load().cuda["cu130"], store.log("compiler-cache"))
        host = toolkit.compiler(facts.load().cuda["cu130"].gcc)
        self.inputs = Inputs(
            executor="local",
            toolkit=kit,
            compiler=host,
            python="",
            tools="",
            torch="",
            torch_python="",
            torch_backend=None,
        )
        self.nvcc = [str(kit.nvcc), "-ccbin", host.cxx, "-gencode", "arch=compute_80,code=sm_80"]
        self.nvcc += ["-gencode", "arch=compute_90,code=sm_90", "-x", "cu", "-c"]
        cache = compiler_cache.open_folder(folder / "kept", folder, print)
        assert cache is not None
        self.cache = cache

    def compile(self, args: list[str], broken: str = "", within: str = ".", **late: str) -> tuple[int, Tally]:
        """(exit status, what was counted) of one call; `late` is what a project's own setup exports."""
        self.runs += 1
        work = self.root / f"work-{self.runs}"
        work.mkdir()
        with compiler_cache.local(self.cache, str(self.runs), self.inputs, self.root, work) as changes:
            env = changes({**environment(), "CUDACXX": args[0]}) | late
            env |= {"CCACHE_DIR": broken} if broken else {}
            done = subprocess.run([work / "cache" / "launch", *args], cwd=self.folder / within, env=env, check=False)
        return done.returncode, self.cache.tallies[str(self.runs)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


KERNEL = """
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#include "newest.h"
#else
#define VALUE 1
#endif
__global__ void kernel(int* x) { *x = VALUE; }
"""


def test_a_header_for_one_target_alone_is_seen(bench: Bench) -> None:
    """A look-up by what the host's preprocessor makes of a kernel would give the object of the old header."""
    (bench.folder / "kernel.cu").write_text(KERNEL)
    seen = []
    for value in (2, 2, 3):
        (bench.folder / "newest.h").write_text(f"#define VALUE {value}\n")
        status, tally = bench.compile([*bench.nvcc, "-MD", "-MF", "kernel.d", "kernel.cu", "-o", "kernel.o"])
        assert status == 0
        seen.append((tally.hits, tally.misses))
    assert seen == [(0, 1), (1, 0), (0, 1)]


def test_nvcc_that_does_not_list_what_it_reads_is_not_looked_up(bench: Bench) -> None:
    (bench.folder / "plain.cu").write_text("__global__ void plain(int* x) { *x = 1; }\n")
    for _ in range(2):
        status, tally = bench.compile([*bench.nvcc, "plain.cu", "-o", "plain.o"])
        assert (status, tally.hits, tally.misses, tally.passed) == (0, 0, 0, 1)


def test_a_cache_that_breaks_during_a_build_costs_its_use_alone(bench: Bench) -> None:
    (bench.folder / "file").write_text("")
    (bench.folder / "one.cpp").write_text("int one() { return 1; }\n")
    args = [bench.inputs.compiler.cxx, "-c", "one.cpp", "-o", "one.o"]
    status, tally = bench.compile(args, broken=str(bench.folder / "file"))
    assert (status, tally.failed) == (0, 1)
    assert (bench.folder / "one.o").stat().st_size > 0


def test_a_compile_error_is_the_compilers(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    (bench.folder / "wrong.cpp").write_text("int wrong() { return absent; }\n")
    for broken in ("", str(bench.folder / "wrong.cpp")):
        status, _ = bench.compile([bench.inputs.compiler.cxx, "-c", "wrong.cpp", "-o", "wrong.o"], broken)
        assert status == 1
        assert capfd.readouterr().err.count("was not declared in this scope") == 1


def test_what_a_path_is_mapped_to_counts_and_the_path_does_not(bench: Bench) -> None:
    (bench.folder / "place.cpp").write_text("const char* place() { return __FILE__; }\n")
    seen = []
    for old, new in ((bench.folder / "work-x", "."), (bench.folder / "work-x", "."), (bench.folder, "mapped")):
        mapped = f"-ffile-prefix-map={old}={new}"
        args = [bench.inputs.compiler.cxx, mapped, "-c", str(bench.folder / "place.cpp"), "-o", "place.o"]
        status, tally = bench.compile(args)
        assert status == 0
        seen.append(tally.hits)
    assert seen == [0, 1, 0]
    assert b"mapped/place.cpp" in (bench.folder / "place.o").read_bytes()


def test_another_compiler_of_the_same_name_is_not_looked_up(bench: Bench) -> None:
    cxx = Path(bench.inputs.compiler.cxx)
    other = bench.folder / cxx.name
    other.write_text(f'#!/bin/sh\nexec {cxx} -DOTHER "$@"\n')
    other.chmod(0o755)
    (bench.folder / "two.cpp").write_text("int two() { return 2; }\n")
    status, tally = bench.compile([str(other), "-c", "two.cpp", "-o", "two.o"])
    assert (status, tally.hits, tally.misses) == (0, 0, 0)


LISTED = ["-MD", "-MF", "k.d"]


def test_flags_that_a_project_gives_nvcc_by_the_environment_are_seen(bench: Bench) -> None:
    (bench.folder / "late.cu").write_text("int late() { return VALUE; }\n")
    seen = []
    for value in (1, 1, 2):
        status, tally = bench.compile(
            [*bench.nvcc, *LISTED, "late.cu", "-o", "late.o"], NVCC_APPEND_FLAGS=f"-DVALUE={value} --threads={value}"
        )
        assert status == 0
        seen.append(tally.hits)
    assert seen == [0, 1, 0]


@pytest.mark.parametrize("language", ["cpp", "cu"])
@pytest.mark.parametrize("asked", ["#include <value.h>", "#if __has_include(<first.h>)\n#define VALUE 2\n#endif"])
def test_a_header_that_appears_before_the_one_that_was_read_is_seen(bench: Bench, language: str, asked: str) -> None:
    folder = bench.folder / f"appears-{language}-{len(asked)}"
    (folder / "a").mkdir(parents=True)
    (folder / "b").mkdir()
    (folder / "b" / "value.h").write_text("#define VALUE 1\n")
    (folder / f"k.{language}").write_text(
        f"{asked}\n#ifndef VALUE\n#define VALUE 1\n#endif\nint v() {{ return VALUE; }}\n"
    )
    program = [*bench.nvcc, *LISTED] if language == "cu" else [bench.inputs.compiler.cxx, "-c"]
    seen = []
    for appears in (False, False, True):
        if appears:
            for name in ("value.h", "first.h"):
                (folder / "a" / name).write_text("#define VALUE 2\n")
        status, tally = bench.compile([*program, "-Ia", "-Ib", f"k.{language}", "-o", "k.o"], within=folder.name)
        assert status == 0
        seen.append(tally.hits)
    assert seen == [0, 1, 0]


@pytest.mark.parametrize("language", ["cpp", "cu"])
def test_a_path_in_full_is_not_the_same_as_a_relative_one(bench: Bench, language: str) -> None:
    name = f"file.{language}"
    (bench.folder / name).write_text("const char* file() { return __FILE__; }\n")
    program = [*bench.nvcc, *LISTED] if language == "cu" else [bench.inputs.compiler.cxx, "-c"]
    found = [bench.compile([*program, source, "-o", "f.o"]) for source in (name, name, str(bench.folder / name))]
    assert [(status, tally.hits) for status, tally in found] == [(0, 0), (0, 1), (0, 0)]
    assert str(bench.folder / name).encode() in (bench.folder / "f.o").read_bytes()


def test_the_folder_that_a_debugger_reads_is_seen(bench: Bench) -> None:
    seen = []
    for folder in ("one", "one", "two"):
        (bench.folder / folder).mkdir(exist_ok=True)
        (bench.folder / folder / "same.cpp").write_text("int same() { return 1; }\n")
        args = [bench.inputs.compiler.cxx, "-g", f"-ffile-prefix-map={bench.folder}=.", "-c", "same.cpp", "-o", "s.o"]
        status, tally = bench.compile(args, within=folder)
        assert status == 0
        seen.append(tally.hits)
    assert seen == [0, 1, 0]
    assert b"./two" in (bench.folder / "two" / "s.o").read_bytes()


@pytest.mark.parametrize("what", ["host compiler", "host compiler by environment", "options", "this machine's CPU"])
def test_what_nvcc_reads_unseen_is_not_looked_up(bench: Bench, what: str) -> None:
    """Each of these changes the object while the arguments stay."""
    other = bench.folder / "other" / "g++"
    other.parent.mkdir(exist_ok=True)
    other.write_text(f'#!/bin/sh\nexec {bench.inputs.compiler.cxx} "$@"\n')
    other.chmod(0o755)
    (bench.folder / "options.txt").write_text("-DVALUE=1\n")
    (bench.folder / "u.cu").write_text("int u() { return 1; }\n")
    bare = [one for one in bench.nvcc if one not in ("-ccbin", bench.inputs.compiler.cxx)]
    args, late = {
        "host compiler": ([*bare, "-ccbin", str(other)], {}),
        "host compiler by environment": (bare, {"NVCC_CCBIN": str(other)}),
        "options": ([*bench.nvcc, "-optf=options.txt"], {}),
        "this machine's CPU": ([*bench.nvcc, "-Xcompiler", "-march=native"], {}),
    }[what]
    status, tally = bench.compile([*args, *LISTED, "u.cu", "-o", "u.o"], **late)
    assert (status, tally.hits, tally.misses, tally.passed) == (0, 0, 0, 1)


def test_a_kernel_is_never_looked_up_by_the_hosts_preprocessor(bench: Bench) -> None:
    """Where `launch` takes for a list of files what ccache does not."""
    (bench.folder / "kernel.cu").write_text(KERNEL)
    (bench.folder / "newest.h").write_text("#define VALUE 2\n")
    for _ in range(2):
        status, tally = bench.compile([*bench.nvcc, "-Xcompiler", "-MD", "kernel.cu", "-o", "kernel.o"])
        assert (status, tally.hits) == (0, 0)
