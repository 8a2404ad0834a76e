"""How targets are said to CMake."""

from wheelmill.backend import cmake_architectures


def test_targets_in_cmakes_words() -> None:
    assert (
        cmake_architectures(("7.5", "9.0a", "10.0f", "12.0+PTX")) == "75-real;90a-real;100f-real;120-real;120-virtual"
    )
    assert cmake_architectures(()) == ""
