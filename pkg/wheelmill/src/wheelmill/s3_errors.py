"""What a server of S3's API answers when it does not do what it is asked, in the user's terms and without a secret."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
UNSUPPORTED = {"NotImplemented", "501"}
CREDENTIALS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthFailure"}


class Refused(Exception):  # noqa: N818, an answer, not a fault
    """A condition of a request does not hold."""


class UnsupportedError(OSError):
    """The server does not know what was asked of it."""


def _code_of(error: BaseException) -> str:
    """The server's own name of an error, empty where it did not answer."""
    response = getattr(error.__cause__, "response", None) or getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


@contextlib.contextmanager
def told(url: str, path: str) -> Iterator[None]:
    """Raises FileNotFoundError, Refused, UnsupportedError, or MissingError that says what to do."""
    from botocore.exceptions import BotoCoreError

    try:
        yield
    except (OSError, BotoCoreError) as error:
        code = _code_of(error)
        if code in REFUSED or isinstance(error, FileExistsError):
            raise Refused(code) from None
        if isinstance(error, FileNotFoundError) and code != "NoSuchBucket":
            raise
        raise _meaning(error, code, url, path) from error


def _meaning(error: Exception, code: str, url: str, path: str) -> MissingError | OSError:
    name = type(error).__name__
    if code == "NoSuchBucket":
        return MissingError(f"there is no bucket for {url}", remedy="create it, or correct --to and --endpoint")
    if code in CREDENTIALS:
        return MissingError(
            f"the server at {url} does not take these credentials ({code})",
            remedy="see AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_PROFILE, and --endpoint",
        )
    if isinstance(error, PermissionError):
        return MissingError(
            f"these credentials may not do this: {path} at {url} ({code or 'forbidden'})",
            remedy="allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there",
        )
    if "Credentials" in name:
        return MissingError(
            f"there are no credentials for {url}",
            remedy="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the job a role",
        )
    if code in UNSUPPORTED:
        return UnsupportedError(code)
    # The address may hold a password where AWS_ENDPOINT_URL_S3 does.
    said = re.sub(r"//[^/\s]*@", "//", (str(error).splitlines() or [""])[0])
    return MissingError(
        f"{url} did not answer for {path}: {code or name}: {said}",
        remedy="see that --endpoint is right and reachable, and run the same command again: what was sent is kept",
    )
