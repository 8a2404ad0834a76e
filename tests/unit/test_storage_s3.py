"""What is read from a bucket and not believed as it stands."""

import pytest

from wheelmill import storage_s3


@pytest.mark.parametrize(
    ("said", "seconds"), [("60", 60), ("", 120), ("soon", 120), ("nan", 120), ("inf", 3600), ("-5", 0), ("1e9", 3600)]
)
def test_what_a_lock_says_of_its_lease_is_within_bounds(said: str, seconds: float) -> None:
    assert storage_s3._seconds(said) == seconds
