"""Hides secrets in what is quoted: what ci_secrets knows, and what stands where a command or a setting has a secret."""

from __future__ import annotations

import os
import re

from wheelmill.ci_secrets import MASK, Mask

_WORDS = r"(?:passw(?:or)?d|passphrase|secret|credential|api[-_]?key|(?:private|access|account|license)[-_]?key)"
_VALUE = r"(?!\*\*\*)[^\s\"',;]"
# Each keeps its first group and hides what follows it.
PLACES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # NAME=value; tokens of a text, which are counted, are none
        rf"((?<![a-z])[\w.-]*(?:{_WORDS}|token(?!s\b|i[sz])|[\w]_pwd|\bauth)[\w.-]*[\"']?\s?=\s?[\"']?){_VALUE}{{4,}}",
        # "name": "value", and name: value
        rf"([\"'][\w.-]*(?:{_WORDS}|token(?!s\b|i[sz]))[\w.-]*[\"']\s?:\s?[\"']){_VALUE}{{4,}}",
        rf"((?<![a-z])[\w.-]*{_WORDS}[\w.-]*\s?:\s){_VALUE}{{6,}}",
        rf"((?<!expected )\b[\w.-]*token:\s)(?=\S*\d){_VALUE}{{12,}}",
        # --option value, and what a file of passwords has
        rf"((?:^|\s)--?[\w-]*(?:{_WORDS}|token)\s+)(?!-){_VALUE}+",
        rf"(\blogin\s+\S+\s+password\s+){_VALUE}+",
        rf"(\b(?:{_WORDS}|token)\s)(?=\S*\d)(?!\*\*\*)[\w+=.-]{{16,}}",
        # programs whose short options take one
        rf"(\b(?:twine|sshpass|mysql\w*|(?:docker|podman|helm|az|oras)\b[^|;&\n]{{0,40}}\blogin)\b[^|;&\n]{{0,200}}?\s-p\s?){_VALUE}+",
        rf"(\b(?:curl|wget|http)\b[^|;&\n]{{0,200}}?\s(?:-u|--user)\s?[\"']?[^\s:]+:){_VALUE}+",
    )
)


class Masking:
    """Masks a line. What the environment names a secret is hidden as well."""

    def __init__(self) -> None:
        self._mask = Mask(os.environ)

    def __call__(self, text: str) -> str:
        text = self._mask(text)
        for place in PLACES:
            text = place.sub(rf"\1{MASK}", text)
        return text
