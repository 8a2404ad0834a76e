"""Who vouches for a wheel of an index, by what the index keeps beside it; the wheel itself is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import signing
from wheelmill.entries import SIGNATURE
from wheelmill.errors import GateError

if TYPE_CHECKING:
    from wheelmill.signing import Trust
    from wheelmill.web import Web
    from wheelmill.which_candidate import Candidate

LIMIT = 1 << 20
KEY = "SHA256:"


def verified(candidate: Candidate, session: Web, trust: Trust) -> str:
    """Who vouches for it, in a sentence.

    Raises GateError for a signature that does not hold, or where nobody of those whom the reader trusts vouches for
    it; MissingError where a signature that the index names cannot be had.
    """
    link = candidate.link
    by_key = candidate.record is not None and any(one.startswith(KEY) for one in candidate.record.vouched)
    signature = session.get(link.url.partition("#")[0] + SIGNATURE, limit=LIMIT).body if by_key else None
    provenance = session.get(link.provenance, limit=LIMIT).body if link.provenance else None
    if link.sha256 is None and (signature or provenance):
        raise GateError(
            f"the index states no SHA-256 of {link.file}, so no signature can be held against it",
            remedy="download it and ask `wheelmill key verify`",
        )
    said = signing.verify(link.file, link.sha256 or "", signature=signature, provenance=provenance, trust=trust)
    if said.state == "wrong" or said.trusted is False:
        raise GateError(
            f"{link.file}: {said.text}" if said.state == "wrong" else f"nobody you trust vouches for {link.file}",
            remedy="do not install it; ask its maintainers whom to trust, and whether the index is theirs",
        )
    return said.text
