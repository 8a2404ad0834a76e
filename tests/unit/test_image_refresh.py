"""What a refresh of the pins reads and writes; the servers' answers are made here."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import pytest

from wheelmill import image_refresh, images
from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DIGEST = "sha256:" + "ab" * 32


def primary(packages: Mapping[str, list[str]]) -> bytes:
    rows = "".join(
        f'<package type="rpm"><name>{name}</name><arch>x86_64</arch><version ver="{version}" rel="1"/></package>'
        for name, versions in packages.items()
        for version in versions
    )
    return f'<metadata xmlns="http://linux.duke.edu/metadata/common">{rows}</metadata>'.encode()


@pytest.fixture
def pins(tmp_path: Path) -> images.Pins:
    return images.load(shutil.copytree(images.FOLDER, tmp_path / "docker"))


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, pins: images.Pins) -> dict[str, list[str]]:
    """A registry and a repository, which has each package as pinned; what is changed here, it answers."""
    packages = {name: [version.split("-")[0]] for cuda in pins.cuda.values() for name, version in cuda.packages.items()}
    for cuda in pins.cuda.values():
        if cuda.toolkit:
            packages["cuda-toolkit-" + "-".join(cuda.toolkit.split(".")[:2])] = [cuda.toolkit]
    place = '<data type="primary"><location href="p.xml.gz"/></data>'
    repomd = f'<repomd xmlns="http://linux.duke.edu/metadata/repo">{place}</repomd>'

    def get(url: str, what: str, **_: str) -> tuple[bytes, dict[str, str]]:
        if url.endswith("tags/list?n=10000"):
            return json.dumps({"tags": ["latest", "2026.08.15-1", "2026.11.02-1", "2026.2.1-1"]}).encode(), {}
        if "/manifests/2026.11.02-1" in url:
            return b"", {"Docker-Content-Digest": DIGEST}
        if url.endswith("repomd.xml"):
            return repomd.encode(), {}
        assert url.endswith("/p.xml.gz"), (url, what)
        return gzip.compress(primary(packages)), {}

    monkeypatch.setattr(image_refresh, "_get", get)
    return packages


def test_newer_pins_are_written_and_rendered(pins: images.Pins, servers: dict[str, list[str]]) -> None:
    servers["cuda-nvcc-12-8"] += ["12.8.9", "12.8.100"]
    servers["cuda-toolkit-12-8"].append("12.8.2")
    changed = image_refresh.refresh(pins, date="2026-11-29")
    fresh = images.load(pins.folder)
    assert set(changed) == {"pins.toml", *(f"Dockerfile.{tag}" for tag in pins.cuda)}
    assert fresh.base_digest == DIGEST
    assert fresh.cuda["cu128"].packages["cuda-nvcc-12-8"] == "12.8.100-1"
    assert fresh.cuda["cu128"].toolkit == "12.8.2"
    assert fresh.cuda["cu124"] == pins.cuda["cu124"]
    assert images.drifted(fresh) == ()
    assert 'source = "the registry, 2026-11-29"' in (pins.folder / "pins.toml").read_text()
    assert image_refresh.refresh(fresh, date="2026-11-30") == ()


def test_a_package_that_is_gone_changes_nothing(pins: images.Pins, servers: dict[str, list[str]]) -> None:
    del servers["cuda-cccl-12-4"]
    before = (pins.folder / "pins.toml").read_text()
    with pytest.raises(MissingError, match="no longer has cuda-cccl-12-4"):
        image_refresh.refresh(pins, date="2026-11-29")
    assert (pins.folder / "pins.toml").read_text() == before


@pytest.mark.parametrize("bad", ['12.4.99"', "$(id)", "1 2"])
def test_a_version_that_would_do_harm_in_a_dockerfile_is_refused(
    pins: images.Pins, servers: dict[str, list[str]], bad: str
) -> None:
    servers["cuda-nvcc-12-4"] = [escape(bad, {'"': "&quot;"})]
    with pytest.raises(MissingError, match="gave a bad answer"):
        image_refresh.refresh(pins, date="2026-11-29")
    assert images.drifted(images.load(pins.folder)) == ()


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b"<html>"])
def test_an_answer_that_is_none_changes_nothing(
    pins: images.Pins, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(image_refresh, "_get", lambda *_, **__: (answer, {}))
    before = (pins.folder / "pins.toml").read_text()
    with pytest.raises(MissingError, match="gave a bad answer"):
        image_refresh.refresh(pins, date="2026-11-29")
    assert (pins.folder / "pins.toml").read_text() == before


def test_servers_that_cannot_be_reached(pins: images.Pins, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(MissingError, match=r"registry cannot be reached at .*: Name or service not known") as caught:
        image_refresh.refresh(pins, date="2026-11-29")
    assert caught.value.exit_code == 3
    assert images.drifted(pins) == ()
