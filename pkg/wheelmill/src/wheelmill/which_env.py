"""An environment: the facts of one machine's Python, torch, driver and GPUs that decide which wheel works there.

A fact that is None is not known. What is known to be missing is stated: no torch is `Torch(version=None)`, no driver
`Driver(version=None)`, no GPU an empty tuple.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Literal

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, Field, field_validator

from wheelmill import hardware

Minor = Annotated[str, Field(pattern=r"^\d{1,3}\.\d{1,4}$")]
Text = Annotated[str, Field(max_length=300)]
OFFICIAL = re.compile(r"cu\d{3,}|cpu|rocm\d[\d.]*|xpu")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Python(_Part):
    """`version` may be a minor or a whole release; `abi` is the tag, such as `cp313t`."""

    version: Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?[\w.+]*$", max_length=40)]
    implementation: Text = "cpython"
    abi: Annotated[str, Field(pattern=r"^\w+$", max_length=40)] | None = None

    @property
    def minor(self) -> str:
        match = re.match(r"\d+\.\d+", self.version)
        return match[0] if match else self.version

    @property
    def threaded(self) -> bool:
        """Whether it is the free-threaded build."""
        return bool(re.fullmatch(r"cp3\d+t", self.abi or ""))


class Torch(_Part):
    """A torch. `cuda` is the CUDA of its build as `12.4`, or why there is none: `cpu`, `rocm`, `xpu`.

    `origin` is who built it, as far as can be told: PyTorch itself, conda, or somebody else from source.
    """

    version: Text | None
    cuda: Annotated[str, Field(pattern=r"^(\d+\.\d+|cpu|rocm|xpu)$")] | None = None
    cxx11_abi: bool | None = None
    origin: Literal["pytorch", "conda", "other"] | None = None

    @field_validator("version")
    @classmethod
    def _is_a_version(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                Version(value)
            except InvalidVersion as error:
                raise ValueError(f"{value!r} is no version") from error
        return value

    @property
    def parsed(self) -> Version:
        return _parsed(self.version or "0")

    @property
    def minor(self) -> str:
        return f"{self.parsed.major}.{self.parsed.minor}"

    @property
    def final(self) -> bool:
        """Whether it is a release, and no nightly or snapshot."""
        return not self.parsed.is_prerelease

    @property
    def tag(self) -> str | None:
        """`cu124`, `cpu`, `rocm` or `xpu`."""
        return "cu" + self.cuda.replace(".", "") if self.cuda and self.cuda[0].isdigit() else self.cuda

    @property
    def major(self) -> int | None:
        """The CUDA major whose runtime it brings; None without one."""
        return int(self.cuda.partition(".")[0]) if self.cuda and self.cuda[0].isdigit() else None


@cache
def _parsed(version: str) -> Version:
    return Version(version)


class Driver(_Part):
    """A driver, and the newest CUDA it serves where it said so itself; `fails` is what its library ends with.

    That there is no GPU is no failure of it.
    """

    version: Annotated[str, Field(pattern=r"^\d{1,4}(\.\d{1,4}){0,3}$")] | None
    cuda: Minor | None = None
    fails: Text | None = None

    @property
    def serves(self) -> str | None:
        return self.cuda or (hardware.serves(self.version) if self.version else None)


class Gpu(_Part):
    name: Text | None = None
    capability: Minor | None = None

    def __str__(self) -> str:
        if self.name is None:
            return self.capability or "a GPU"
        return f"{self.name} ({self.capability})" if self.capability else self.name


class Libc(_Part):
    kind: Literal["glibc", "musl"]
    version: Minor | None = None


class Environment(_Part):
    """`system` is `linux`, `macos` or `windows`; `system_version` macOS's; `notes` what its reader wants said."""

    python: Python | None = None
    system: Literal["linux", "macos", "windows"] | None = None
    system_version: Minor | None = None
    machine: Annotated[str, Field(pattern=r"^\w+$", max_length=30)] | None = None
    libc: Libc | None = None
    torch: Torch | None = None
    driver: Driver | None = None
    gpus: tuple[Gpu, ...] | None = None
    wsl: bool = False
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str | None:
        """The name of its index page, such as `cu130-torch2.11`."""
        torch = self.torch
        if torch is None or torch.version is None or torch.tag is None or torch.tag in ("rocm", "xpu"):
            return None
        return f"{torch.tag}-torch{torch.minor}"

    @property
    def tabled(self) -> bool:
        """Whether tables/torch.toml, which is of Linux on x86_64, speaks of this system."""
        return self.system == "linux" and self.machine in ("x86_64", None)

    @property
    def measured_id(self) -> str | None:
        """The `id` where its torch is of the builds that wheels are measured with: PyTorch's own releases."""
        torch = self.torch
        return self.id if torch is not None and torch.final and torch.origin in ("pytorch", None) else None


def origin_of(version: str) -> Literal["pytorch", "other"] | None:
    """Who built a torch by its version alone: PyTorch's local part is a variant, a source build's is none of those."""
    local = Version(version).local
    if local is None:
        return None
    return "pytorch" if OFFICIAL.fullmatch(local) else "other"


def cuda_of_local(version: str) -> str | None:
    """The CUDA that a torch's version states: `2.6.0+cu124` → `12.4`, `+cpu` → `cpu`, `+rocm6.2` → `rocm`."""
    local = Version(version).local or ""
    match = re.match(r"cu(\d+)(\d)$|(cpu|rocm|xpu)", local)
    if match is None:
        return None
    return match[3] or f"{match[1]}.{match[2]}"
