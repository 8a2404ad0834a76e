"""Hides what must not be published: values of variables named like secrets, and what is shaped like a token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = "***"
SHORTEST = 6  # what is shorter would mask parts of ordinary words
SECRET = re.compile(
    r"token|secret|passw|passphrase|credential|private|apikey|(^|_)(key|auth|pat|pwd|cookie)(_|$)", re.IGNORECASE
)
NOT_SECRET = frozenset({"PWD", "OLDPWD"})  # folders
SHAPES = (
    # a user and password within an address, up to the last @, for a password may hold one or a slash; a host and its
    # port have none
    (re.compile(r"(?<=://)(?!(?:[\w-]+\.[\w.-]+|localhost):\d{1,5}/)[^\s/@:]*:[^\s\"'<>]*(?=@)"), MASK),
    # a token within an address
    (re.compile(r"(?<=://)[^\s/@]+(?=@)"), MASK),
    # GitHub, GitLab, PyPI, AWS, Slack
    (re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})"), MASK),
    (re.compile(r"\b(pypi-[\w-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[abprs]-[\w-]{10,})"), MASK),
    # Hugging Face, npm, Docker Hub, Google, OpenAI and its like
    (
        re.compile(r"\b(hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|dckr_pat_[\w-]{10,}|AIza[\w-]{30,}|sk-[\w-]{20,})"),
        MASK,
    ),
    # a JSON web token
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
    (re.compile(r"(?i)(authorization:\s*\w+\s+|\bbearer\s+)\S{6,}"), rf"\1{MASK}"),
    # a query's parameter
    (re.compile(r"(?i)([?&](?:[\w-]*(?:token|signature|secret|password|key)[\w-]*|sig)=)[^\s&]+"), rf"\1{MASK}"),
    # headers, and a key within a line
    (re.compile(r"(?i)(\b(?:set-)?cookie:\s*)\S[^\n]{5,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)(\bx-[\w-]*(?:key|token|secret):\s*)\S{6,}"), rf"\1{MASK}"),
    (re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^\n]+"), rf"\1{MASK}"),
)


class Mask:
    """Masks a text. `environment` is where secrets are given, by variables that are named like them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        found = {
            line.strip()
            for name, value in environment.items()
            if SECRET.search(name) and name not in NOT_SECRET
            for line in value.splitlines()
        }
        values = sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(MASK, text)
        for shape, put in SHAPES:
            text = shape.sub(put, text)
        return text
