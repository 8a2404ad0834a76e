"""What is hidden of a log, and what is left as it is."""

from __future__ import annotations

import pytest

from wheelmill.ci_secrets import Mask

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "TWINE_PASSWORD", "AWS_SECRET_ACCESS_KEY", "SSH_KEY", "npm_auth", "MY_PAT", "DB_PWD"]
)
def test_values_of_variables_named_like_secrets(name: str) -> None:
    assert Mask({name: "hunter2-hunter2"})("with hunter2-hunter2 in it") == "with *** in it"


def test_other_variables_and_short_values_are_left() -> None:
    mask = Mask(
        {
            "PATH": "/usr/bin",
            "PWD": "/usr/bin",
            "OLDPWD": "/usr/bin",
            "MONKEY": "banana-split",
            "KEYBOARD": "qwertyuiop",
            "TOKEN": "a",
        }
    )
    assert mask("a /usr/bin banana-split qwertyuiop") == "a /usr/bin banana-split qwertyuiop"


def test_a_secret_that_holds_another_and_one_of_many_lines() -> None:
    mask = Mask({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefgh", "A_KEY": "-----BEGIN-----\nline-of-key\n"})
    assert mask("abcdefgh line-of-key abcdef") == "*** *** ***"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (f"cloning with {TOKEN}", "cloning with ***"),
        ("github_pat_" + "x" * 30, "***"),
        ("pypi-AgEIcHlwaS5vcmcCJDg2" + "x" * 10, "***"),
        ("https://user:secret@host/simple", "https://***@host/simple"),
        ("https://user:s@cr/et@host/simple", "https://***@host/simple"),
        (f"https://{TOKEN}@github.com/o/r", "https://***@github.com/o/r"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("authorization: bearer abcdefgh", "authorization: bearer ***"),
        ("GET /f?X-Amz-Signature=0a1b2c&x=1", "GET /f?X-Amz-Signature=***&x=1"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
        ("token hf_" + "aB3d" * 8, "token ***"),
        ("npm_" + "aB3d" * 9, "***"),
    ],
)
def test_what_is_shaped_like_a_token(text: str, hidden: str) -> None:
    assert Mask({})(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "broken.cpp:1:23: error: 'undeclared_name' was not declared in this scope",
        "see https://docs.github.com/en/actions and mail me@example.org",
        "https://host/path?version=1",
        "https://host.example.org:8443/path@v1",
        "sha256:" + "0" * 64,
    ],
)
def test_ordinary_lines_are_left(text: str) -> None:
    assert Mask({})(text) == text
