from __future__ import annotations

import pytest

from wheelmill import choice
from wheelmill.choice import Choice
from wheelmill.errors import InputError

KNOWN = ("3.8", "3.9", "3.10", "3.11", "3.13", "3.13t")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (">=3.10", ("3.10", "3.11", "3.13")),
        ("<=3.10", ("3.8", "3.9", "3.10")),
        ("==3.9.*", ("3.9",)),
        (">3.9,<3.13,!=3.10", ("3.11",)),
    ],
)
def test_ranges_are_over_minors_and_never_pick_free_threaded(text: str, chosen: tuple[str, ...]) -> None:
    assert choice.ranged(text, "python").among(KNOWN) == chosen


def test_a_list_picks_what_it_names_in_canonical_order() -> None:
    assert Choice(key="python", listed=("3.13t", "3.9")).among(KNOWN) == ("3.9", "3.13t")


def test_nothing_said_is_every_plain_one() -> None:
    assert Choice(key="").among(KNOWN) == ("3.8", "3.9", "3.10", "3.11", "3.13")


def test_requires_python_speaks_of_patch_releases() -> None:
    assert choice.required(">=3.9.1,<3.11").among(KNOWN) == ("3.9", "3.10")


@pytest.mark.parametrize(("text", "remedy"), [("2.4", '["2.4"]'), ("newest", ">=2.10"), (">=2.4.1", "Write >=2.4.")])
def test_what_is_no_range_of_minors_is_refused(text: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        choice.ranged(text, "torch")
    assert remedy in caught.value.remedy
