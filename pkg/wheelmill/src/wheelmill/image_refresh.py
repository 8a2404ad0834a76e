"""Reads the newest base digest and package versions from the registry and NVIDIA's repository into pins.toml."""

from __future__ import annotations

import gzip
import json
import re
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
import zlib
from typing import TYPE_CHECKING

from wheelmill import images
from wheelmill.errors import MissingError
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wheelmill.images import Cuda, Pins

SECONDS = 30
COMMON = "{http://linux.duke.edu/metadata/common}"
REPO = "{http://linux.duke.edu/metadata/repo}"
MANIFEST = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
DIGEST, VERSION = re.compile(r"sha256:[0-9a-f]{64}"), re.compile(r"[0-9A-Za-z.+~_-]+")
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ET.ParseError, EOFError, gzip.BadGzipFile, zlib.error)
DATED = re.compile(r"\d{4}\.\d{2}\.\d{2}-\d+")


def _get(url: str, what: str, **headers: str) -> tuple[bytes, Mapping[str, str]]:
    if urllib.parse.urlsplit(url).scheme != "https":
        raise MissingError(f"{what}: {url} is not https", remedy="name an https address in docker/pins.toml")
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - https, as checked above
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return answer.read(), dict(answer.headers)
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", error)
        raise MissingError(
            f"{what} cannot be reached at {urllib.parse.urlsplit(url).hostname}: {reason}",
            remedy="refresh the pins where it can be; the pins stay as they are",
        ) from error


def newest_base(image: str) -> tuple[str, str]:
    """(dated tag, digest) of the newest manylinux image of that name, by the registry's own API."""
    host, _, name = image.partition("/")
    answer, _ = _get(f"https://{host}/v2/{name}/tags/list?n=10000", "the base image's registry")
    tags = [tag for tag in json.loads(answer)["tags"] if DATED.fullmatch(tag)]
    if not tags:
        raise MissingError(f"{image} has no dated tag", remedy="set the digest in docker/pins.toml by hand")
    tag = max(tags, key=lambda one: [int(part) for part in re.split(r"[.-]", one)])
    _, headers = _get(f"https://{host}/v2/{name}/manifests/{tag}", "the base image's registry", Accept=MANIFEST)
    return tag, {key.lower(): value for key, value in headers.items()}["docker-content-digest"]


def newest_packages(repository: str, names: Iterable[str]) -> dict[str, str]:
    """The newest `version-release` of each package that the dnf repository has."""
    index, _ = _get(f"{repository}/repodata/repomd.xml", "NVIDIA's package repository")
    place = ET.fromstring(index).find(f"{REPO}data[@type='primary']/{REPO}location")  # noqa: S314 - over https
    if place is None:
        raise MissingError(f"{repository} lists no packages", remedy="check repository.url in docker/pins.toml")
    data, _ = _get(f"{repository}/{place.attrib['href']}", "NVIDIA's package repository")
    return parse_packages(gzip.decompress(data), names)


def parse_packages(primary: bytes, names: Iterable[str]) -> dict[str, str]:
    """The newest `version-release` of each name in a repository's primary.xml."""
    wanted, found = set(names), dict[str, tuple[list[int], str]]()
    for package in ET.fromstring(primary).iter(f"{COMMON}package"):  # noqa: S314
        name, version = package.findtext(f"{COMMON}name", ""), package.find(f"{COMMON}version")
        if name not in wanted or version is None or package.findtext(f"{COMMON}arch") != "x86_64":
            continue
        text = f"{version.attrib['ver']}-{version.attrib['rel']}"
        key = [int(part) for part in re.findall(r"\d+", text)]
        found[name] = max(found.get(name, ([], "")), (key, text))
    return {name: text for name, (_, text) in found.items()}


def updated(text: str, values: Mapping[tuple[str, str], str]) -> str:
    """pins.toml with the values of (table, key) replaced, and comments and order kept."""
    out, table = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        key = line.split(" = ")[0]
        out.append(f'{key} = "{values[table, key]}"' if (table, key) in values else line)
    return "\n".join(out) + "\n"


def _release_package(cuda: Cuda) -> str:
    """The meta-package whose version is the toolkit's own: `cuda-toolkit-12-4`."""
    return "cuda-toolkit-" + "-".join((cuda.toolkit or "").split(".")[:2])


def _asked(pins: Pins, names: Iterable[str]) -> tuple[str, str, dict[str, str]]:
    """(tag, digest, versions), of which none can do harm in a file of pins or in a Dockerfile."""
    try:
        tag, digest = newest_base(pins.base)
        newest = newest_packages(pins.repository, names)
        if not DIGEST.fullmatch(digest) or not all(map(VERSION.fullmatch, newest.values())):
            raise ValueError("a digest or a version is not of its form")
    except MALFORMED as error:
        raise MissingError(
            f"the base image's registry or NVIDIA's package repository gave a bad answer: {error!r}"[:400],
            remedy="refresh the pins later; they stay as they are",
        ) from error
    return tag, digest, newest


def refresh(pins: Pins, *, date: str) -> tuple[str, ...]:
    """Bring pins.toml and the Dockerfiles up to date, and return the files that changed.

    Raises MissingError, with nothing changed, where the registry or the repository cannot be reached or answers badly.
    """
    with_toolkit = [cuda for cuda in pins.cuda.values() if cuda.toolkit]
    names = [name for cuda in with_toolkit for name in (*cuda.packages, _release_package(cuda))]
    tag, digest, newest = _asked(pins, names)
    values = {("manylinux", "tag"): tag, ("manylinux", "digest"): digest}
    if digest != pins.base_digest:
        values["manylinux", "source"] = f"the registry, {date}"
    for cuda in with_toolkit:
        for name in (*cuda.packages, _release_package(cuda)):
            if name not in newest:
                raise MissingError(
                    f"{pins.repository} no longer has {name}",
                    remedy=f"take {cuda.tag} or that package out of docker/pins.toml",
                )
            values[f"cuda.{cuda.tag}.packages", name] = newest[name]
        values[f"cuda.{cuda.tag}", "toolkit"] = newest[_release_package(cuda)].split("-")[0]
    file = pins.folder / images.PINS
    old = file.read_text(encoding="utf-8")
    new = updated(old, values)
    if new != old:
        write_atomic(file, new)
    return (*((images.PINS,) if new != old else ()), *images.write(images.load(pins.folder)))
