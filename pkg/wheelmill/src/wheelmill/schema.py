"""The declaration of matrix.yaml: keys, kinds and meanings. Reader and JSON Schema both come from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text. `numeric` marks values that look like YAML numbers and must be quoted."""

    doc: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    numeric: bool = False
    pattern: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """A list of texts, not empty; where `text` is given, that single text will do as well."""

    doc: str
    item: Text
    hint: str = ""
    text: Text | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """The one number that is accepted."""

    doc: str
    value: int
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A mapping with known keys."""

    doc: str
    fields: Mapping[str, Kind]
    hint: str = ""
    required: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A mapping whose keys are names of the user's choice, of the form `pattern`."""

    doc: str
    pattern: str
    value: Texts
    hint: str = ""


Kind: TypeAlias = "Text | Texts | Number | Section | Table"

GATES = ("audit", "cover", "ops", "gradcheck", "sanitize", "bench", "repro")

_MINOR = Text(doc="A minor release of torch.", hint='Write "2.11".', numeric=True, pattern=r"^\d+\.\d+$")
_ARCH = Text(
    doc="A word of TORCH_CUDA_ARCH_LIST: 8.0, 9.0a, 10.0f, 9.0+PTX, or a name such as Hopper.",
    hint='Write "8.0" or "9.0+PTX".',
    numeric=True,
)

MATRIX = Section(
    doc="Which wheels of a PyTorch C++/CUDA extension exist.",
    hint="Write `key: value` lines, beginning with `version: 1`.",
    required=("version", "torch", "cuda"),
    fields={
        "version": Number(doc="The format of this file.", value=1, hint="Write version: 1."),
        "project": Section(
            doc="The extension project that is built.",
            hint="Write {path: FOLDER}.",
            fields={
                "path": Text(
                    doc="The project's folder, relative to this file.", hint="Write a folder's path."
                ),
                "sources": Texts(
                    doc="Files and folders that the wheel's content depends on. Default: all.",
                    item=Text(doc="A path relative to the project.", hint="Write a path."),
                    hint="Write [csrc, setup.py].",
                ),
                "name": Text(
                    doc="The distribution's name. Default: the project's own.", hint="Write a name."
                ),
                "build_torch": Text(
                    doc="What the build needs of torch: its headers, an importable torch, or find out.",
                    choices=("headers", "import", "auto"),
                    hint="Write headers, import or auto.",
                ),
            },
        ),
        "torch": Texts(
            doc="Torch releases: a range, or a list of minors.",
            item=_MINOR,
            text=Text(doc="A range of minors.", hint='Write ">=2.4".', numeric=True),
            hint='Write torch: ">=2.4".',
        ),
        "cuda": Texts(
            doc="CUDA variants of torch.",
            item=Text(doc="cpu, or a tag such as cu130.", hint="Write cu130.", pattern=r"^(cpu|cu\d{3,})$"),
            hint="Write cuda: [cpu, cu130].",
        ),
        "python": Texts(
            doc="Pythons: a range, or a list of minors; 3.13t is the free-threaded 3.13. "
            "Default: the project's requires-python.",
            item=Text(doc="A minor version.", hint='Write "3.11".', numeric=True, pattern=r"^3\.\d+t?$"),
            text=Text(doc="A range of minors.", hint='Write ">=3.10".', numeric=True),
            hint='Write python: ">=3.10".',
        ),
        "sm": Table(
            doc="GPU targets, in TORCH_CUDA_ARCH_LIST's words: under `default`, or a CUDA tag.",
            pattern=r"^(default|cu\d{3,})$",
            hint="Write {default: all-major}.",
            value=Texts(
                doc="Targets: a list, one TORCH_CUDA_ARCH_LIST value, all, or all-major.",
                item=_ARCH,
                text=_ARCH,
                hint='Write all-major, or ["8.0", "9.0+PTX"].',
            ),
        ),
        "abi": Section(
            doc="Which binary interfaces the library keeps to; what it keeps to needs fewer wheels.",
            hint="Write {torch: per-release, python: per-version}.",
            fields={
                "torch": Text(
                    doc="per-release: a wheel a torch minor. stable>=X.Y: one wheel for torch X.Y and later.",
                    hint="Write per-release or stable>=2.10.",
                    pattern=r"^(per-release|stable>=\d+\.\d+)$",
                ),
                "python": Text(
                    doc="per-version: a wheel a Python. abi3: the limited API. none: no CPython API at all.",
                    choices=("none", "abi3", "per-version"),
                    hint="Write none, abi3 or per-version.",
                ),
            },
        ),
        "operators": Section(
            doc="The library's operators, for the gates that call them.",
            hint="Write {namespace: NAME, samples: MODULE}.",
            required=("namespace",),
            fields={
                "namespace": Text(doc="The namespace under torch.ops.", hint="Write namespace: NAME."),
                "samples": Text(
                    doc="The module that gives sample inputs.", hint="Write samples: PACKAGE.testing."
                ),
            },
        ),
        "policy": Section(
            doc="What every wheel must keep to.",
            hint='Write {glibc: "2.28", size: 200MB}.',
            fields={
                "glibc": Text(
                    doc="The oldest glibc it must run on. Default: 2.28.",
                    hint='Write "2.28".',
                    numeric=True,
                    pattern=r"^2\.\d+$",
                ),
                "size": Text(
                    doc="The largest wheel, as 200MB or 150MiB. Default: no limit.",
                    hint="Write 200MB.",
                    pattern=r"^\d+(\.\d+)? ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$",
                ),
            },
        ),
        "gates": Section(
            doc="Which gates a wheel must have passed, by occasion.",
            hint="Write {publish: [audit, cover]}.",
            fields={
                "publish": Texts(
                    doc="Before it is published. Default: audit and cover; "
                    "with operators also ops, gradcheck and sanitize.",
                    item=Text(doc="A gate.", choices=GATES, hint="Write audit."),
                    hint="Write [audit, cover].",
                )
            },
        ),
        "toolkit": Section(
            doc="How close a build's CUDA toolkit must be to the one asked for.",
            hint="Write {minor: exact}.",
            fields={
                "minor": Text(
                    doc="exact, or same-major: any minor of the same major will do. Default: exact.",
                    choices=("exact", "same-major"),
                    hint="Write exact or same-major.",
                )
            },
        ),
        "facts": Text(
            doc="A TOML file with more rows of torch and CUDA facts, relative to this file.",
            hint="Write a path.",
        ),
    },
)


def described(kind: Kind) -> str:
    """What is needed there, for an error's sentence."""
    if isinstance(kind, Text):
        return "one of " + ", ".join(kind.choices) if kind.choices else "a text"
    if isinstance(kind, Texts):
        return "a list" if kind.text is None else "a text or a list"
    return "a number" if isinstance(kind, Number) else "a mapping"


def json_schema() -> dict[str, object]:
    """MATRIX as JSON Schema, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wheelmill matrix",
        **_export(MATRIX),
    }


def _export(kind: Kind) -> dict[str, object]:
    if isinstance(kind, Text):
        said: dict[str, object] = {"description": kind.doc, "type": "string"}
        if kind.choices:
            said["enum"] = list(kind.choices)
        return {**said, "pattern": kind.pattern} if kind.pattern else said
    if isinstance(kind, Number):
        return {"description": kind.doc, "const": kind.value}
    if isinstance(kind, Texts):
        some: dict[str, object] = {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": _export(kind.item),
        }
        if kind.text is None:
            return {"description": kind.doc, **some}
        return {"description": kind.doc, "anyOf": [_export(kind.text), some]}
    shape: dict[str, object] = {"description": kind.doc, "type": "object", "additionalProperties": False}
    if isinstance(kind, Table):
        return {**shape, "patternProperties": {kind.pattern: _export(kind.value)}}
    shape["properties"] = {name: _export(field) for name, field in kind.fields.items()}
    return {**shape, "required": list(kind.required)} if kind.required else shape
