"""Variant metadata of a release (PEP 825 and, for `providers`, PEP 850; both are drafts).

A file that an installer takes for a variant carries its label in its name and `variant.json` inside, and so has other
bytes than those that were proven. No wheel is rewritten here: this states what each would be, under the label that is
its local version, for tools that read it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelmill.records import Record

SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
# In the order in which they decide; `abi_dependency` is the installer's own, by what is installed.
PROVIDERS: dict[str, dict[str, Any]] = {
    "nvidia": {
        "requires": ["nvidia-variant-provider"],
        "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
    },
    "abi_dependency": {"builtin": "abi_dependency"},
}
Properties = dict[str, dict[str, list[str]]]


def file(project: str, version: str) -> str:
    """The name of a release's variant metadata, in which a wheel's rules for names hold."""
    return f"{project.replace('-', '_')}-{version}-variants.json"


def label(record: Record) -> str | None:
    """The label of a wheel; None for one without a local version, which is no variant."""
    return Version(record.release).local


def content(release: Sequence[Record]) -> bytes | None:
    """The variant metadata of the wheels of one public version; None where no wheel of it is a variant."""
    labelled: dict[str, list[Record]] = {}
    for record in release:
        name = label(record)
        if name is not None:
            labelled.setdefault(name, []).append(record)
    found = {name: _properties(same) for name, same in sorted(labelled.items())}
    stated = {name: properties for name, properties in found.items() if properties}
    if not stated:
        return None
    used = [name for name in PROVIDERS if any(name in properties for properties in stated.values())]
    value = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": used},
        "providers": {name: PROVIDERS[name] for name in used},
        "variants": stated,
    }
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _properties(same: Sequence[Record]) -> Properties:
    """What every wheel of a label asks of a system: the driver's CUDA, a GPU's architecture, and torch's minor."""
    found: Properties = {}
    cuda = _minors(one.build.toolkit for one in same if one.build)
    if cuda:
        found["nvidia"] = {"cuda_version_lower_bound": [cuda[-1]]}
        targets = [_targets(one) for one in same]
        if shared := sorted(set.intersection(*targets)):
            found["nvidia"]["sm_arch"] = shared
    torch = _minors(name.partition("-torch")[2] for one in same for name in one.environments)
    if torch:
        found["abi_dependency"] = {"torch": torch}
    return found


def _minors(stated: Iterable[str | None]) -> list[str]:
    return sorted({one for one in stated if one}, key=version_key)


def _targets(record: Record) -> set[str]:
    libraries = record.audit.libraries.values() if record.audit else ()
    sass = {f"{one}_real" for library in libraries for one in library.sass}
    return sass | {f"{one}_virtual" for library in libraries for one in library.ptx}
