"""What matrix.yaml may hold: keys, forms and meanings. The reader and editors' schema both come from here."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from wheelmill.choice import ranged
from wheelmill.errors import InputError

# The C shims are versioned since 2.10, and below it too little is there for real operators:
# https://docs.pytorch.org/docs/stable/notes/libtorch_stable_abi.html
STABLE_FROM = (2, 10)

BuildTorch = Literal["headers", "import", "auto"]
ToolkitMinor = Literal["exact", "same-major"]
Gate = Literal["audit", "cover", "ops", "gradcheck", "sanitize", "robust", "bench", "pytest", "repro"]


def _is_range(text: str) -> str:
    ranged(text, "")
    return text


def _has_stable_abi(text: str) -> str:
    floor = re.search(r"(\d+)\.(\d+)$", text)
    if floor and (int(floor[1]), int(floor[2])) < STABLE_FROM:
        raise InputError(
            f"torch {floor[0]} has no stable ABI to keep to: its C shims are versioned from 2.10 on, and "
            "before that too little is there for real operators.",
            remedy="Write stable>=2.10 or later; torch releases before it get a wheel each.",
        )
    return text


def _form(value: object) -> str | None:
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else None


One = TypeVar("One")
Item = TypeVar("Item")
Text = Annotated[str, Field(pattern=r"\S")]
Some: TypeAlias = Annotated[list[Item], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
OneOrSome: TypeAlias = Annotated[Annotated[One, Tag("text")] | Annotated[Some[Item], Tag("list")], Discriminator(_form)]

File = Annotated[Text, Field(description="A path relative to the project, as csrc.")]
Range = Annotated[Text, AfterValidator(_is_range), Field(description='A range of minors, as ">=2.4".')]
Minor = Annotated[str, Field(pattern=r"^\d+\.\d+$", description='A minor release of torch, as "2.11".')]
Python = Annotated[
    str,
    Field(
        pattern=r"^3\.\d+t?$",
        description='A minor version of Python, as "3.11", or "3.13t" for the free-threaded 3.13.',
    ),
]
# Which tags there are, the facts say, and with what is near; the form is for editors.
Variant = Annotated[
    Text,
    Field(description="cpu, or a tag such as cu130.", json_schema_extra={"pattern": r"^(cpu|cu\d{3,})$"}),
]
Targets = Annotated[
    Text,
    Field(
        description='A word of TORCH_CUDA_ARCH_LIST, as "8.0", "9.0a", "10.0f" or "9.0+PTX"; a name, as Hopper; '
        "all, or all-major."
    ),
]


class Section(BaseModel):
    """A mapping with known keys. What an error offers as the remedy is the description of its field."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Project(Section):
    path: Text = Field(default=".", description="The project's folder, relative to this file.")
    sources: Some[File] = Field(
        default=[],
        description="Files and folders that the wheel's content depends on, as [csrc, setup.py]. Default: all.",
    )
    name: str | None = Field(
        default=None,
        pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="The distribution's name, as my-ops. Default: the project's own.",
    )
    build_torch: BuildTorch = Field(
        default="auto",
        description="What the build needs of torch: its headers, an importable torch, or find out.",
    )


class Abi(Section):
    torch: Annotated[str, AfterValidator(_has_stable_abi)] = Field(
        default="per-release",
        pattern=r"^(per-release|stable *>= *\d+\.\d+)$",
        description="per-release: a wheel a torch minor. stable>=2.10: one wheel for torch 2.10 and later.",
    )
    python: Literal["none", "abi3", "per-version"] = Field(
        default="per-version",
        description="per-version: a wheel a Python. abi3: the limited API. none: no CPython API at all.",
    )


class Operators(Section):
    namespace: str = Field(pattern=r"^[A-Za-z_]\w*$", description="The namespace under torch.ops, as namespace: NAME.")
    samples: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        description="The module that gives sample inputs, as samples: PACKAGE.testing.",
    )


def _is_rule(text: str) -> str:
    from wheelmill.findings import rules
    from wheelmill.names import did_you_mean

    if text not in rules():
        raise InputError(f'"{text}" is no rule of the audit.', remedy=did_you_mean(text, list(rules())))
    return text


class Waiver(Section):
    rule: Annotated[Text, AfterValidator(_is_rule)] = Field(
        description="The rule that is waived, by its id, as rpath-leaves."
    )
    library: Text | None = Field(
        default=None,
        description='In which libraries, a glob on their paths in the wheel, as "demo.libs/*". Default: all.',
    )
    reason: Text = Field(description="Why the fault is accepted, as a sentence.")


Accepted = Annotated[Waiver, Field(description="A finding that is accepted, as {rule: ID, reason: TEXT}.")]
BYTES = r"^(\d*[1-9]\d*(\.\d+)?|0+\.\d*[1-9]\d*) ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"


class Policy(Section):
    glibc: str = Field(
        default="2.28", pattern=r"^2\.\d+$", description='The oldest glibc it must run on. Default: "2.28".'
    )
    size: str | None = Field(
        default=None,
        pattern=BYTES,
        description="The largest wheel, as 200MB or 150MiB. Default: no limit.",
    )
    unpacked: str | None = Field(
        default=None,
        pattern=BYTES,
        description="The largest wheel when it is unpacked, as 1GB. Default: no limit.",
    )
    fail_on: Literal["error", "warning"] = Field(
        default="error", description="The mildest finding of the audit that fails a wheel: error or warning."
    )
    waive: Some[Accepted] = Field(
        default=[],
        description="Findings that are accepted, each as {rule: ID, library: GLOB, reason: TEXT}, library optional.",
    )


class Gates(Section):
    publish: Some[Gate] = Field(
        default=[],
        description="Before it is published. Default: [audit, cover]; with operators also ops, gradcheck and sanitize.",
    )


class Toolkit(Section):
    minor: ToolkitMinor = Field(
        default="exact", description="exact, or same-major: any minor of the same major will do. Default: exact."
    )
    dropped: Literal["error", "accept"] = Field(
        default="error",
        description="Targets that a toolkit of another minor does not know: an error, or accept to leave them out.",
    )


class MatrixFile(Section):
    """Which wheels of a PyTorch C++/CUDA extension exist, in `key: value` lines that begin with `version: 1`."""

    version: Literal[1] = Field(description="The format of this file. This release reads version: 1.")
    project: Project = Field(default=Project(), description="The extension project that is built, as {path: FOLDER}.")
    torch: OneOrSome[Range, Minor] = Field(
        description='Torch releases: a range, as torch: ">=2.4", or a list of minors, as ["2.10", "2.11"].'
    )
    cuda: Some[Variant] = Field(description="CUDA variants of torch, as [cpu, cu130].")
    python: OneOrSome[Range, Python] | None = Field(
        default=None,
        description='Pythons: a range, as ">=3.10", or a list of minors, as ["3.11", "3.13t"], where 3.13t is the '
        "free-threaded 3.13. Default: the project's requires-python.",
    )
    sm: dict[str, OneOrSome[Targets, Targets]] = Field(
        default={},
        description="GPU targets: one TORCH_CUDA_ARCH_LIST value or a list of its words, under `default` or a CUDA "
        "tag, as {default: all-major}.",
        json_schema_extra={"propertyNames": {"pattern": r"^(default|cu\d{3,})$"}},
    )
    abi: Abi = Field(
        default=Abi(),
        description="Which binary interfaces the library keeps to, as {torch: per-release, python: per-version}; "
        "what it keeps to needs fewer wheels.",
    )
    operators: Operators | None = Field(
        default=None,
        description="The library's operators, for the gates that call them, as {namespace: NAME, samples: MODULE}.",
    )
    policy: Policy = Field(
        default=Policy(), description='What every wheel must keep to, as {glibc: "2.28", size: 200MB}.'
    )
    gates: Gates = Field(
        default=Gates(),
        description="Which gates a wheel must have passed, by occasion, as {publish: [audit, cover]}.",
    )
    toolkit: Toolkit = Field(
        default=Toolkit(),
        description="How close a build's CUDA toolkit must be to the one asked for, as {minor: exact}.",
    )
    facts: Text | None = Field(
        default=None,
        description="A TOML file with more rows of torch and CUDA facts, relative to this file.",
    )
