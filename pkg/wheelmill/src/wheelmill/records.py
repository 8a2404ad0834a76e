"""The record of a wheel: all that is known of its bytes, which pages, `which` and `publish` read in place of the wheel.

It lies beside its file in an index, as `FILE.whl.record.json`, and is named by its SHA-256 in the index's JSON. It is
read from folders and servers, so it is not trusted: a field that does not hold makes the record unreadable.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

RECORD = ".record.json"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Environment = Annotated[str, Field(pattern=r"^(cpu|cu\d+)-torch\d+\.\d+$")]
Minor = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
Target = Annotated[str, Field(pattern=r"^\d+[af]?$")]
# Both become paths and links, so nothing but what the wheel and name specifications allow.
File = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+!-]*\.whl$", max_length=255)]
Project = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Library(_Part):
    """What the audit read from one library; the names are those of `audit --json`."""

    sass: tuple[Target, ...] = ()
    ptx: tuple[Target, ...] = ()
    ptx_isa: Minor | None = None
    needed: tuple[str, ...] = ()
    glibc: str | None = None
    glibcxx: str | None = None
    torch_abi: Literal["stable", "unstable", "none"] = "none"
    min_torch: str | None = None
    cxx11_abi: bool | None = None
    torch_symbols: tuple[str, ...] = ()


class Finding(_Part):
    rule: str
    severity: Literal["error", "warning", "info"]
    library: str | None = None
    message: str
    remedy: str
    waived: str | None = None


class Platform(_Part):
    """The tags' own policy and the one that the libraries need, such as `manylinux_2_28_x86_64`."""

    claimed: str | None = None
    needs: str | None = None


class Audit(_Part):
    verdict: Literal["pass", "fail"]
    platform: Platform = Platform()
    libraries: dict[str, Library] = {}
    findings: tuple[Finding, ...] = ()


class Cell(_Part):
    """One environment that was tried. `unclaimed` is why the wheel does not promise it, None where it does."""

    cuda: str
    torch: Minor
    python: str
    unclaimed: str | None = None
    result: Literal["pass", "fail", "not-available"]
    error: str | None = None


class Time(_Part):
    """A call of an operator: the median in milliseconds, and how many times the reference's it is."""

    operator: str
    sample: str
    card: str
    milliseconds: Annotated[float, Field(gt=0)]
    of_reference: float | None = None


class Gates(_Part):
    """Verdicts of the dynamic gates by name, and the cards and torches that they were seen on.

    `namespace` is under which the operators are registered, `samples` the module whose inputs they were given.
    """

    verdicts: dict[str, Literal["pass", "fail", "incomplete"]]
    namespace: str | None = None
    samples: str | None = None
    operators: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    torches: tuple[str, ...] = ()
    times: tuple[Time, ...] = ()


class Build(_Part):
    """How the wheel was made, as its manifest states it. `toolkit` is the CUDA minor that really compiled it."""

    wheel: str
    engine: str
    executor: str
    built: str
    cuda: str
    toolkit: Minor | None = None
    torch: str | None = None
    compiler: str | None = None
    sources: str | None = None
    key: str | None = None
    sm: tuple[str, ...] = ()


class Yank(_Part):
    """That a file was yanked, from when until when; `until` is None while it is. Times are ISO 8601 in UTC."""

    reason: Annotated[str, Field(min_length=1)]
    since: str
    until: str | None = None


class Record(_Part):
    """`release` is the whole version with its local part; `environments` those in which these bytes were measured.

    `yanked` is the reason of the yank that holds; `yanks` tells of each one, an ended one too. `vouched` are the
    identities and the fingerprints of keys that were found to vouch for these bytes (`wheelmill.signing`).
    """

    version: Literal[1] = 1
    file: File
    sha256: Sha256
    size: Annotated[int, Field(ge=0)]
    project: Project
    release: str
    requires_python: str | None = None
    requires: tuple[str, ...] = ()
    environments: tuple[Environment, ...] = ()
    build: Build | None = None
    audit: Audit | None = None
    cover: tuple[Cell, ...] | None = None
    gates: Gates | None = None
    yanked: str | None = None
    yanks: tuple[Yank, ...] = ()
    vouched: tuple[str, ...] = ()
