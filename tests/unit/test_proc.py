"""What a failed command's message quotes."""

from pathlib import Path

from wheelmill.proc import EXCERPT, ProcessError

NOISE = [f"[{n}/90] compiling something without errors" for n in range(80)]
CAUSE = ["FAILED: answer.o", "answer.cpp:1:30: error: 'x' was not declared in this scope", "  1 | int answer()"]


def test_the_excerpt_begins_at_the_compilers_complaint() -> None:
    output = "\n".join([*NOISE, *CAUSE, *(f"note {n}" for n in range(99)), "RuntimeError: Error compiling objects"])
    message = str(ProcessError(["/usr/bin/python", "-m", "build", "x"], 1, output, Path("build.log")))
    assert message.startswith("`python -m build …` ended with status 1:")
    assert message.splitlines()[1:4] == [f"    {line}" for line in CAUSE]
    assert len(message.splitlines()) == EXCERPT + 1


def test_without_a_complaint_the_excerpt_is_the_end() -> None:
    output = "\n".join(f"line {n}" for n in range(99))
    message = str(ProcessError(["tool"], 1, output, Path("build.log")))
    assert message.splitlines()[-1] == "    line 98"
