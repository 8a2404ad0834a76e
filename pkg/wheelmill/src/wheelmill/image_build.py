"""Builds an image through the engine's API, unless what is there was made of the very same content."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from wheelmill import engine, explain, images, proc
from wheelmill.errors import BuildError, InputError, MissingError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from docker import DockerClient

    from wheelmill.images import Image, Pins

# What an image needs while it is made: Debian's CUDA is fetched as 2 GB and unpacked to 3, NVIDIA's likewise with
# static libraries that go again.
SPACE = {True: 12_000_000_000, False: 2_500_000_000}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# What apt, dnf, curl and pip say where a mirror cannot be reached or is not trusted, long before the step fails for it.
UNREACHED = re.compile(
    r"[^\n]*(Failed to fetch|Could not connect|Could(n't| not) resolve|Temporary failure|Could not fetch URL"
    r"|[Cc]ertificate verif|CERTIFICATE_VERIFY|Failed to download metadata|Failed to connect to"
    r"|SSL certificate problem|Curl error)[^\n]*"
)
Tell = Callable[[str], None]
_STEP = re.compile(r"Step (\d+/\d+) : ((?:FROM|COPY|RUN) .*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """How images are made here: the network of build containers, mirrors, extra certificates, base.

    `base_image` replaces each image's own base. With `bootstrap`, a Debian that no registry gives is made of
    the site's Debian mirror; None does so where this machine can.
    """

    network: str | None = None
    apt_mirror: str | None = None
    pip_index: str | None = None
    certificates: tuple[Path, ...] = ()
    base_image: str | None = None
    bootstrap: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recipe:
    """Everything that goes into an image; `content` is its hash."""

    files: Mapping[str, tuple[bytes, int]]
    args: Mapping[str, str]
    content: str


def ensure(client: DockerClient, pins: Pins, image: Image, site: Site, tell: Tell, log: Path) -> bool:
    """Build the image unless it is there with the same content; whether it had to be built.

    Raises NoImageError where the base cannot be had, NoSpaceError, or BuildError with what the build said.
    """
    files = dict(context(pins.folder, site.certificates))
    base, base_id = _base(client, image, site, tell, log)
    args = _args(image, site, base)
    recipe = _Recipe(files=files, args=args, content=content_of(files, image.dockerfile, args, base_id))
    if label(client, image.name, images.CONTENT) == recipe.content:
        return False
    engine.require_space(client, SPACE[image.toolkit is not None], f"the image {image.name}")
    with contextlib.closing(_events(client, image, recipe, site.network, log)) as events:
        _follow(image, events, tell, log)
    return True


def label(client: DockerClient, name: str, key: str) -> str | None:
    """A label of a local image; None where it lacks it or is not there."""
    from docker.errors import ImageNotFound

    try:
        return cast("str | None", client.images.get(name).labels.get(key))
    except ImageNotFound:
        return None


def context(folder: Path, certificates: Iterable[Path] = ()) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """The build context: (name, (bytes, mode)) of each file of `docker/` that an image may read, in order.

    Extra `certificates` come in as `certs/site-N.crt`.
    """
    for part in ("certs", "common", "debian"):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file():
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                yield str(path.relative_to(folder)), (path.read_bytes(), mode)
    for path in sorted(folder.glob("*Dockerfile*")):
        yield path.name, (path.read_bytes(), 0o644)
    for number, path in enumerate(certificates):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}", remedy="name a PEM file") from error
        if b"-----BEGIN CERTIFICATE-----" not in data:
            raise InputError(f"{path} holds no certificate", remedy="name a PEM file of CA certificates")
        yield f"certs/site-{number}.crt", (data, 0o644)


def content_of(files: Mapping[str, tuple[bytes, int]], dockerfile: str, args: Mapping[str, str], base_id: str) -> str:
    """SHA-256 over all that decides what an image holds, but for what its mirrors hand out."""
    sha = hashlib.sha256(repr((base_id, sorted((k, v) for k, v in args.items() if k not in PROXIES))).encode())
    others = {name for name in files if "Dockerfile" in name} - {dockerfile}
    for name in sorted(files.keys() - others):
        data, mode = files[name]
        sha.update(f"\n{name} {mode:o} {hashlib.sha256(data).hexdigest()}".encode())
    return sha.hexdigest()


def definition(image: Image) -> str:
    """SHA-256 over this engine's own part of an image: its Dockerfile, the files beside it and its arguments."""
    return content_of(dict(context(images.FOLDER)), image.dockerfile, image.args, "")


def _args(image: Image, site: Site, base: str) -> dict[str, str]:
    proxies = {name: os.environ[name] for name in PROXIES if name in os.environ}
    mirrors = {"APT_MIRROR": site.apt_mirror if image.base == "debian" else None, "PIP_INDEX_URL": site.pip_index}
    given = {name: value for name, value in mirrors.items() if value}
    for name, value in given.items():
        if urlsplit(value).username is not None:
            raise InputError(
                f"the address in {name} holds a user's name or token, which would stay readable in the image",
                remedy="give an address without one: a mirror inside the site, or a proxy that adds it",
            )
    return {**proxies, **image.args, **given, "BASE_IMAGE": base}


def _base(client: DockerClient, image: Image, site: Site, tell: Tell, log: Path) -> tuple[str, str]:
    """The base's name and id, pulled or made where it is not here."""
    from docker.errors import ImageNotFound

    made = images.local_base(image.suite) if image.suite else None
    for name in (site.base_image,) if site.base_image else (made, image.base_image):
        with contextlib.suppress(ImageNotFound):
            if name:
                return name, str(client.images.get(name).id)
    wanted = site.base_image or image.base_image
    can = shutil.which("debootstrap") is not None and os.geteuid() == 0
    hint = f"as root with debootstrap, make {made} of a Debian mirror: add --bootstrap" if made else ""
    tell(f"pulling {wanted}")
    try:
        _pull(client, wanted, hint)
    except engine.NoImageError:
        if site.base_image or image.suite is None or not (can if site.bootstrap is None else site.bootstrap):
            raise
        wanted = _bootstrapped(image.suite, site, tell, log)
    return wanted, str(client.images.get(wanted).id)


def _bootstrapped(suite: str, site: Site, tell: Tell, log: Path) -> str:
    """Make a Debian of a mirror and return its name. The script's status 3 says that something is missing here."""
    name = images.local_base(suite)
    tell(f"making {name} of a Debian mirror")
    mirror = [site.apt_mirror] if site.apt_mirror else []
    try:
        proc.run([str(images.FOLDER / "bootstrap-debian"), suite, name, *mirror], log=log)
    except proc.ProcessError as error:
        if error.status != MissingError.exit_code:
            raise
        said, _, remedy = error.output.strip().rpartition("what to do: ")
        told = [line.removeprefix("bootstrap-debian:").strip() for line in said.splitlines()]
        why = next((line for line in reversed(told) if line), "")
        raise engine.NoImageError(f"{name} cannot be made here: {why}", remedy=remedy) from error
    return name


def _pull(client: DockerClient, name: str, hint: str) -> None:
    from docker.credentials.errors import StoreError
    from docker.errors import APIError

    repository, _, tag = name.partition("@") if "@" in name else name.rpartition(":")
    if not repository or "/" in tag:
        repository, tag = name, "latest"
    try:
        for event in client.api.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise engine.explain_pull(name, event["error"], remedy=hint)
    except APIError as error:
        raise engine.explain_pull(name, str(error.explanation or error), remedy=hint) from error
    except StoreError as error:
        raise _credentials(error) from error


def archive(files: Mapping[str, tuple[bytes, int]]) -> io.BytesIO:
    """The context as a tar, the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    out.seek(0)
    return out


def _events(
    client: DockerClient, image: Image, recipe: _Recipe, network: str | None, log: Path
) -> Generator[dict[str, Any], None, None]:
    """The build's events as they come; closing the generator, as Ctrl-C does, ends the build in the engine."""
    from docker.credentials.errors import StoreError
    from docker.errors import APIError

    try:
        yield from client.api.build(
            fileobj=archive(recipe.files),
            custom_context=True,
            dockerfile=image.dockerfile,
            tag=image.name,
            buildargs=dict(recipe.args),
            labels={images.CONTENT: recipe.content, images.DEFINITION: definition(image)},
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
        )
    except APIError as error:
        raise _failure(image, str(error.explanation or error), log) from error
    except StoreError as error:
        raise _credentials(error) from error


def _credentials(error: Exception) -> MissingError:
    return MissingError(
        f"the helper that keeps registry passwords does not run: {error}",
        remedy="install it, or remove credsStore and credHelpers from Docker's config.json (~/.docker)",
    )


def _follow(image: Image, events: Iterable[dict[str, Any]], tell: Tell, log: Path) -> None:
    """Write the build's words to the log, tell its steps, and raise where it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as out:
        for event in events:
            text = str(event.get("stream", ""))
            out.write(text)
            if step := _STEP.match(text):
                tell(f"step {step.group(1)}: {step.group(2).strip()[:70]}")
            if "error" in event:
                out.flush()
                raise _failure(image, str(event["error"]), log)


def _failure(image: Image, said: str, log: Path) -> MissingError | BuildError:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if engine.NO_SPACE in f"{said}\n{text[-20_000:]}".lower():
        return engine.explain_space(said.strip())
    last = [line for line in text.splitlines() if line.strip()][-12:]
    lines = "\n".join(f"    {line}" for line in (*last, said.strip()) if line)
    if unreached := UNREACHED.search(text):
        return MissingError(
            f"the image {image.name} cannot be built: a mirror cannot be reached\n    {unreached.group().strip()}",
            remedy="say how this site is reached (--apt-mirror, --pip-index, --ca, --network host); the whole output "
            f"is in {log}",
        )
    why, remedy = explain.ending(f"{text}\n{said}")
    return BuildError(
        f"the image {image.name} cannot be built:\n{lines}{why}", remedy=f"{remedy}the whole output is in {log}"
    )
