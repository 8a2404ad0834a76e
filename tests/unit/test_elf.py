"""The readers of libraries and of fatbins, on bytes laid out as nvcc lays them out, and on damaged ones."""

import struct
from pathlib import Path

import pytest

from wheelmill import elf
from wheelmill import fatbin as device
from wheelmill.errors import GateError


def entry(kind: int, sm: int, flags: int = 0, payload: bytes = b"code", isa: tuple[int, int] = (0, 0)) -> bytes:
    header = bytearray(64)
    struct.pack_into("<HHIQ", header, 0, kind, 0x0101, 64, len(payload))
    struct.pack_into("<HHI", header, 24, isa[1], isa[0], sm)
    struct.pack_into("<Q", header, 40, flags)
    return bytes(header) + payload


def targets(data: bytes) -> tuple[set[str], set[str]]:
    found = list(device.entries(data, 0, len(data)))
    sass, ptx = ({one.target for one in found if one.kind == kind} for kind in (device.SASS, device.PTX))
    return sass, ptx


def fatbin(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", device.MAGIC, 1, 16, len(body)) + body


def test_targets_of_several_fatbins_with_padding() -> None:
    data = (
        fatbin(entry(device.SASS, 75), entry(device.SASS, 90, device.ARCHITECTURE_SPECIFIC))
        + bytes(8)
        + fatbin(entry(device.SASS, 100, device.FAMILY), entry(device.PTX, 120, payload=bytes(12)))
    )
    assert targets(data) == ({"75", "90a", "100f"}, {"120"})


def test_each_entry_tells_the_fatbin_that_it_is_in() -> None:
    first = fatbin(entry(device.SASS, 90), entry(device.PTX, 90))
    second = fatbin(entry(device.SASS, 90, device.ARCHITECTURE_SPECIFIC))
    found = list(device.entries(first + second, 0, len(first + second)))
    assert [(one.fatbin, one.target) for one in found] == [(0, "90"), (0, "90"), (len(first), "90a")]


def test_the_ptx_isa_is_in_the_entrys_header() -> None:
    (found,) = device.entries(fatbin(entry(device.PTX, 90, isa=(8, 4))), 0, 68 + 16)
    assert found.isa == (8, 4)


@pytest.mark.parametrize(
    "data",
    [
        b"\x01" * 64,
        fatbin(entry(device.SASS, 75))[:-2],
        fatbin(entry(7, 75)),
        fatbin(entry(device.SASS, 75)[:63]),
        struct.pack("<IHHQ", device.MAGIC, 1, 0, 0),
    ],
    ids=["no magic", "cut", "unknown kind", "short entry", "header of no size"],
)
def test_damaged_fatbins_are_refused(data: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        targets(data)


def test_what_is_no_library_fails_closed(tmp_path: Path) -> None:
    path = tmp_path / "not.so"
    path.write_bytes(b"plain text")
    with pytest.raises(GateError, match=r"pkg/not\.so.*cannot be read"):
        elf.read(path, "pkg/not.so")


def test_targets_sort_by_number_then_suffix() -> None:
    assert sorted(["120", "90a", "75", "90"], key=device.sm_order) == ["75", "90", "90a", "120"]


def test_the_targets_of_a_library_alone(tmp_path: Path) -> None:
    """An ELF file of a header, a .nv_fatbin section, the names of its sections and their table."""
    code = fatbin(entry(device.SASS, 90), entry(device.SASS, 75)) + fatbin(entry(device.PTX, 90, isa=(8, 4)))
    names = b"\0.nv_fatbin\0.shstrtab\0"
    at = (64, 64 + len(code), 64 + len(code) + len(names))
    rows = [bytes(64)]
    for name, kind, offset, size in ((1, 1, at[0], len(code)), (12, 3, at[1], len(names))):
        rows.append(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 1, 0))
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at[2], 0, 64, 56, 0, 64, 3, 2)
    path = tmp_path / "lib.so"
    path.write_bytes(head + code + names + b"".join(rows))
    assert elf.device(path, path.name) == (("75", "90"), ("90",), (8, 4))
