from __future__ import annotations

from wheelmill.names import cuda_key, did_you_mean, listing, nearest, version_key


def test_nearest_ignores_case_and_gives_up_on_strangers() -> None:
    assert nearest("hoper", ["Hopper", "Ada"]) == "Hopper"
    assert nearest("zzz", ["Hopper", "Ada"]) is None


def test_remedy_names_the_nearest_and_what_exists() -> None:
    assert did_you_mean("pythn", ["python", "torch"]) == 'Did you mean "python"? Known: python, torch.'
    assert did_you_mean("q", ["python"]) == "Known: python."


def test_listing_is_cut() -> None:
    assert listing(["a", "b", "c"], limit=2) == "a, b and 1 more"
    assert listing([]) == "none"


def test_order_is_by_number() -> None:
    assert sorted(["2.10", "2.9", "2.4"], key=version_key) == ["2.4", "2.9", "2.10"]
    assert sorted(["3.14", "3.13t", "3.9", "3.13"], key=version_key) == ["3.9", "3.13", "3.13t", "3.14"]
    assert sorted(["cu130", "cpu", "cu118"], key=cuda_key) == ["cpu", "cu118", "cu130"]
