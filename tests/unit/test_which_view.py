"""Answers as text, as commands, and of many or hostile candidates."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from pydantic import ValidationError

from wheelmill import facts, which, which_advice, which_command, which_facts, which_links, which_view
from wheelmill.records import Library, Record
from wheelmill.which_candidate import Link
from wheelmill.which_env import Torch
from wheelmill.which_index import Source

from .test_which_read import READ

KNOWN = facts.load()
WANTED = which.Wanted(project="demo")


def source(links: list[Link], kind: Any = "simple", url: str = "https://index.example/simple/", **more: Any) -> Source:
    return Source(kind=kind, url=url, listing=which_links.Listing(links=tuple(links)), **more)


def link(file: str, **more: Any) -> Link:
    return Link(file=file, url=f"https://index.example/files/{file.replace('+', '%2B')}", **more)


def decided(links: list[Link]) -> which.Answer:
    return which.decide(READ, [which_facts.named(one) for one in links], KNOWN, WANTED)


def test_five_hundred_candidates_fit_on_a_screen() -> None:
    names = [
        f"demo-1.{release}+cu12torch2.{minor}-cp3{python}-cp3{python}-{system}.whl"
        for release in range(5)
        for minor in range(3, 8)
        for python in range(9, 14)
        for system in ("linux_x86_64", "win_amd64", "manylinux_2_28_aarch64", "macosx_11_0_arm64")
    ]
    links = [link(name) for name in names]
    started = time.process_time()
    answer = decided(links)
    lines = list(which_view.text(answer, source(links), KNOWN, (), every=False, verified=None))
    assert time.process_time() - started < 10
    assert len(answer.judged) == 500
    assert answer.choice is not None
    assert answer.choice.candidate.file == "demo-1.4+cu12torch2.6-cp312-cp312-linux_x86_64.whl"
    assert len(lines) < 60
    assert sum("for another Python" in line for line in lines) == 1
    every = list(which_view.text(answer, source(links), KNOWN, (), every=True, verified=None))
    assert all(any(name in line for line in every) for name in names)


def test_commands_quote_what_a_stranger_wrote() -> None:
    links = [link("demo-1.0+cu124-py3-none-any.whl")]
    evil = source(links, "links", "https://index.example/x?$(touch y);'z'&#x")
    command = which_command.pip(decided(links), evil)
    assert command is not None
    assert shlex.split(command) == ["pip", "install", "demo==1.0+cu124", "--find-links", evil.url]
    assert which_command.uv(decided(links), evil) == f"uv {command}"


def test_pypi_needs_no_option_and_a_version_that_others_may_have_is_named_by_its_file() -> None:
    links = [link("demo-1.0-py3-none-any.whl", sha256="0" * 64)]
    answer = decided(links)
    assert which_command.pip(answer, source(links, url="https://pypi.org/simple/")) == "pip install demo==1.0"
    direct = "demo @ https://index.example/files/demo-1.0-py3-none-any.whl#sha256=" + "0" * 64
    assert shlex.split(which_command.pip(answer, source(links)) or "")[2] == direct
    assert which_command.requirements(answer, source(links)) == direct + "\n"


def test_a_version_of_our_site_that_pypi_may_have_too_is_named_by_its_file() -> None:
    """Beside --find-links pip asks PyPI, whose file of that version may be another."""
    links = [link("demo-1.0-py3-none-any.whl", sha256="0" * 64, environments=("cu124-torch2.6",))]
    command = which_command.pip(decided(links), source(links, site="https://index.example/")) or ""
    assert "demo @ https://index.example/files/demo-1.0-py3-none-any.whl#sha256=" in command


def test_nothing_is_measured_beside_a_nightly() -> None:
    links = [link("demo-1.0+cu124-py3-none-any.whl", environments=("cu124-torch2.6",))]
    torch = Torch(version="2.6.0.dev20250101+cu124", cuda="12.4", origin="pytorch")
    env = READ.model_copy(update={"torch": torch})
    for asked, measured in ((READ, True), (env, False)):
        answer = which.decide(asked, [which_facts.named(one) for one in links], KNOWN, WANTED)
        assert which_view.to_json(answer, source(links), KNOWN, ())["measured"] is measured


def test_no_advice_rests_on_a_wheel_of_which_nothing_was_read() -> None:
    """A stranger's wheel for another Python may require any torch."""
    unread = which_facts.named(link("demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"))
    read = replace(unread, metadata=True, unread={}, claim=replace(unread.claim, torch=SpecifierSet("==2.6.*")))
    for candidate, changes in ((unread, []), (read, ["Python 3.11"])):
        answer = which.decide(READ, [candidate], KNOWN, WANTED)
        advice = [one.change for one in which_advice.advise(answer, KNOWN) if one.file]
        assert advice == changes


def test_the_nearest_is_of_the_asked_versions_and_not_yanked() -> None:
    links = [link("demo-1.0+cu12torch2.5-cp312-cp312-linux_x86_64.whl")]
    links += [link("demo-2.0-py3-none-any.whl"), link("demo-1.0-py3-none-any.whl", yanked="broken")]
    wanted = which.Wanted(project="demo", specifier=SpecifierSet("<2"))
    answer = which.decide(READ, [which_facts.named(one) for one in links], KNOWN, wanted)
    assert answer.choice is None
    assert answer.judged[0].candidate.file == links[0].file


def test_our_site_is_named_by_the_page_of_the_environment() -> None:
    links = [
        link("demo-1.0+cu124-py3-none-any.whl", sha256="0" * 64, environments=("cu121-torch2.5", "cu124-torch2.6"))
    ]
    ours = source(links, site="https://index.example/")
    assert (which_command.pip(decided(links), ours) or "").endswith("https://index.example/cu124-torch2.6.html")
    other = [link("demo-1.0+cu124-py3-none-any.whl", environments=("cu121-torch2.5",))]
    assert (which_command.pip(decided(other), ours) or "").endswith("https://index.example/cu121-torch2.5.html")
    assert which_command.requirements(decided(other), ours) is None
    pinned = which_command.requirements(decided(links), ours) or ""
    assert f"demo==1.0+cu124 --hash=sha256:{'0' * 64}" in pinned


def test_the_file_that_pip_ranks_first_among_equals() -> None:
    names = [
        "demo-1.0-py3-none-any.whl",
        "demo-1.0-cp38-abi3-linux_x86_64.whl",
        "demo-1.0-cp312-cp312-linux_x86_64.whl",
    ]
    names += ["demo-1.0-cp312-cp312-manylinux_2_17_x86_64.whl", "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"]
    answer = decided([link(name) for name in names])
    assert answer.choice is not None
    assert answer.choice.candidate.file == names[-1]


def test_a_file_that_pip_would_overlook_is_named_itself() -> None:
    """The closest file of that version was built for another CUDA: by name and version pip would take it."""
    links = [link("demo-1.0-py3-none-any.whl"), link("demo-1.0-cp312-cp312-linux_x86_64.whl")]
    close, plain = (which_facts.named(one) for one in reversed(links))
    closer = replace(close, libraries={"_C.so": Library(needed=("libcudart.so.13",), torch_abi="unstable")})
    closer = replace(closer, claim=replace(closer.claim, torch=SpecifierSet("==2.6.*")))
    answer = which.decide(READ, [closer, plain], KNOWN, WANTED)
    assert answer.choice is not None
    assert answer.choice.candidate is plain
    assert "demo @ https://" in (which_command.pip(answer, source(links, url="https://pypi.org/simple/")) or "")


WORDS = st.text(max_size=12) | st.sampled_from(["cu130", "cu", "2.10.0", "2", "libcudart.so.13", "90", "cpu"])
RECORDS = st.fixed_dictionaries(
    {
        "file": st.just("demo-1.0+cu124-py3-none-manylinux_2_28_x86_64.whl"),
        "sha256": st.just("0" * 64),
        "size": st.just(1),
        "project": WORDS,
        "release": WORDS,
        "environments": st.lists(st.sampled_from(["cu124-torch2.6", "cpu-torch2.11", "cu9-torch0.0"]), max_size=3),
        "build": st.fixed_dictionaries(
            {"wheel": WORDS, "engine": WORDS, "executor": WORDS, "built": WORDS, "cuda": WORDS, "torch": WORDS}
        ),
        "audit": st.fixed_dictionaries(
            {
                "verdict": st.just("pass"),
                "libraries": st.dictionaries(
                    WORDS,
                    st.fixed_dictionaries(
                        {
                            "sass": st.lists(st.sampled_from(["80", "90a", "9", "1000000"]), max_size=3),
                            "ptx": st.lists(st.sampled_from(["80", "90"]), max_size=2),
                            "needed": st.lists(WORDS, max_size=3),
                            "glibc": WORDS,
                            "torch_abi": st.sampled_from(["stable", "unstable", "none"]),
                            "min_torch": WORDS,
                        }
                    ),
                    max_size=3,
                ),
            }
        ),
        "yanked": st.none() | WORDS,
    }
)


@settings(deadline=None, max_examples=120)
@given(RECORDS)
def test_any_record_is_judged(data: dict[str, Any]) -> None:
    try:
        record = Record.model_validate(data)
    except ValidationError:
        return
    candidate = which_facts.with_record(which_facts.named(link(data["file"])), record)
    answer = which.decide(READ, [candidate], KNOWN, WANTED)
    advice = which_advice.advise(answer, KNOWN)
    lines = which_view.text(answer, source([candidate.link]), KNOWN, advice, every=True, verified=None)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("requires", ["~=3.10", "nonsense", ">=3.13"])
def test_requires_python_of_the_index(requires: str) -> None:
    answer = decided([link("demo-1.0-py3-none-any.whl", requires_python=requires)])
    assert (answer.choice is None) == (requires == ">=3.13")
