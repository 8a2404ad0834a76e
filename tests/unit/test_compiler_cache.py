"""What a build is told of its compiler cache, which folders are one, and what is counted."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path

import pytest

from wheelmill import compiler_cache
from wheelmill.compiler_cache import Cache, Places
from wheelmill.compiler_tally import Tally, count
from wheelmill.inputs import Inputs
from wheelmill.toolkit import Compiler, Toolkit

ROOT = Path(__file__).parents[2]
GCC = Compiler(cc="/usr/bin/gcc-12", cxx="/usr/bin/g++-12", identity="gcc")
KIT = Toolkit(home=Path("/kit"), version="13.0", provider="pypi", identity="kit")
PLACES = Places(
    launchers=Path("/w/cache"),
    objects=Path("/c/objects"),
    log=Path("/w/log"),
    temporary=Path("/w/tmp"),
    base=Path("/store"),
    moving=(Path("/w"), Path("/store")),
)


def inputs(kit: Toolkit | None) -> Inputs:
    return Inputs(
        executor="local",
        toolkit=kit,
        compiler=GCC,
        python="3.12",
        tools="",
        torch="",
        torch_python="3.12",
        torch_backend=None,
    )


def environ(kit: Toolkit | None, **stated: str) -> dict[str, str]:
    return compiler_cache.environ({"CMAKE_ARGS": "-DA=1", **stated}, PLACES, inputs(kit), GCC)


def test_every_build_system_gets_the_cache_in_its_own_words() -> None:
    env = environ(KIT, CUDACXX="/kit/bin/nvcc", CC="/usr/bin/gcc-12", CUDAHOSTCXX="/usr/bin/g++-12")
    assert (env["CC"], env["CXX"]) == ("/w/cache/as/gcc-12", "/w/cache/as/g++-12")
    assert env["PYTORCH_NVCC"] == "/w/cache/as/nvcc"
    assert env["CUDAHOSTCXX"] == "/usr/bin/g++-12"
    assert shlex.split(env["CMAKE_ARGS"]) == [
        "-DA=1",
        "-DCMAKE_C_COMPILER=/usr/bin/gcc-12",
        "-DCMAKE_CXX_COMPILER=/usr/bin/g++-12",
        *(f"-DCMAKE_{language}_COMPILER_LAUNCHER=/w/cache/launch" for language in ("C", "CXX", "CUDA")),
    ]
    assert (env["CCACHE_DIR"], env["CCACHE_MAXSIZE"], env["CCACHE_CONFIGPATH"]) == ("/c/objects", "2Gi", "/dev/null")


def test_a_build_without_cuda_is_told_of_no_nvcc() -> None:
    env = environ(None)
    assert not {"PYTORCH_NVCC", "WHEELMILL_NVCC_IDENTITY"} & set(env)
    assert "CUDA" not in env["CMAKE_ARGS"]


def test_the_compilers_that_ccache_does_not_see_are_part_of_what_it_looks_up_by() -> None:
    other = Toolkit(home=KIT.home, version="13.0", provider="pypi", identity="other")
    kits = [environ(kit, CUDACXX="/kit/bin/nvcc")["WHEELMILL_NVCC_IDENTITY"] for kit in (KIT, KIT, other)]
    assert kits[0] == kits[1] != kits[2]


def program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / "ccache"
    path.write_text("")
    monkeypatch.setattr(compiler_cache, "_program", lambda: path)
    return path


def test_an_empty_folder_becomes_a_cache_and_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    found = program(tmp_path, monkeypatch)
    for _ in range(2):
        cache = compiler_cache.open_folder(tmp_path / "a" / "cache", Path("/store"), told.append)
        assert cache == Cache(tmp_path / "a" / "cache", found)
    assert told == []
    assert (tmp_path / "a" / "cache" / "ccache").stat().st_mode & 0o777 == 0o700
    assert compiler_cache.open_folder(None, Path("/store"), told.append) is None


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("file", "is no folder"),
        ("foreign", "its ccache holds something else"),
        ("newer", "another release of the engine made its ccache"),
        ("garbled", "cannot be read"),
        ("listed", "another release of the engine made its ccache"),
        ("blocked", "is no folder"),
        ("absent", "ccache is not installed"),
        ("store", "has a character that CC and CXX cannot hold"),
    ],
)
def test_what_is_no_cache_is_told_once_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    folder, store = tmp_path / "cache", Path("/store")
    home = folder / compiler_cache.NAME
    program(tmp_path, monkeypatch)
    if fault != "file":
        home.mkdir(parents=True)
    match fault:
        case "file":
            folder.write_text("x")
        case "foreign":
            (home / "thesis.txt").write_text("x")
        case "newer":
            (home / compiler_cache.MARK).write_text('{"version": 2}')
        case "garbled":
            (home / compiler_cache.MARK).write_text("{")
        case "listed":
            (home / compiler_cache.MARK).write_text("[]")
        case "blocked":
            (home / compiler_cache.MARK).write_text('{"version": 1}')
            (home / "objects").write_text("")
        case "absent":
            monkeypatch.setattr(compiler_cache, "_program", lambda: None)
        case "store":
            store = Path("/a b/store")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told: list[str] = []
    assert compiler_cache.open_folder(folder, store, told.append) is None
    (note,) = told
    assert said in note
    assert "the build goes on without one" in note
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_results_are_counted_by_what_each_look_up_came_to(tmp_path: Path) -> None:
    (tmp_path / "results").write_text(
        "# a.cpp\ncache_miss\ndirect_cache_miss\nlocal_storage_write\npassed\n"
        "# b.cu\ndirect_cache_hit\nlocal_storage_hit\n# c.cpp\npreprocessed_cache_hit\n# d.cpp\nmodified_input_file\n"
        "failed\n"
    )
    found = count(tmp_path)
    assert found == Tally(hits=2, misses=2, failed=1, passed=1)
    assert count(tmp_path / "absent") == Tally()
    cache = Cache(Path("/c"), Path("/ccache"), {"one": found, "other": Tally(hits=1)})
    assert cache.to_json()["hits"] == 3
    assert json.loads(json.dumps(cache.to_json()))["wheels"]["other"]["hits"] == 1
    said = "compiler cache /c: 3 hits, 2 misses, 1 not cacheable, 1 that it failed at and that ran without it"
    assert cache.told() == said


def test_a_compilers_path_reaches_its_script_as_one_word(tmp_path: Path) -> None:
    odd = Compiler(cc="/usr/bin/gcc", cxx="/o'dd $(x)/g++", identity="")
    (tmp_path / "ccache").write_text("")
    compiler_cache.prepare(Cache(tmp_path, tmp_path / "ccache"), tmp_path / "w", odd, None)
    assert sorted(path.name for path in (tmp_path / "w" / "as").iterdir()) == ["g++", "gcc"]
    line = (tmp_path / "w" / "as" / "g++").read_text().splitlines()[1]
    assert shlex.split(line)[2:] == [odd.cxx, "$@"]


def test_a_containers_user_may_write_what_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, tmp_path / "ccache")
    (cache.objects / "a").mkdir(parents=True)
    (cache.objects / "a" / "stats").write_text("")
    (cache.objects / "link").symlink_to("/nowhere")
    cache.objects.chmod(0o700)
    compiler_cache.open_to_others(cache)
    modes = [path.stat().st_mode & 0o777 for path in (cache.objects, cache.objects / "a", cache.objects / "a/stats")]
    assert modes == [0o777, 0o777, 0o666]


def test_a_cache_shares_a_folder_with_other_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch)
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "thesis.txt").write_text("x")
    assert compiler_cache.open_folder(folder, Path("/store"), print) is not None
    assert (folder / "thesis.txt").read_text() == "x"


def test_the_benchmark_fails_where_a_byte_or_an_answer_is_wrong() -> None:
    spec = importlib.util.spec_from_file_location("benchmark", ROOT / "benchmarks" / "compiler_cache.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    rows = json.loads((ROOT / "evidence" / "compiler_cache.json").read_text())["builds"]
    assert benchmark.report(rows, "local")["fine"]
    for build, name, value in (("warm", "sha256", "0"), ("changed", "sha256", "0"), ("warm", "hits", 0)):
        wrong = {**rows, build: {**rows[build], name: value}}
        assert not benchmark.report(wrong, "local")["fine"]
