from __future__ import annotations

import pytest

from wheelmill import arch


@pytest.mark.parametrize("word", ["8.0", "9.0a", "10.0f", "9.0+PTX", "12.0a+PTX"])
def test_words_survive_parsing(word: str) -> None:
    assert str(arch.parse(word)) == word


@pytest.mark.parametrize("word", ["80", "8", "8.0b", "8.0+ptx", "sm_80", "", "8.0 ", "8.00"])
def test_other_words_are_none(word: str) -> None:
    assert arch.parse(word) is None


def test_split_takes_semicolons_and_blanks() -> None:
    assert arch.split("8.0;8.6 9.0+PTX") == ("8.0", "8.6", "9.0+PTX")


def test_merge_sorts_by_number_and_keeps_ptx() -> None:
    words = ["10.0", "9.0+PTX", "8.0", "9.0", "9.0a"]
    assert arch.merge(filter(None, map(arch.parse, words))) == ("8.0", "9.0+PTX", "9.0a", "10.0")


def test_all_major_is_the_lowest_and_each_x0() -> None:
    known = list(filter(None, map(arch.parse, ["7.5", "8.0", "8.6", "9.0", "9.0a", "10.0", "12.0", "12.1"])))
    assert arch.all_major(known) == ("7.5", "8.0", "9.0", "10.0", "12.0+PTX")
    assert arch.all_of(known) == ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0", "12.1+PTX")
    assert arch.all_major([]) == ()
