"""What the bytes of a wheel say, and that they say nothing where they are not clear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelmill import refresh_wheels
from wheelmill.errors import InputError


def metadata(*requires: str) -> bytes:
    return "".join(["Name: torch\n", *(f"Requires-Dist: {one}\n" for one in requires)]).encode()


@pytest.mark.parametrize(
    ("requires", "tag"),
    [
        (["nvidia-cuda-runtime-cu11 (==11.7.99) ; platform_system == 'Linux'"], "cu117"),
        (["nvidia-cuda-runtime-cu12==12.8.90; platform_system == 'Linux' and platform_machine == 'x86_64'"], "cu128"),
        (["cuda-toolkit[cublas,cudart]==13.0.2; platform_system == 'Linux'", "nvidia-nccl-cu13==2.30.7"], "cu130"),
        (["cuda-toolkit==13.2.2", "nvidia-cuda-runtime==13.2.86"], "cu132"),
        (["cuda-toolkit==13.2.2", "nvidia-cuda-runtime==13.0.96"], None),
        (["cuda-toolkit>=13.2"], None),
        (["cuda-toolkit==13.2.2; platform_system == 'Windows'"], None),
        (["cuda-toolkit==13.2.2; extra == 'all'"], None),
        (["numpy"], None),
        ([], None),
    ],
)
def test_the_cuda_of_a_wheel_is_the_one_that_it_pins(requires: list[str], tag: str | None) -> None:
    assert refresh_wheels.cuda(metadata(*requires)) == tag


@pytest.mark.parametrize("bad", ["cuda toolkit == 13", "x; nonsense == 'a'", "cuda-toolkit=="])
def test_a_requirement_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(InputError, match="is no requirement"):
        refresh_wheels.cuda(metadata(bad))


@given(st.binary(max_size=300))
def test_any_bytes_are_metadata_or_refused(data: bytes) -> None:
    try:
        found = refresh_wheels.cuda(b"Requires-Dist: " + data)
    except InputError:
        return
    assert found is None or found.startswith("cu")


def test_a_standard_abi_or_compiler_that_is_not_clear_is_unknown() -> None:
    assert refresh_wheels.standard(b"cpp_flag = cpp_flag_prefix + 'c++20'\n") == 20
    assert refresh_wheels.standard(b"x = cpp_flag_prefix + 'c++20'\ncommon_cflags += ['-std=c++17', '-fPIC']\n") is None
    assert refresh_wheels.standard(b"") is None
    new, old = refresh_wheels.NEW_ABI, refresh_wheels.OLD_ABI
    assert refresh_wheels.cxx11_abi(b"\0" + new + b"\0") is True
    assert refresh_wheels.cxx11_abi(b"\0" + old + b"\0") is False
    assert refresh_wheels.cxx11_abi(new + old) is None
    assert refresh_wheels.cxx11_abi(b"") is None
    assert refresh_wheels.newest_gcc(b"#if __GNUC__ > 16\r\n#endif /* __GNUC__ > 15 */\n") == 16
    assert refresh_wheels.newest_gcc(b"#if __GNUC__ > 16\n#if __GNUC__ > 15\n") is None


def test_targets_are_whole_words_in_order() -> None:
    text = b"\0compute_120f\0compute_90a, compute_90\0compute_\0compute_9\0compute_100x\0sm_20\0compute_75_\0"
    assert refresh_wheels.targets(text) == ("9.0", "9.0a", "12.0f")
    assert refresh_wheels.targets(b"") == ()
