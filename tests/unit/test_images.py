"""The images' pins, the Dockerfiles they render to, and which images a glob selects."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from wheelmill import images
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.facts import Facts

TAGS = ["cu118", "cu121", "cu124", "cu126", "cu128", "cu130", "cu132"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of docker/ to change."""
    return shutil.copytree(images.FOLDER, tmp_path / "docker")


def test_the_dockerfiles_are_what_template_and_pins_make() -> None:
    pins = images.load()
    assert list(pins.cuda) == TAGS
    assert images.drifted(pins) == ()


def test_drift_is_found_and_mended(folder: Path) -> None:
    edited, added, removed = (folder / f"Dockerfile.{tag}" for tag in ("cu124", "cu999", "cu130"))
    edited.write_text(edited.read_text() + "RUN true\n")
    added.write_text("FROM scratch\n")
    removed.unlink()
    pins = images.load(folder)
    assert images.drifted(pins) == ("Dockerfile.cu124", "Dockerfile.cu130", "Dockerfile.cu999")
    assert images.write(pins) == ("Dockerfile.cu124", "Dockerfile.cu130", "Dockerfile.cu999")
    assert images.drifted(pins) == ()
    assert not added.exists()


@pytest.mark.parametrize("tag", TAGS)
def test_a_dockerfile_holds_its_toolkit_or_none(tag: str) -> None:
    pins = images.load()
    text = images.render(tag, pins)
    assert "@" not in text.replace(f"{pins.base}@sha256:", "")
    assert not re.search(r"--mount|<<|--chmod|--link", text), "BuildKit only"
    assert ("dnf install -y --setopt=install_weak_deps=False --setopt=obsoletes=0" in text) == tag.startswith(
        ("cu11", "cu12")
    )
    assert f'org.wheelmill.cuda="{tag}"' in text
    assert f"gcc-toolset-{pins.cuda[tag].gcc}-gcc-c++" in text
    assert text.index("COPY certs/") < text.index("RUN")
    assert "\nUSER 1000\n" in text


def test_compilers_are_within_the_toolkits_limits(known: Facts) -> None:
    for tag, cuda in images.load().cuda.items():
        limit = known.cuda[tag].gcc
        assert limit is not None
        assert cuda.gcc <= limit, tag
        assert cuda.debian is None or cuda.debian.gcc <= limit, tag


def test_toolkits_are_those_of_the_tags(known: Facts) -> None:
    for tag, cuda in images.load().cuda.items():
        minor = known.cuda[tag].minor
        assert (cuda.toolkit is None) == (known.cuda[tag].pypi is not None), tag
        if cuda.toolkit is not None:
            assert cuda.toolkit.startswith(f"{minor}."), tag
        assert all(name.endswith(minor.replace(".", "-")) for name in cuda.packages), tag
        assert cuda.debian is None or cuda.debian.cuda in {minor, None}, tag


def test_names() -> None:
    assert images.name_for("cu124", "debian") == "wheelmill/cu124:debian"
    assert images.local_base("trixie") == "wheelmill/debian:trixie"


def test_select() -> None:
    pins = images.load()
    assert [image.tag for image in images.select(pins, [], "manylinux")] == TAGS
    assert [image.tag for image in images.select(pins, ["cu13?", "cu124"], "debian")] == ["cu124", "cu130", "cu132"]
    (image,) = images.select(pins, ["cu124"], "debian")
    assert image.args == {
        "TAG": "cu124",
        "CUDA": "12.4",
        "GCC": "12",
        "LICENSES": "BSD-3-Clause AND LicenseRef-NVIDIA-CUDA-EULA",
    }
    assert (image.name, image.suite, image.dockerfile) == ("wheelmill/cu124:debian", "trixie", "debian.Dockerfile")


def test_a_tag_without_a_debian_image_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="Debian has no toolkit of cu121") as caught:
        images.select(images.load(), ["cu121"], "debian")
    assert "cu124 (12.4)" in caught.value.remedy
    with pytest.raises(InputError, match='"cu99" matches no manylinux image'):
        images.select(images.load(), ["cu99"], "manylinux")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("\n[manylinux]\n", "\n[manylinux\n", "is not TOML"),
        ("[debian.trixie]", "[debian.forky]", "cuda.cu124.debian: trixie has no table"),
        ("[cuda.cu130]\ngcc = 14", "[cuda.cu130]\ngc = 14", "cuda.cu130.gc: no such field"),
        ("[cuda.cu132]\ngcc = 14", "[cuda.cu132]\ntoolkit = '13.2.0'\ngcc = 14", "cuda.cu132: toolkit and packages"),
        ("\n[cuda.cu130]\n", '\n[cuda."13.0"]\n', "cuda.13.0: is no CUDA tag"),
        ("\n[repository]\n", "\n[repositories]\n", "repositories: no such table"),
        ('digest = "sha256:', 'digest = "', "manylinux.digest"),
        ('key = "D42D0685.pub"\n', "", "a field is missing"),
    ],
)
def test_bad_pins_are_refused_by_file_and_key(folder: Path, old: str, new: str, told: str) -> None:
    file = folder / images.PINS
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        images.load(folder)
    assert str(file) in str(caught.value)
    assert told in str(caught.value)
    assert caught.value.remedy


def test_missing_pins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pins\.toml cannot be read"):
        images.load(tmp_path)


def test_the_labels_release_is_the_toolkits(known: Facts) -> None:
    """Steps ask for `12.4`, and a label names the full release: both name one row of the facts."""
    pins = images.load()
    for tag, cuda in pins.cuda.items():
        label = re.search(r'org\.wheelmill\.toolkit="([^"]*)"', images.render(tag, pins))
        assert label is not None
        assert label[1] == (cuda.toolkit or "none")
        assert cuda.toolkit is None or ".".join(cuda.toolkit.split(".")[:2]) == known.cuda[tag].minor
