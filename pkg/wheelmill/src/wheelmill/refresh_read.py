"""What the servers say of torch and CUDA now: pages of two indexes, and parts of a few wheels. Nothing is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from wheelmill import refresh_wheels, toolkit, web, which_deep, which_links
from wheelmill.errors import InputError, MissingError
from wheelmill.names import cuda_key, version_key
from wheelmill.refresh_answers import Answers, Artifact, Compiler, Release, Unreached, minor_of, newer, releases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wheelmill.facts import Cuda, Facts
    from wheelmill.web import Web
    from wheelmill.which_candidate import Link

PYPI = "https://pypi.org/simple/"
METADATA, TEXT, LIBRARY = 2 << 20, 4 << 20, 32 << 20
# ptxas is some 40 MB, and 17 MB of it travel; it is read for a CUDA that no row has, and for the newest that one has.
BINARY, READ = 256 << 20, 128 << 20
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The two indexes; `torch` holds {cuda}."""

    pypi: str
    torch: str


@dataclass(frozen=True, slots=True)
class _Reader:
    """Asks, and notes who gave no answer: one source that fails costs the others nothing."""

    session: Web
    places: Places
    unreached: list[Unreached] = field(default_factory=list)

    def ask(self, source: str, question: Callable[[], Answer]) -> Answer | None:
        try:
            return question()
        except (MissingError, InputError) as error:
            self.unreached.append(Unreached(source=source, why=str(error)))
            return None

    def listing(self, index: str, project: str) -> which_links.Listing:
        """A project's page. Raises InputError where it is none, or names what PyPI would not have let in."""
        url = urljoin(index if index.endswith("/") else index + "/", f"{quote(project)}/")
        local = urlsplit(url).scheme == "file"
        page = self.session.get(url + "index.json" if local else url, limit=web.PAGE, accept=which_links.ACCEPT)
        found = which_links.read(page, project)
        if found.skipped and (index == self.places.pypi or not found.links):
            raise InputError(f"{web.shown(url)} holds what is no wheel: {found.skipped[0]}")
        if not found.links:
            raise InputError(f"{web.shown(url)} lists no wheel of {project}")
        return found

    def pypi(self, project: str) -> dict[str, Release] | None:
        """The newest release a minor of PyPI's page; None where there is no answer."""

        def question() -> dict[str, Release]:
            every = releases(self.listing(self.places.pypi, project))
            return {minor_of(one.release): one for one in every.values()}

        return self.ask(f"PyPI's page of {project}", question)

    def metadata(self, link: Link) -> bytes:
        """By PEP 658 where the index offers it, else by parts of the wheel."""
        if link.metadata is None:
            return which_deep.metadata(link.url, self.session, METADATA, READ)
        text = self.session.get(f"{link.url}.metadata", limit=METADATA).body
        if link.metadata and hashlib.sha256(text).hexdigest() != link.metadata:
            raise InputError(f"the METADATA of {link.file} is not the one that the index states")
        return text

    def variants(self, tags: Iterable[str]) -> dict[str, dict[str, Release]]:
        """What torch's index has for each tag, by release. An index that lacks even `cpu` is not torch's."""
        found: dict[str, dict[str, Release]] = {}
        for tag in sorted(set(tags) | {"cpu"}, key=cuda_key):
            try:
                every = releases(self.listing(self.places.torch.format(cuda=tag), "torch"))
            except web.AbsentError:
                if tag == "cpu":
                    raise
                continue
            of_tag = {version: one for version, one in every.items() if version.local == tag}
            found[tag] = {version.public: one for version, one in of_tag.items()}
        return found

    def artifact(self, link: Link) -> Artifact:
        names = {"torch/utils/cpp_extension.py": TEXT, "torch/lib/libc10.so": LIBRARY}
        parts = which_deep.members(link.url, self.session, names, READ)
        return Artifact(
            cuda=refresh_wheels.cuda(self.metadata(link)),
            cxx=refresh_wheels.standard(parts.get("torch/utils/cpp_extension.py", b"")),
            cxx11_abi=refresh_wheels.cxx11_abi(parts.get("torch/lib/libc10.so", b"")),
        )

    def complete(self, kit: Release) -> bool:
        return set(toolkit.PARTS.split(",")) <= refresh_wheels.extras(self.metadata(kit.link))

    def part(self, kit: Release, package: str, file: str) -> tuple[str, bytes]:
        """(the release of a package that the toolkit's `nvcc` pins, a file of its wheel, empty where it has none)."""
        pinned = refresh_wheels.pins(self.metadata(kit.link), "nvcc").get(package)
        if pinned is None:
            raise InputError(f"cuda-toolkit {kit.release} pins no {package} for nvcc")
        links = self.listing(self.places.pypi, package).links
        of = {str(version): one for version, one in releases(which_links.Listing(links=links)).items()}
        if pinned not in of:
            raise InputError(f"PyPI has no {package} {pinned}, which cuda-toolkit {kit.release} pins")
        name = f"nvidia/cu{pinned.split('.')[0]}/{file}"
        return pinned, which_deep.members(of[pinned].link.url, self.session, {name: BINARY}, READ).get(name, b"")

    def compiler(self, kit: Release, trusted: bool) -> Compiler:  # noqa: FBT001
        nvcc, ptxas = self.part(kit, "nvidia-cuda-nvcc", "bin/ptxas")
        _, config = self.part(kit, "nvidia-cuda-crt", "include/crt/host_config.h")
        sm = refresh_wheels.targets(ptxas) if trusted else ()
        return Compiler(nvcc=nvcc, sm=sm, gcc=refresh_wheels.newest_gcc(config))

    def reads_targets(self, kit: Release, row: Cuda) -> bool:
        """Whether reading a ptxas gives what a row that a person read from its help states."""
        _, ptxas = self.part(kit, "nvidia-cuda-nvcc", "bin/ptxas")
        return set(refresh_wheels.targets(ptxas)) == row.names


def _wheels(reader: _Reader, known: Facts, torch: Mapping[str, Release]) -> dict[str, Artifact]:
    """The newest wheel of each minor: its METADATA where the table has that release, more where it has not."""
    found: dict[str, Artifact] = {}
    oldest = min(map(version_key, known.torch), default=())
    for minor, one in torch.items():
        row = known.torch.get(minor)
        if version_key(minor) < oldest:
            continue

        def question(one: Release = one, new: bool = row is None or row.release != one.release) -> Artifact:  # noqa: FBT001
            return reader.artifact(one.link) if new else Artifact(cuda=refresh_wheels.cuda(reader.metadata(one.link)))

        answer = reader.ask(f"the PyPI wheel of torch {one.release}", question)
        if answer is not None:
            found[one.release] = answer
    return found


def _compilers(
    reader: _Reader, known: Facts, toolkits: Mapping[str, Release]
) -> tuple[dict[str, bool], dict[str, Compiler]]:
    complete: dict[str, bool] = {}
    compilers: dict[str, Compiler] = {}
    rows = {row.minor: row for row in known.cuda.values()}
    new = newer(known, toolkits)
    moved = [minor for minor, kit in toolkits.items() if minor in rows and rows[minor].pypi not in (None, kit.release)]
    for minor in (*moved, *new):
        kit = toolkits[minor]
        answer = reader.ask(f"cuda-toolkit {kit.release} on PyPI", lambda kit=kit: reader.complete(kit))  # type: ignore[misc]
        if answer is not None:
            complete[kit.release] = answer
    wanted = [minor for minor in new if complete.get(toolkits[minor].release)]
    newest = max((row for row in rows.values() if row.pypi), key=lambda row: version_key(row.minor), default=None)
    trusted = None
    if wanted and newest is not None and newest.minor in toolkits:
        trusted = reader.ask(
            f"ptxas of CUDA {newest.minor} on PyPI", lambda: reader.reads_targets(toolkits[newest.minor], newest)
        )
    for minor in wanted:
        kit = toolkits[minor]
        made = reader.ask(
            f"the compiler of cuda-toolkit {kit.release} on PyPI",
            lambda kit=kit: reader.compiler(kit, bool(trusted)),  # type: ignore[misc]
        )
        if made is not None:
            compilers[minor] = made
    return complete, compilers


def read(known: Facts, places: Places, session: Web) -> Answers:
    """What the two indexes say beside the tables; whoever gave no answer is among `unreached`."""
    reader = _Reader(session, places)
    torch = reader.pypi("torch")
    toolkits = reader.pypi("cuda-toolkit")
    runtimes: dict[str, dict[str, str]] = {}
    for package in sorted({row.runtime.split("==")[0] for row in known.cuda.values() if row.runtime}):
        every = reader.pypi(package)
        if every is not None:
            runtimes[package] = {minor: one.release for minor, one in every.items()}
    wheels = _wheels(reader, known, torch) if torch else {}
    named = {one.cuda for one in wheels.values() if one.cuda is not None}
    tags = {*known.cuda, *known.tags, *named, *(refresh_wheels.tag(minor) for minor in toolkits or ())}
    variants = reader.ask("torch's own index", lambda: reader.variants(tags))
    complete, compilers = _compilers(reader, known, toolkits) if toolkits else ({}, {})
    return Answers(
        torch=torch,
        variants=variants,
        wheels=wheels,
        toolkits=toolkits,
        complete=complete,
        compilers=compilers,
        runtimes=runtimes,
        unreached=tuple(reader.unreached),
    )
