"""The first member in which two wheels differ, and its cause."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from wheelmill import compare
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MEMBERS = {"demo/a.py": "x = 1\n", "demo/b.py": "y = 2\n", "demo-1.0.dist-info/RECORD": "demo/a.py,,\n"}


def archive(
    path: Path,
    members: dict[str, str],
    *,
    date: tuple[int, int, int, int, int, int] = (1980, 1, 1, 0, 0, 0),
    mode: int = 0o644,
    level: int = 9,
    method: int = zipfile.ZIP_DEFLATED,
) -> Path:
    with zipfile.ZipFile(path, "w", compresslevel=level) as out:
        for name, text in members.items():
            info = zipfile.ZipInfo(name, date)
            info.external_attr, info.compress_type = mode << 16, method
            out.writestr(info, text, compresslevel=level)
    return path


def difference(tmp_path: Path, members: dict[str, str], **how: object) -> compare.Difference | None:
    return compare.first_difference(archive(tmp_path / "a.whl", MEMBERS), archive(tmp_path / "b.whl", members, **how))


def test_the_same_bytes_do_not_differ(tmp_path: Path) -> None:
    assert difference(tmp_path, MEMBERS) is None


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ({"date": (1990, 1, 1, 0, 0, 0)}, "the timestamp"),
        ({"mode": 0o755}, "the permissions"),
        ({"method": zipfile.ZIP_STORED}, "the compression method"),
    ],
)
def test_headers(tmp_path: Path, how: dict[str, object], cause: str) -> None:
    found = difference(tmp_path, MEMBERS, **how)
    assert found is not None
    assert found.member == "demo/a.py"
    assert cause in found.cause


def test_the_compression_level(tmp_path: Path) -> None:
    text = {"demo/a.py": "".join(f"{n * n % 977}\n" for n in range(5000))}
    one = archive(tmp_path / "a.whl", text, level=9)
    found = compare.first_difference(one, archive(tmp_path / "b.whl", text, level=1))
    assert found is not None
    assert "the compression differs" in found.cause or "the flags" in found.cause


def test_the_order_of_members(tmp_path: Path) -> None:
    found = difference(tmp_path, dict(reversed(MEMBERS.items())))
    assert found is not None
    assert "another order" in found.cause


def test_a_member_of_one_alone(tmp_path: Path) -> None:
    found = difference(tmp_path, {**MEMBERS, "demo/c.py": ""})
    assert found is not None
    assert (found.member, found.cause) == ("demo/c.py", "only one of the two has this member")


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        ("built in /tmp/first/source", "built in /tmp/second/source", "an embedded path: '/tmp/first/source'"),
        ("built Nov 29 2026", "built Nov 30 2026", "an embedded date"),
        ("built 10:11:12", "built 10:11:13", "an embedded time"),
        ("built 10:11:12.362209", "built 10:11:12.980236", "an embedded time"),
        ("token 4f2a", "token 77c1", "the content differs from byte 6 on: 'token 4f2a' and 'token 77c1'"),
    ],
)
def test_contents(tmp_path: Path, one: str, other: str, cause: str) -> None:
    a = archive(tmp_path / "a.whl", {**MEMBERS, "demo/a.py": one, "demo-1.0.dist-info/RECORD": one})
    b = archive(tmp_path / "b.whl", {**MEMBERS, "demo/a.py": other, "demo-1.0.dist-info/RECORD": other})
    found = compare.first_difference(a, b)
    assert found is not None
    assert found.member == "demo/a.py"
    assert cause in found.cause


def test_record_alone(tmp_path: Path) -> None:
    found = difference(tmp_path, {**MEMBERS, "demo-1.0.dist-info/RECORD": "demo/b.py,,\n"})
    assert found is not None
    assert "RECORD differs, though what it lists is the same" in found.cause


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_text("text")
    with pytest.raises(InputError, match="cannot be read"):
        compare.first_difference(archive(tmp_path / "a.whl", MEMBERS), tmp_path / "b.whl")
