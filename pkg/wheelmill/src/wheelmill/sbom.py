"""What a wheel carries about itself: a CycloneDX 1.6 SBOM (PEP 770) and a build manifest.

Both go into the wheel, so they hold nothing that two builds of the same bytes may differ in: no executor, no image,
no path and no clock but SOURCE_DATE_EPOCH. The compilers are read from the libraries themselves, which name them in
their `.comment` section. Where it was built, and from which sources, stands in the manifest beside the wheel, so that
a change of sources that changes nothing in the wheel leaves it the same file.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import uuid
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheelmill import __version__, backend, fetch, project, toolkit
from wheelmill.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wheelmill.inputs import Inputs
    from wheelmill.model import Step
    from wheelmill.steps import Site

PLACE = "sboms/wheelmill.cdx.json"
MANIFEST = "wheelmill.json"
# The namespace of serial numbers, which are names of content: the same content, the same number.
SERIAL = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/schema/bom-1.6.schema.json")

Component = dict[str, Any]


def compilers(wheel: Path) -> tuple[str, ...]:
    """What compiled the libraries of a wheel, in their own words: `GCC: (Debian 12.2.0-14+deb12u1) 12.2.0`."""
    found = set()
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".so") or ".so." in name:
                    section = ELFFile(io.BytesIO(archive.read(name))).get_section_by_name(".comment")
                    found |= set(section.data().decode(errors="replace").split("\0")) if section else set()
    except (ELFError, zipfile.BadZipFile) as error:
        raise BuildError(
            f"{wheel.name} holds a library that cannot be read: {error}", remedy="look in the build log for its link"
        ) from error
    return tuple(sorted(found - {""}))


def _package(name: str, version: str, role: str) -> Component:
    purl = f"pkg:pypi/{canonicalize_name(name)}@{quote(version)}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "properties": [{"name": "wheelmill:role", "value": role}],
    }


def _tools(site: Site, inputs: Inputs) -> Iterator[Component]:
    """The build tools that the project states. What a back end asks for by itself differs from place to place."""
    pinned = {line.split("==")[0] for line in inputs.tools.splitlines() if "==" in line}
    stated = {canonicalize_name(Requirement(text).name) for text in project.build_requirements(site.project)}
    for name in sorted(stated & pinned):  # a marker may leave one out
        yield _package(name, fetch.pinned(inputs.tools, name), "build tool")


def _toolkit(site: Site, inputs: Inputs, log: Path) -> Iterator[Component]:
    if inputs.toolkit is None:
        return
    version = inputs.toolkit.version
    yield {
        "type": "application",
        "bom-ref": f"cuda-toolkit@{version}",
        "name": "cuda-toolkit",
        "version": version,
        "supplier": {"name": "NVIDIA"},
        "properties": [{"name": "wheelmill:role", "value": "toolkit"}],
    }
    facts = next((row for row in site.facts.cuda.values() if row.minor == version), None)
    if inputs.toolkit.provider == "pypi" and facts is not None and facts.pypi is not None:
        pins = toolkit.pypi_pins(site.store, facts.pypi, log)
        names = sorted(line.split("==")[0] for line in pins.splitlines() if line.startswith("nvidia-"))
        for name in names:
            yield _package(name, fetch.pinned(pins, name), "toolkit")


def _compilers(wheel: Path) -> Iterator[Component]:
    for text in compilers(wheel):
        name, _, version = text.partition(": ")
        yield {
            "type": "application",
            "bom-ref": text,
            "name": name,
            "version": version or "unknown",
            "properties": [{"name": "wheelmill:role", "value": "compiler"}],
        }


def bom(subject: Component, components: list[Component], epoch: int) -> dict[str, Any]:
    """A CycloneDX 1.6 document: the subject, what it was made of, and a serial number that names the content."""
    said = {
        "metadata": {
            "timestamp": dt.datetime.fromtimestamp(epoch, dt.timezone.utc).isoformat().replace("+00:00", "Z"),
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{"type": "application", "name": "wheelmill", "version": __version__}]},
            "component": subject,
        },
        "components": components,
        "dependencies": [{"ref": subject["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(SERIAL, json.dumps(said, sort_keys=True))}",
        "version": 1,
        **said,
    }


def _text(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def members(
    step: Step, site: Site, inputs: Inputs, repaired: Path, named: tuple[str, str], log: Path
) -> dict[str, bytes]:
    """The files that go into the wheel's dist-info folder. `named` is its (name, version) as labelled."""
    name, version = named
    subject = _package(name, version, "wheel")
    components = [
        _package("torch", step.torch_release, "headers"),
        *_toolkit(site, inputs, log),
        *_compilers(repaired),
        *_tools(site, inputs),
    ]
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", backend.EPOCH))
    manifest = {
        "version": 1,
        "wheel": step.wheel.id,
        "engine": __version__,
        "cuda": step.wheel.cuda,
        "torch": step.torch_release,
        "toolkit": inputs.toolkit.version if inputs.toolkit else None,
        "sm": list(step.wheel.sm),
        "compilers": list(compilers(repaired)),
        "flags": backend.flags(),
    }
    return {PLACE: _text(bom(subject, components, epoch)), MANIFEST: _text(manifest)}
