"""Who vouches for a wheel: each answer in words, and every way in which one can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pypi_attestations import Provenance

from wheelmill import attest, signing, sshsig
from wheelmill.errors import InputError, MissingError
from wheelmill.signing import Trust

RECORDED = Path(__file__).parents[1] / "golden" / "attestations"
WHEEL = "circleci_sign_publish_example-0.0.1.dev137-py3-none-any.whl"
WHEEL_SHA = "8cb34da1e27336f11a2c43f3f9c7433bd76f24f470c904724f06ad7f131d9e9f"
SDIST = "pypi_attestations-0.0.19.tar.gz"
SDIST_SHA = "9bb1add04b1b4e182be6b0b80931593f7a291eb49d69b4fd728a5d4cbcdc4bd3"
GITHUB = "github:trailofbits/pypi-attestations/release.yml"
FILE, SHA = "demo-1.0+cu130-py3-none-any.whl", "ab" * 32
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
PUBLIC = sshsig.PublicKey(KEY.public_key().public_bytes_raw())


def provenance(file: str) -> bytes:
    return (RECORDED / f"{file}.provenance").read_bytes()


def test_nobody_vouches() -> None:
    verdict = signing.verify(FILE, SHA, signature=None, provenance=None)
    assert (verdict.state, verdict.by, verdict.trusted, verdict.text) == ("unsigned", (), None, "not signed")


def test_a_key_vouches_for_a_name_and_its_bytes() -> None:
    signature = signing.sign(KEY, FILE, SHA)
    verdict = signing.verify(FILE, SHA, signature=signature, provenance=None)
    assert (verdict.state, verdict.by, verdict.trusted) == ("signed", (PUBLIC.fingerprint,), None)
    assert verdict.text.startswith(f"signed by key {PUBLIC.fingerprint}")
    for file, sha in ((FILE, "cd" * 32), (FILE.replace("cu130", "cu121"), SHA)):
        wrong = signing.verify(file, sha, signature=signature, provenance=None)
        assert wrong.state == "wrong"
        assert wrong.by == ()
        assert wrong.text.startswith("signature WRONG: ")


def test_a_signature_for_another_purpose_says_nothing_of_wheels() -> None:
    signature = sshsig.sign(KEY, signing.statement(FILE, SHA), "git")
    verdict = signing.verify(FILE, SHA, signature=signature, provenance=None)
    assert verdict.state == "wrong"
    assert "made for 'git'" in verdict.text


def test_trust_is_the_reader_s() -> None:
    signature = signing.sign(KEY, FILE, SHA)
    known = Trust(keys=frozenset({PUBLIC.fingerprint}))
    other = Trust(keys=frozenset({"SHA256:other"}))
    assert signing.verify(FILE, SHA, signature=signature, provenance=None, trust=known).trusted is True
    foreign = signing.verify(FILE, SHA, signature=signature, provenance=None, trust=other)
    assert (foreign.state, foreign.trusted) == ("signed", False)
    assert "nobody that you named" in foreign.text
    assert signing.verify(FILE, SHA, signature=None, provenance=None, trust=known).trusted is False


def test_a_recorded_attestation_is_verified_without_a_network() -> None:
    trust = Trust(identities=frozenset({"github:trailofbits/pypi-attestations"}))
    verdict = signing.verify(SDIST, SDIST_SHA, signature=None, provenance=provenance(SDIST), trust=trust)
    assert (verdict.state, verdict.by, verdict.trusted) == ("attested", (GITHUB,), True)
    assert verdict.text == f"attested by {GITHUB}"
    verdict = signing.verify(WHEEL, WHEEL_SHA, signature=None, provenance=provenance(WHEEL), trust=trust)
    assert (verdict.state, verdict.trusted) == ("attested", False)
    assert verdict.by[0].startswith("circleci:")


def test_both_must_hold_where_both_are_there() -> None:
    attested, signed = provenance(WHEEL), signing.sign(KEY, WHEEL, WHEEL_SHA)
    both = signing.verify(WHEEL, WHEEL_SHA, signature=signed, provenance=attested)
    assert (both.state, len(both.by)) == ("attested", 2)
    bad = signing.sign(KEY, WHEEL, SHA)
    assert signing.verify(WHEEL, WHEEL_SHA, signature=bad, provenance=attested).state == "wrong"


@pytest.mark.parametrize(
    ("file", "sha256", "change"),
    [
        (WHEEL, SHA, {}),
        (FILE, WHEEL_SHA, {}),
        (WHEEL, WHEEL_SHA, {"project_id": "another"}),
        (WHEEL, WHEEL_SHA, {"kind": "GitHub", "repository": "a/b", "workflow": "c.yml"}),
        ("no-wheel.txt", WHEEL_SHA, {}),
    ],
)
def test_an_attestation_of_other_bytes_name_or_publisher_is_wrong(
    file: str, sha256: str, change: dict[str, str]
) -> None:
    content = json.loads(provenance(WHEEL))
    content["attestation_bundles"][0]["publisher"].update(change)
    verdict = signing.verify(file, sha256, signature=None, provenance=json.dumps(content).encode())
    assert verdict.state == "wrong", verdict
    assert f"{file}.provenance does not hold: " in verdict.text


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"version":1,"attestation_bundles":[]}', b'{"version":2}']
)
def test_what_is_no_provenance_is_wrong_and_not_unsigned(content: bytes) -> None:
    assert signing.verify(WHEEL, WHEEL_SHA, signature=None, provenance=content).state == "wrong"


def test_a_changed_certificate_or_signature_is_wrong() -> None:
    for path in (("verification_material", "certificate"), ("envelope", "signature"), ("envelope", "statement")):
        content = json.loads(provenance(WHEEL))
        part = content["attestation_bundles"][0]["attestations"][0][path[0]]
        text = part[path[1]]
        part[path[1]] = text[:80] + ("A" if text[80] != "A" else "B") + text[81:]
        verdict = signing.verify(WHEEL, WHEEL_SHA, signature=None, provenance=json.dumps(content).encode())
        assert verdict.state == "wrong", path


def test_a_provenance_object_is_built_from_an_attestation_and_holds() -> None:
    recorded = Provenance.model_validate_json(provenance(SDIST))
    (bundle,) = recorded.attestation_bundles
    made = attest.provenance(bundle.attestations)
    assert Provenance.model_validate_json(made) == recorded
    assert attest.verify(made, SDIST, SDIST_SHA) == (GITHUB,)


def test_an_attestation_of_no_github_workflow_is_not_ours_to_wrap() -> None:
    recorded = Provenance.model_validate_json(provenance(WHEEL))
    with pytest.raises(InputError, match=r"oidc\.circleci\.com"):
        attest.provenance(recorded.attestation_bundles[0].attestations)


def test_trust_in_a_repository_ends_at_its_name() -> None:
    assert attest.matches(GITHUB, ["github:trailofbits/pypi-attestations"])
    assert attest.matches(GITHUB, ["github:trailofbits"])
    assert attest.matches(GITHUB, [GITHUB])
    assert not attest.matches(GITHUB, ["github:trailofbits/pypi"])
    assert not attest.matches(GITHUB, ["github"])
    assert not attest.matches(GITHUB, [])


def test_without_an_identity_nothing_is_attested(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "BUILDKITE", "ACTIONS_ID_TOKEN_REQUEST_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingError, match="no identity here"):
        attest.make([(FILE, SHA)])
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with pytest.raises(MissingError, match="may not ask for an identity") as told:
        attest.make([(FILE, SHA)])
    assert "id-token: write" in told.value.remedy
