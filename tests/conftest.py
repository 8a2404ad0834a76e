"""What all tests share: the flag that refreshes golden files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="Write golden files anew instead of comparing with them.",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a golden file, or with --refresh-golden writes it there."""

    def check(file: Path, text: str) -> None:
        if request.config.getoption("--refresh-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        assert file.is_file(), f"{file} does not exist; create it with pytest --refresh-golden"
        assert text == file.read_text(encoding="utf-8"), (
            f"{file} differs from what is made now; if the change is meant, run pytest --refresh-golden"
        )

    return check
