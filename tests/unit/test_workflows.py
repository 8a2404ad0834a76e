"""What must hold of the workflows whatever else changes in them: pins, permissions, forks, shell, and real commands."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pytest
import yaml
from click.testing import CliRunner

from wheelmill.__main__ import VERBS, cli

if TYPE_CHECKING:
    from collections.abc import Iterator

# Read before a test may open no socket: some of what they import makes classes of it.
for _verb in VERBS:
    import_module(f"wheelmill.{VERBS[_verb]}")

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path for path in sorted(GITHUB.glob("workflows/*.yml"))}
ACTION = GITHUB / "actions" / "setup" / "action.yml"
FILES = [*WORKFLOWS.values(), ACTION]
OWN = ("./", "wheelmill/wheelmill/")
HOSTED = "ubuntu-24.04"
NOT_A_FORK = "(github.event.pull_request == null || github.event.pull_request.head.repo.full_name == github.repository)"
# What may be written, and where: anything else is a mistake, or is to be added here on purpose.
WRITES = {
    ("parts", "next"): {"actions"},
    ("refresh", "propose"): {"contents", "pull-requests"},
    ("release", "attest"): {"id-token", "attestations"},
    ("release", "release"): {"contents"},
    ("release", "pages"): {"pages", "id-token"},
}


class Job(NamedTuple):
    workflow: str
    name: str
    body: dict[str, Any]


def load(path: Path) -> dict[Any, Any]:
    """`on:` is YAML 1.1's true."""
    return load_text(path.read_text(encoding="utf-8"))


def load_text(text: str) -> dict[Any, Any]:
    whole: dict[Any, Any] = yaml.safe_load(text)
    return whole


JOBS = [Job(stem, name, body) for stem, path in WORKFLOWS.items() for name, body in load(path)["jobs"].items()]
each_job = pytest.mark.parametrize("job", JOBS, ids=[f"{job.workflow}-{job.name}" for job in JOBS])
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for job in JOBS:
        yield from ((f"{job.workflow}.{job.name}", step) for step in job.body.get("steps", []))
    yield from (("setup", step) for step in load(ACTION)["runs"]["steps"])


RUNS = [(where, step["run"], step.get("env", {})) for where, step in steps() if "run" in step]


GUIDE = (ROOT / "docs" / "github-actions.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_there_is_what_is_checked() -> None:
    assert {"ci", "wheels", "release", "refresh", "parts"} == set(WORKFLOWS)
    assert len(RUNS) > 10


def test_an_action_is_pinned_by_one_commit_with_its_version() -> None:
    pins: dict[str, set[str]] = {}
    for text in [GUIDE, *(path.read_text(encoding="utf-8") for path in FILES)]:
        for line in re.findall(r"^[ -]*uses: *(.+)", text, re.MULTILINE):
            if line.startswith(OWN):
                continue
            pin = re.fullmatch(r"([\w.-]+/[\w.-]+)[\w./-]*(@[0-9a-f]{40} # v\d+\.\d+\.\d+)", line)
            assert pin, line
            pins.setdefault(pin[1], set()).add(pin[2])
    assert len(pins) > 5
    assert [action for action, found in pins.items() if len(found) > 1] == []


@pytest.mark.parametrize(("where", "script", "env"), RUNS, ids=[where for where, *_ in RUNS])
def test_no_expression_is_in_a_shell_line(where: str, script: str, env: dict[str, str]) -> None:
    assert "${{" not in script, where


@each_workflow
def test_nothing_is_permitted_that_no_job_asks_for(name: str) -> None:
    assert load(WORKFLOWS[name])["permissions"] == {}


@each_workflow
def test_a_newer_run_is_told_from_an_older_one(name: str) -> None:
    assert "concurrency" in load(WORKFLOWS[name])


@each_workflow
def test_no_workflow_runs_a_fork_with_this_repositorys_rights(name: str) -> None:
    assert not {"pull_request_target", "workflow_run", "issue_comment"} & set(load(WORKFLOWS[name])[True])


@each_job
def test_a_job_states_its_permissions_and_its_time(job: Job) -> None:
    permissions = job.body["permissions"]
    assert set(permissions.values()) <= {"read", "write"}
    written = {name for name, level in permissions.items() if level == "write"}
    assert written == WRITES.get((job.workflow, job.name), set())
    if "uses" not in job.body:
        assert job.body["timeout-minutes"]


@each_job
def test_a_checkout_leaves_no_token_behind(job: Job) -> None:
    for step in job.body.get("steps", []):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@each_job
def test_a_fork_reaches_no_runner_but_githubs(job: Job) -> None:
    where = job.body.get("runs-on", HOSTED)
    if where == "${{ needs.plan.outputs.runner }}":
        plan = load(WORKFLOWS[job.workflow])["jobs"]["plan"]
        assert plan["outputs"]["runner"] == f"${{{{ {NOT_A_FORK} && inputs.runner || '{HOSTED}' }}}}"
    elif where != HOSTED:
        assert f"&& {NOT_A_FORK} }}}}" in " ".join(job.body["if"].split())
        assert "||" not in job.body["if"].replace(NOT_A_FORK, "")


@each_job
def test_a_secret_is_in_the_protected_environment_alone_and_not_in_a_pull_request(job: Job) -> None:
    if "secrets." in yaml.safe_dump(job.body):
        assert job.body["environment"] == "publish"
        assert "&& github.event.pull_request == null &&" in job.body["if"]


def artifacts() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(workflow, action, inputs) of each step that takes or gives an artifact."""
    for job in JOBS:
        for step in job.body.get("steps", []):
            action = re.match(r"actions/(up|down)load-artifact@", step.get("uses", ""))
            if action:
                yield job.workflow, action[1], step["with"]


def test_an_artifact_is_of_one_plan_of_the_run() -> None:
    """One run may call the workflow for several matrices, whose wheels and reports have the same names."""
    named = [given.get("name") or given["pattern"] for stem, _, given in artifacts() if stem in {"wheels", "release"}]
    assert len(named) > 15
    for name in named:
        assert re.match(
            r"[\w{},-]+-\$\{\{ (needs\.plan\.outputs|needs\.wheels\.outputs|steps\.ci\.outputs)\.set \}\}", name
        ), name


def test_reports_of_several_gpus_are_not_merged_by_name() -> None:
    proofs = [given for _, way, given in artifacts() if way == "down" and given.get("pattern", "").startswith("proof")]
    assert [one.get("merge-multiple", False) for one in proofs] == [False]


def test_an_attempt_deploys_its_own_artifact() -> None:
    """A run keeps the artifacts of its earlier attempts, and a deployment refuses two of one name."""
    jobs = load(WORKFLOWS["release"])["jobs"]
    (kept,) = (step for step in jobs["site"]["steps"] if "upload-pages-artifact@" in step.get("uses", ""))
    (taken,) = (step for step in jobs["pages"]["steps"] if "deploy-pages@" in step.get("uses", ""))
    assert kept["with"]["name"] == jobs["site"]["outputs"]["artifact"]
    assert taken["with"]["artifact_name"] == "${{ needs.site.outputs.artifact }}"
    assert "$GITHUB_RUN_ATTEMPT" in next(step["run"] for step in jobs["site"]["steps"] if step.get("id") == "named")


def test_a_cancelled_run_reaches_the_stage_itself() -> None:
    """The runner signals the step's first process, which is a shell where nothing takes its place."""
    stages = [line.strip() for _, script, _ in RUNS for line in script.splitlines() if "wheelmill ci run" in line]
    assert len(stages) == 5
    assert all(line.startswith("exec wheelmill ci run ") for line in stages)


def test_submodules_are_where_sources_are_read() -> None:
    jobs = load(WORKFLOWS["wheels"])["jobs"]
    for name in ("plan", "build"):
        assert jobs[name]["steps"][0]["with"]["submodules"] == "${{ inputs.submodules || 'recursive' }}"


def test_publishing_demands_every_stage() -> None:
    publish = load(WORKFLOWS["wheels"])["jobs"]["publish"]
    condition = " ".join(publish["if"].split())
    for stage in ("build", "audit", "cover", "index", "report"):
        assert f"needs.{stage}.result == 'success' &&" in condition
    assert condition.endswith("(needs.gpu.result == 'success' || needs.plan.outputs.gpus == '0') }}")


def test_what_a_called_workflow_may_is_what_the_ten_lines_grant() -> None:
    """GitHub refuses a caller whose grant is less than any job of the called workflow states, even a skipped one."""
    for body in load(WORKFLOWS["wheels"])["jobs"].values():
        assert body["permissions"] == {"contents": "read"}


def test_a_caller_names_only_inputs_that_there_are() -> None:
    for job in JOBS:
        if job.body.get("uses", "").endswith("/wheels.yml"):
            there = load(WORKFLOWS["wheels"])[True]["workflow_call"]["inputs"]
            assert set(job.body["with"]) <= set(there)


def test_a_manual_run_has_the_inputs_of_a_call() -> None:
    on = load(WORKFLOWS["wheels"])[True]
    called, manual = on["workflow_call"]["inputs"], on["workflow_dispatch"]["inputs"]
    assert set(manual) <= set(called)
    assert len(manual) <= 10


def test_the_guide_calls_the_workflows_with_what_they_take() -> None:
    called = [load_text(text)["jobs"] for kind, text in BLOCKS if kind == "yaml" and "\njobs:" in text]
    assert len(called) > 3
    for jobs in called:
        for body in jobs.values():
            name = re.fullmatch(r"wheelmill/wheelmill/\.github/workflows/(\w+)\.yml@v1", body["uses"])
            assert name
            there = load(WORKFLOWS[name[1]])
            assert set(body.get("with", {})) <= set(there[True]["workflow_call"]["inputs"])
            assert granted(body["permissions"], [one["permissions"] for one in there["jobs"].values()]) == []


def granted(given: dict[str, str], asked: list[dict[str, str]]) -> list[str]:
    """What is asked for and not given."""
    return [
        f"{name}: {level}" for one in asked for name, level in one.items() if given.get(name) not in (level, "write")
    ]


def test_the_template_is_what_the_guide_shows() -> None:
    template = ROOT / "pkg" / "wheelmill" / "src" / "wheelmill" / "templates" / "wheels.yml"
    assert template.read_text(encoding="utf-8") in [text for kind, text in BLOCKS if kind == "yaml"]


def sessions() -> set[str]:
    return set(re.findall(r"^def (\w+)\(session:", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE))


def test_ci_runs_the_sessions_of_the_script_for_one_machine() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    local = {word for line in re.findall(r"nox -s ([\w ]+)", script) for word in line.split()}
    local -= {"images"}  # which sessions that run side by side would else both make
    matrix = load(WORKFLOWS["ci"])["jobs"]["check"]["strategy"]["matrix"]["include"]
    assert {row["session"] for row in matrix} == local
    assert local <= sessions()


def test_the_other_workflows_name_sessions_that_there_are() -> None:
    named = {word for _, script, _ in RUNS for word in re.findall(r"nox -s (\w+)", script)}
    assert named
    assert named <= sessions()


# What a variable may hold, where any word will not do.
VALUES = {"SCOPE": "change", "PART": "2", "EXECUTOR": "docker", "GPU": '["9.0"]', "OPTIONS": "--json", "ID": "a.sm_90"}
ARRAY = re.compile(r"^\s*(?:if .*; then )?(\w+)\+?=\((.*?)\)", re.MULTILINE)
VERB_OF = {"build": "build", "audit": "audit", "cover": "cover", "gpu": "test"}


def commands(script: str) -> Iterator[list[str]]:
    """The arguments of each call of wheelmill, arrays and variables filled in."""
    joined = script.replace("\\\n", " ")
    arrays: dict[str, list[str]] = {}
    for name, words in ARRAY.findall(joined):
        arrays.setdefault(name, []).extend(shlex.split(words))
    for raw in joined.splitlines():
        line = re.sub(r"nox -s (plan|refresh) -- ", r"wheelmill \1 ", raw)  # these sessions are their verbs
        line = re.sub(r"^(\s*)exec (wheelmill )", r"\1\2", line)
        if re.match(r"\s*wheelmill ", line):
            yield [word for one in shlex.split(line.split(" >")[0], comments=True)[1:] for word in filled(one, arrays)]


def filled(word: str, arrays: dict[str, list[str]]) -> list[str]:
    spread = re.fullmatch(r"\$\{(\w+)\[@\](?:/#/(.+))?\}", word)
    if spread:
        return [value for one in arrays[spread[1]] for value in filled((spread[2] or "") + one, arrays)]
    return [re.sub(r"\$(\w+)", lambda match: VALUES.get(match[1], match[1].lower()), word)]


SCRIPTS = [(where, script) for where, script, _ in RUNS]
SCRIPTS += [("guide", script) for kind, script in BLOCKS if kind == "sh"]
SCRIPTS += [("guide", line) for line in re.findall(r"run: (wheelmill .+)", GUIDE)]
SCRIPTS += [("guide", line) for line in re.findall(r"`(wheelmill [^`]* [^`]*)`", GUIDE)]
COMMANDS = [(where, words) for where, script in SCRIPTS for words in commands(script)]


def parsed(words: list[str]) -> str:
    """What the command line says of the words; empty where it takes them. Nothing is run."""
    result = CliRunner().invoke(cli, words)
    return "" if result.exit_code == 0 and result.exception is None else str(result.exception) + result.output


@pytest.fixture
def _no_verb_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)
    for name in ("dist", "site", "ci", "runner_temp"):
        (tmp_path / name).mkdir()
    for name in ("matrix", "release-key", "WHEEL", "dist/one.whl", "runner_temp/before.json"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_no_verb_runs")
@pytest.mark.parametrize(("where", "words"), COMMANDS, ids=[where for where, _ in COMMANDS])
def test_a_command_is_one_that_there_is(where: str, words: list[str]) -> None:
    assert parsed(words) == "", where
    if words[:2] == ["ci", "run"] and "--" in words:
        verb, rest = VERB_OF[words[2]], words[words.index("--") + 1 :]
        assert parsed([verb, "dist/one.whl", *rest]) == "", where


@pytest.mark.usefixtures("_no_verb_runs")
def test_a_command_that_there_is_not_is_told() -> None:
    assert "no such option" in parsed(["ci", "--sope", "all"]).lower()
    assert parsed(["publsh", "site"])
    assert parsed(["publish", "site"])


def test_the_commands_are_found() -> None:
    verbs = [tuple(words[:3]) if words[:2] == ["ci", "run"] else words[0] for _, words in COMMANDS]
    assert {("ci", "run", stage) for stage in VERB_OF} <= set(verbs)
    assert {"ci", "index", "publish"} <= set(verbs)
    plan = next(words for where, words in COMMANDS if where == "wheels.plan")
    assert plan[:8] == ["ci", "jobs", "--matrix", "matrix", "--scope", "change", "--gpu", '["9.0"]']
    assert plan[-2:] == ["--", "select"]  # which may begin with a dash, or be the name of a subcommand
