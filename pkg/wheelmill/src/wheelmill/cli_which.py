"""`wheelmill which`: the right wheel for an environment, and why not each other one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheelmill import (
    facts,
    signing,
    which,
    which_advice,
    which_command,
    which_facts,
    which_index,
    which_read,
    which_verify,
    which_view,
)
from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.findings import printable
from wheelmill.store import write_atomic
from wheelmill.web import Web
from wheelmill.which_env import Environment

if TYPE_CHECKING:
    from wheelmill.facts import Facts
    from wheelmill.which import Answer, Wanted
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_index import Source

DEEP = 256


@click.command("which")
@click.argument("name")
@click.option("--index", "where", required=True, help="An index, a find-links page, or a folder of wheels.")
@click.option("--python", "program", help="The interpreter to ask. Default: the active environment's, else PATH's.")
@click.option("--collect-env", "text", help="Take the environment from this file of collect_env's output; - is stdin.")
@click.option("--bare", is_flag=True, help="Ask no interpreter: what flags do not state is unknown.")
@click.option("--python-version", help="Such as 3.12, 3.12.4 or 3.13t.")
@click.option("--implementation", help="Such as cpython or pypy.")
@click.option("--abi", help="Python's ABI tag, such as cp313t.")
@click.option("--platform", help="A platform tag, such as manylinux_2_28_x86_64, linux_aarch64 or win_amd64.")
@click.option("--glibc", help="Such as 2.31.")
@click.option("--torch", help="Such as 2.11.0+cu130, or none.")
@click.option("--cuda", help="The CUDA of that torch: 12.4, cu124, cpu or rocm.")
@click.option("--cxx11-abi/--no-cxx11-abi", default=None, help="The C++11 ABI of that torch.")
@click.option("--driver", help="The driver's version, such as 550.54, or none.")
@click.option("--driver-cuda", help="The newest CUDA that the driver serves, as nvidia-smi says it.")
@click.option("--gpu", "gpus", multiple=True, help="A compute capability such as 9.0, or none. Repeatable.")
@click.option("--pre", is_flag=True, help="Take pre-releases.")
@click.option("--strict", is_flag=True, help="Take no wheel of which something that decides is unknown.")
@click.option("--deep", is_flag=True, help="Read wheels' libraries where no record says what they hold.")
@click.option("--deep-limit", type=click.IntRange(1, 1 << 14), default=DEEP, show_default=True, help="MiB of them.")
@click.option("--verify", is_flag=True, help="Check who signed the choice.")
@click.option("--key", "trusted_keys", multiple=True, help="Verify, and trust this key: a .pub file or SHA256:….")
@click.option("--identity", "identities", multiple=True, help="Verify, and trust this identity: github:owner/repo.")
@click.option("--require-hashes", "pins", type=click.Path(path_type=Path, dir_okay=False), help="Write the pin there.")
@click.option("--all", "every", is_flag=True, help="Show the reasons of each candidate.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def which_(*, name: str, where: str, **options: Any) -> None:
    """The wheel of NAME that works in an environment, how to install it, and why not each other one.

    NAME may carry a version, as 'flash-attn>=2.7'. The status is 0 where there is a wheel, 1 where none fits.
    """
    wanted = _wanted(name, pre=options["pre"], strict=options["strict"])
    trust = signing.trust(options["trusted_keys"], options["identities"])
    env = _environment(**options)
    known, session = facts.load(), Web()
    source = which_index.find(where, wanted.project, session)
    limit = options["deep_limit"] << 20 if options["deep"] else 0
    answer = _answer(env, source, known, wanted, session, limit)
    advice = which_advice.advise(answer, known)
    choice = answer.choice
    told = (
        which_verify.verified(choice.candidate, session, trust)
        if choice and (options["verify"] or trust.named)
        else None
    )
    pinned = _pin(answer, source, options["pins"])
    if options["as_json"]:
        click.echo(json.dumps(which_view.to_json(answer, source, known, advice, told), indent=1))
    else:
        for line in (*which_view.text(answer, source, known, advice, every=options["every"], verified=told), *pinned):
            click.echo(line)
    if choice is None:
        nearest = f"; the nearest is {answer.judged[0].candidate.file}" if answer.judged else ""
        helps = "; or ".join(one.command or one.change for one in advice)
        only = " (the index has source archives of it alone)" if source.listing.sdists and not answer.judged else ""
        raise GateError(
            printable(f"no wheel of {wanted.project} fits this environment{nearest}{only}"),
            remedy=printable(helps) or "`--all` shows the reasons of each; ask the project for a wheel",
        )


def _wanted(name: str, *, pre: bool, strict: bool) -> Wanted:
    remedy = "write fusedops, or 'fusedops>=1.0'"
    try:
        requirement = Requirement(name)
    except InvalidRequirement as error:
        raise InputError(f"{name[:200]!r} is no name of a project: {error}", remedy=remedy) from error
    if requirement.url or requirement.marker or requirement.extras:
        raise InputError(f"{name[:200]!r} has more than a name and a version", remedy=remedy)
    return which.Wanted(
        project=canonicalize_name(requirement.name), specifier=requirement.specifier, pre=pre, strict=strict
    )


def _environment(*, program: str | None, text: str | None, bare: bool, **options: Any) -> Environment:
    if sum((program is not None, text is not None, bare)) > 1:
        raise InputError("--python, --collect-env and --bare exclude one another", remedy="give one of them")
    stated = which_read.Stated(
        python=options["python_version"],
        **{
            name: options[name] for name in ("abi", "implementation", "platform", "glibc", "torch", "cuda", "cxx11_abi")
        },
        **{name: options[name] for name in ("driver", "driver_cuda", "gpus")},
    )
    if text is not None:
        return which_read.override(which_read.text(text), stated)
    if bare:
        return which_read.override(Environment(), stated)
    asked = which_read.interpreter(program)
    try:
        env = which_read.ask(asked)
    except MissingError as error:
        error.remedy += ", or state the environment with flags"
        raise
    # A verb that is called by its path asks the shell's Python, which need not be its own.
    notes = env.notes if program else (*env.notes, f"asked of {asked}; --python names another")
    return which_read.override(env.model_copy(update={"notes": notes}), stated)


def _answer(env: Environment, source: Source, known: Facts, wanted: Wanted, session: Web, deep: int) -> Answer:
    """Judged by name first, so that only what may fit is read; then by all that was read."""
    candidates = [which_facts.named(link) for link in source.listing.links]

    def fits(candidate: Candidate) -> bool:
        against = which.judge(env, candidate, known, wanted).against
        return {reason.rule for reason in against} <= which_advice.LIFTABLE

    read = which_facts.read(candidates, session, wanted=fits, deep=deep)
    answer = which.decide(env, read, known, wanted)
    if answer.choice is not None:
        return which.decide(env, which_facts.hashed(read, answer.choice.candidate), known, wanted)
    # What another Python would take is worth reading only where this one takes nothing.
    lifted = {one.file for one in which_advice.liftable(answer.judged, which_advice.PYTHON)}
    read = which_facts.read(read, session, wanted=lambda one: one.file in lifted, deep=0)
    return which.decide(env, read, known, wanted)


def _pin(answer: Answer, source: Source, path: Path | None) -> tuple[str, ...]:
    """Write the choice's pin and name the command that takes it."""
    if path is None or answer.choice is None:
        return ()
    text = which_command.requirements(answer, source)
    if text is None:
        raise InputError("no hash of the choice is known: the index states none", remedy="leave --require-hashes out")
    write_atomic(path, text)
    return (f"  {which_command.hashed(str(path))}",)
