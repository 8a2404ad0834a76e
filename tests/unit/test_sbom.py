"""The SBOM that a wheel carries: valid CycloneDX, and the same for the same content."""

import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from wheelmill import sbom


def document(version: str = "1.0+cu130", epoch: int = 315532800) -> dict[str, object]:
    subject = sbom._package("demo", version, "wheel")
    return sbom.bom(subject, [sbom._package("torch", "2.10.0", "headers")], epoch)


def test_it_is_valid() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document())) is None


def test_the_serial_number_names_the_content() -> None:
    assert document() == document()
    assert document()["serialNumber"] != document("1.1+cu130")["serialNumber"]


def test_the_only_clock_is_the_builds_epoch() -> None:
    assert document()["metadata"]["timestamp"] == "1980-01-01T00:00:00Z"


def test_a_local_version_is_quoted_in_its_purl() -> None:
    assert sbom._package("Demo_Ext", "1.0+cu130", "wheel")["purl"] == "pkg:pypi/demo-ext@1.0%2Bcu130"
