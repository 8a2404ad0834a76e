"""Image builds without an engine: the context, its hash, and what failures come to."""

from __future__ import annotations

import tarfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import ImageNotFound

from wheelmill import engine, image_build, images
from wheelmill.errors import BuildError, InputError, MissingError

if TYPE_CHECKING:
    from pathlib import Path

PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"


class Engine:
    """As much of a client as a build uses: the images that are here, and what pulls and builds answer."""

    def __init__(self, *here: str, pull: tuple[dict[str, str], ...] = (), build: tuple[dict[str, str], ...] = ()):
        self.labels = {name: dict[str, str]() for name in here}
        self.pulled, self.built = list[str](), list[dict[str, Any]]()
        self.images = SimpleNamespace(get=self._get)
        self._pull, self._build = pull, build
        self.api = SimpleNamespace(base_url="https://elsewhere", pull=self._pulls, build=self._builds)

    def _get(self, name: str) -> Any:
        if name not in self.labels:
            raise ImageNotFound(name)
        return SimpleNamespace(id=f"id of {name}", labels=self.labels[name])

    def _pulls(self, repository: str, *, tag: str, **_: object) -> Any:
        self.pulled.append(f"{repository} {tag}")
        self.labels.setdefault(f"{repository}{'@' if tag.startswith('sha256') else ':'}{tag}", {})
        return iter(self._pull)

    def _builds(self, **how: Any) -> Any:
        yield from self._build
        self.built.append(how)
        self.labels[how["tag"]] = how["labels"]


def ensure(client: Engine, tmp_path: Path, tag: str = "cu130", base: images.Base = "debian", **site: Any) -> bool:
    pins = images.load()
    (image,) = images.select(pins, [tag], base)
    made = image_build.Site(**site)
    return image_build.ensure(client, pins, image, made, lambda _: None, tmp_path / "log")  # type: ignore[arg-type]


def test_an_unchanged_image_is_not_built_again(tmp_path: Path) -> None:
    client = Engine("wheelmill/debian:bookworm")
    assert ensure(client, tmp_path)
    assert not ensure(client, tmp_path)
    (how,) = client.built
    assert how["buildargs"]["BASE_IMAGE"] == "wheelmill/debian:bookworm"
    assert how["dockerfile"] == "debian.Dockerfile"
    assert client.pulled == []


@pytest.mark.parametrize("change", ["certificate", "mirror", "base"])
def test_what_makes_an_image_anew(tmp_path: Path, change: str) -> None:
    client = Engine("wheelmill/debian:bookworm", "other:base")
    ensure(client, tmp_path)
    (tmp_path / "ca.pem").write_text(PEM)
    site: dict[str, Any] = {
        "certificate": {"certificates": (tmp_path / "ca.pem",)},
        "mirror": {"apt_mirror": "http://mirror.example/debian"},
        "base": {"base_image": "other:base"},
    }[change]
    assert ensure(client, tmp_path, **site)
    assert not ensure(client, tmp_path, **site)


def test_a_pinned_base_is_pulled_by_its_digest(tmp_path: Path) -> None:
    client = Engine()
    assert ensure(client, tmp_path, base="manylinux")
    pins = images.load()
    assert client.pulled == [f"{pins.base} {pins.base_digest}"]


def test_a_base_that_cannot_be_pulled_says_how_else_to_get_it(tmp_path: Path) -> None:
    client = Engine(pull=({"error": "dial tcp: lookup registry: no such host"},))
    with pytest.raises(engine.NoImageError, match="cannot be reached") as caught:
        ensure(client, tmp_path, bootstrap=False)
    assert "make wheelmill/debian:bookworm of a Debian mirror" in caught.value.remedy


def test_a_failed_build_quotes_its_end(tmp_path: Path) -> None:
    steps = ({"stream": "Step 1/9 : FROM x\n"}, {"stream": "E: Unable to locate package\n"}, {"error": "returned 100"})
    with pytest.raises(BuildError, match="Unable to locate package\n    returned 100") as caught:
        ensure(Engine("wheelmill/debian:bookworm", build=steps), tmp_path)
    assert str(tmp_path / "log") in caught.value.remedy


def test_a_build_container_that_resolves_no_names_says_how_it_might(tmp_path: Path) -> None:
    steps = ({"stream": "Err:1 Temporary failure resolving 'deb.example'\n"}, {"error": "returned 100"})
    with pytest.raises(MissingError, match=r"Temporary failure resolving 'deb\.example'") as caught:
        ensure(Engine("wheelmill/debian:bookworm", build=steps), tmp_path)
    assert "--network host" in caught.value.remedy


def test_a_password_does_not_get_into_an_image(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PIP_INDEX_URL holds a password"):
        ensure(Engine("wheelmill/debian:bookworm"), tmp_path, pip_index="https://me:secret@pypi.example/simple")


def test_a_full_disk_is_told_apart(tmp_path: Path) -> None:
    steps = ({"stream": "dpkg: error: No space left on device\n"}, {"error": "returned 1"})
    with pytest.raises(engine.NoSpaceError, match="disk is full"):
        ensure(Engine("wheelmill/debian:bookworm", build=steps), tmp_path)


def test_the_context_holds_scripts_and_certificates_only(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    files = dict(image_build.context(images.FOLDER, [tmp_path / "ca.pem"]))
    assert files["certs/site-0.crt"] == (PEM.encode(), 0o644)
    assert files["debian/system.sh"][1] == 0o755
    assert "pins.toml" not in files
    with tarfile.open(fileobj=image_build.archive(files)) as tar:
        assert tar.getnames() == list(files)


def test_one_image_does_not_depend_on_anothers_dockerfile() -> None:
    files = dict(image_build.context(images.FOLDER))
    before = image_build.content_of(files, "Dockerfile.cu124", {}, "base")
    assert image_build.content_of({**files, "Dockerfile.cu126": (b"", 0o644)}, "Dockerfile.cu124", {}, "base") == before
    assert image_build.content_of({**files, "Dockerfile.cu124": (b"", 0o644)}, "Dockerfile.cu124", {}, "base") != before
    proxied = image_build.content_of(files, "Dockerfile.cu124", {"HTTP_PROXY": "http://proxy.example"}, "base")
    assert proxied == before


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_certificate_file_that_is_none(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"ca\.pem"):
        list(image_build.context(images.FOLDER, [file]))
