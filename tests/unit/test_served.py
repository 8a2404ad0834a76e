"""Types and cache headers of each kind of file of an index."""

import pytest

from wheelmill.served import FOREVER, SHORT, headers, is_immutable


@pytest.mark.parametrize(
    ("path", "kind", "cache"),
    [
        ("index.html", "text/html; charset=utf-8", SHORT),
        ("simple/fusedops/index.json", "application/vnd.pypi.simple.v1+json", SHORT),
        ("cu130-torch2.11/index.json", "application/vnd.pypi.simple.v1+json", SHORT),
        ("simple/fusedops/fusedops-1.0-variants.json", "application/json", SHORT),
        ("files/a-1.0+cu130-py3-none-any.whl", "application/octet-stream", FOREVER),
        ("files/a-1.0+cu130-py3-none-any.whl.metadata", "text/plain; charset=utf-8", FOREVER),
        ("files/a-1.0-py3-none-any.whl.record.json", "application/json", SHORT),
        ("files/a-1.0-py3-none-any.whl.sig", "text/plain; charset=utf-8", SHORT),
        ("files/a-1.0-py3-none-any.whl.provenance", "application/json", SHORT),
        ("wheels/a-1.0-py3-none-any.whl.html", "text/html; charset=utf-8", SHORT),
        ("data/site.js", "text/javascript; charset=utf-8", SHORT),
        ("data/site.css", "text/css; charset=utf-8", SHORT),
        ("data/plot.svg", "image/svg+xml", SHORT),
        ("unknown", "application/octet-stream", SHORT),
    ],
)
def test_each_file_has_its_type_and_age(path: str, kind: str, cache: str) -> None:
    said = headers(path)
    assert (said.content_type, said.cache_control) == (kind, cache)


def test_only_wheels_and_their_metadata_never_change() -> None:
    assert not is_immutable("wheels/a.whl")
    assert not is_immutable("files/a.whl.record.json")
