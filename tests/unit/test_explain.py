"""Each rule of `explain` answers its own logs, nothing answers what is none of them, and logs are read as they come."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import string
from pathlib import Path

import pytest
from click.testing import CliRunner

from wheelmill import explain, explain_log, explain_page, explain_words, proc
from wheelmill.cli_explain import explain as command
from wheelmill.errors import InputError
from wheelmill.explain_rules import CONFIDENCE, fill, rules

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "explain"
NONE = "none"
EVERY = sorted(LOGS.glob("*/*.log"))
KILLED = b"[3/9] /usr/local/cuda/bin/nvcc -c fwd.cu\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\n"


def of(data: bytes) -> list[explain.Cause]:
    return explain.explain(io.BytesIO(data))


def rule_of(data: bytes) -> str | None:
    found = of(data)
    return found[0].rule if found else None


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_log_is_answered_by_the_rule_of_its_folder(path: Path) -> None:
    found = of(path.read_bytes())
    if path.parent.name == NONE:
        assert not found, f"a false cause: {found[0].rule}"
        return
    assert found, "no cause"
    best = found[0]
    assert best.rule == path.parent.name, [one.rule for one in found]
    lines = path.read_bytes().decode().replace("\r\n", "\n").split("\n")
    assert best.evidence
    for quote in best.evidence:
        assert explain_log.CONTROL.sub("", lines[quote.line - 1].split("\r")[-1]).strip()[:40] == quote.text[:40]
    for text in (best.cause, best.remedy, best.not_):
        assert text
        assert not re.search(r"\{\w+[|}]| \(\)|  ", text), text


def test_each_rule_has_a_log_and_each_folder_a_rule() -> None:
    assert {path.parent.name for path in EVERY} - {NONE} == set(rules())


def test_what_was_reported_has_two_logs_and_there_are_enough_of_no_kind() -> None:
    for rule in rules().values():
        if rule.cases:
            assert len(list((LOGS / rule.id).glob("*.log"))) >= 2, rule.id
    assert len(list((LOGS / NONE).glob("*.log"))) >= 90


def test_the_page_is_what_rules_and_logs_say() -> None:
    """Rewrite it with `wheelmill explain --write-page docs/causes.md`."""
    made = explain_page.page(LOGS)
    assert (ROOT / "docs" / "causes.md").read_text(encoding="utf-8") == made
    assert not [row for row in re.findall(r"\| (\d+) of (\d+) logs \|", made) if row[0] != row[1]]


def test_a_rule_names_rules_and_functions_that_exist() -> None:
    for rule in rules().values():
        assert set(rule.over) <= set(rules()), rule.id
        assert rule.confidence in CONFIDENCE, rule.id
        assert rule.find, rule.id
        assert rule.line, rule.id
        assert not rule.ask or rule.proof, rule.id


def test_messages_name_groups_that_their_rule_has() -> None:
    for rule in rules().values():
        known = set(rule.derive)
        for patterns in (rule.line, rule.also, rule.near, rule.proof, rule.hint):
            known |= {name for pattern in patterns for name in pattern.groupindex}
        for message in (rule.cause, rule.remedy, rule.not_, rule.ask):
            for _, field, _, _ in string.Formatter().parse(message):
                *names, last = (field or "").split("|")
                assert set(names) <= known, (rule.id, field)
                assert last in known or names or not field, (rule.id, field)


def test_each_function_is_one_that_a_rule_needs() -> None:
    used = {function for rule in rules().values() for function, *_ in rule.derive.values()}
    assert used == set(explain_words.FUNCTIONS)


def test_a_table_with_a_mistake_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[a]\ntitel = "x"\n', encoding="utf-8")
    with pytest.raises(InputError, match="titel: no such field") as raised:
        rules(tmp_path)
    assert "title" in raised.value.remedy
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.toml").write_text('[a]\nline = "("\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.line"):
        rules(other)


# --- how logs come


@pytest.mark.parametrize(
    "data",
    [
        KILLED.replace(b"\n", b"\r\n"),
        b"\x1b[1m\x1b[31m" + KILLED.replace(b"'cicc'", b"\x1b[36m'cicc'\x1b[0m"),
        b"10%\r20%\r100%\r" + KILLED.replace(b"\n", b"\r"),
        b"\n".join(b"2025-11-03T09:00:00.1234567Z " + line for line in KILLED.splitlines()),
        b"\n".join(b"build\tInstall\t2025-11-03T09:00:00.1Z " + line for line in KILLED.splitlines()),
        b"\n".join(b"#12 34.50 " + line for line in KILLED.splitlines()),
        b"\n".join(b"[2025-11-03T09:00:00.123Z] #12 34.50 " + line for line in KILLED.splitlines()),
        KILLED.replace(b"nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "Get\u00f6tet".encode()),
        b"\xff\xfe" + KILLED.decode().encode("utf-16-le"),
        b"\xff\x00\xc3(\n" + KILLED,
    ],
    ids=["crlf", "colours", "returns", "github", "gh", "buildkit", "nested", "german", "utf-16", "no-utf-8"],
)
def test_however_it_is_written(data: bytes) -> None:
    assert rule_of(data) == "oom-compiler"


@pytest.mark.parametrize("width", [40, 60, 79, 100])
@pytest.mark.parametrize("rule", ["cuda-mismatch-isolation", "cxx-standard", "sdist-without-cuda", "glibc-newer"])
def test_wrapped_at_any_width(rule: str, width: int) -> None:
    for path in (LOGS / rule).glob("*.log"):
        if "wrapped" in path.name:
            continue
        cut = []
        for line in path.read_text(encoding="utf-8").splitlines():
            cut += [line[at : at + width] for at in range(0, len(line), width)] or [""]
        assert rule_of("\n".join(cut).encode()) == rule, path


def test_a_symbol_that_is_cut_is_put_together() -> None:
    (path,) = (LOGS / "wheel-name-lies").glob("mamba-wrapped.log")
    assert "c10::Error::Error(c10::SourceLocation, std::string)" in of(path.read_bytes())[0].cause


def test_other_output_between_is_no_matter() -> None:
    noise = b"".join(
        b"[%d/999] building something with an error_handler.cpp -Werror\n" % number for number in range(300)
    )
    assert rule_of(noise + KILLED + noise) == "oom-compiler"


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_large_log_is_read_in_pieces(place: float) -> None:
    line = b"2025-11-03T09:00:00Z [%07d] building something, no error here, 0 errors so far\n"
    before = b"".join(line % number for number in range(int(place * 150_000)))
    after = b"".join(line % number for number in range(int((1 - place) * 150_000)))
    found = of(before + KILLED + after)
    assert [one.rule for one in found] == ["oom-compiler"]
    assert found[0].evidence[-1].line == before.count(b"\n") + 2
    assert len(explain_log.read(io.BytesIO(before + KILLED + after)).lines) < 40_000


def test_a_line_without_an_end() -> None:
    assert rule_of(b"x" * (9 << 20) + b"\n" + KILLED) == "oom-compiler"
    assert rule_of(b"x" * (9 << 20)) is None
    assert rule_of(b"") is None


@pytest.mark.parametrize("begin", [b"", b"\0" * 5000, b"nvcc\n\0\0\0"], ids=["none", "zeros", "few"])
def test_zeros_are_no_matter(begin: bytes) -> None:
    assert rule_of(begin + KILLED.replace(b"cicc", b"ci\0cc")) == "oom-compiler"


def test_a_large_log_of_utf_16() -> None:
    text = "building k.cu, fine\n" * 200_000 + KILLED.decode() + "fine\n" * 200_000
    found = of(b"\xff\xfe" + text.encode("utf-16-le"))
    assert [one.rule for one in found] == ["oom-compiler"]
    assert found[0].evidence[-1].line == 200_002


@pytest.mark.parametrize(
    ("data", "kind", "remedy"),
    [
        (gzip.compress(KILLED), "compressed by gzip", "zcat"),
        (bz2.compress(KILLED), "compressed by bzip2", "bzcat"),
        (lzma.compress(KILLED), "compressed by xz", "xzcat"),
        (b"PK\x03\x04" + KILLED, "a zip archive", "wheelmill audit"),
        (b"\x7fELF\x02\x01" + KILLED, "a library or program", "--import NAME"),
    ],
    ids=["gzip", "bzip2", "xz", "zip", "elf"],
)
def test_a_file_that_is_no_text_is_refused(data: bytes, kind: str, remedy: str) -> None:
    with pytest.raises(InputError, match=kind) as raised:
        of(data)
    assert remedy in raised.value.remedy


# --- what a log only tells of


@pytest.mark.parametrize(
    "line",
    [
        '+ echo "{}"',
        "csrc/launch.py:90:        raise RuntimeError('{}')",
        "docs/faq.md:30:{}",
        "- Fixed {} where a machine is small",
        "tests/test_log.py::test_reads[{}] PASSED",
        "SKIPPED [1] tests/test_log.py:9: {}",
        '{{"outcome": "passed", "message": "{}"}}',
    ],
)
def test_an_error_that_is_quoted_is_no_cause(line: str) -> None:
    said = "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"
    assert rule_of(f"{line.format(said)}\n[2/2] nvcc -c b.cu\n".encode()) is None
    between = "[2/2] nvcc -c b.cu\n" * 4
    assert rule_of(f"{line.format(said)}\n{between}{said}\n".encode()) == "oom-compiler"


@pytest.mark.parametrize(
    "prefix",
    [
        "#12 83.02 ",
        "83.02 ",
        "[rank3]: ",
        "[build] ",
        "node03: ",
        "stderr: ",
        "(EngineCore_0 pid=4141) ",
        "2024-11-20 02:11:14 | INFO | ",
        "Apr 02 06:15:41 gpubox runner[3311]: ",
        "ERROR 12-16 04:18:44 engine.py:366] ",
    ],
)
def test_a_message_over_two_lines_behind_what_a_stream_puts_before_each(prefix: str) -> None:
    lines = [
        "Building wheel for ext",
        "Traceback (most recent call last):",
        '  File "/tmp/pip-build-env-k2v7/overlay/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 412',
        "    raise RuntimeError(CUDA_MISMATCH_MESSAGE)",
        "RuntimeError:",
        "The detected CUDA version (12.1) mismatches the version that was used to compile",
        "PyTorch (13.0). Please make sure to use the same CUDA versions.",
        "torch 2.5.1+cu121 is installed",
    ]
    assert rule_of("".join(f"{prefix}{line}\n" for line in lines).encode()) == "cuda-mismatch-isolation"


def test_an_error_that_a_later_attempt_got_over_is_no_cause() -> None:
    again = b"Retrying with MAX_JOBS=1\n"
    well = b"Successfully built ext\n"
    assert rule_of(KILLED + again + well) is None
    assert rule_of(KILLED + again) == "oom-compiler"
    assert rule_of(KILLED + well) == "oom-compiler"
    assert rule_of(KILLED + again + well + KILLED) == "oom-compiler"
    assert rule_of(KILLED + b"Successfully installed ext-1.0\n") is None
    assert rule_of(KILLED + b"Successfully installed ext-1.0\nfatal: no\n") == "oom-compiler"


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."
FELL_BACK = f'Traceback (most recent call last):\n  File "a.py", line 1, in probe\n    op(x)\n{OOM}\n'
OTHER = 'Traceback (most recent call last):\n  File "b.py", line 7, in <module>\n    f()\n'


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"WARNING probe failed, using the slow path\n{FELL_BACK}epoch 1\n{OTHER}TypeError: f\n", None),
        (f"WARNING probe failed, using the slow path\n{FELL_BACK}{OTHER}KeyError: 'f'\n", None),
        (f"WARNING probe failed, using the slow path\n{FELL_BACK}{OTHER}TypeError: f\n", "cuda-oom"),
        (f"WARNING probe failed, using the slow path\n{FELL_BACK}epoch 1\n", "cuda-oom"),
        (f"{FELL_BACK}epoch 1\n{OTHER}KeyError: 'f'\n", "cuda-oom"),
        (f"caught {OOM}\nstep 2\n{OTHER}ValueError: f\n", None),
    ],
)
def test_what_a_program_got_over_is_no_cause_of_another_failure(text: str, rule: str | None) -> None:
    assert rule_of(text.encode()) == rule


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('  File "a.py", line 3, in f\n    log("', '")\nValueError: x\n'),
        ("a.py:3: in f\n    log('", "')\nE   ValueError: x\n"),
        ("________ test_f ________\n    def test_f():\n        log('", "')\nE   ValueError: x\n"),
        ("CMake Warning at a.cmake:3 (message):\n  ", "\n-- Configuring done\n"),
        ("======= warnings summary =======\n  ", "\n======= short test summary info =======\n"),
        ("E   AssertionError: Tensor-likes are not close!\n------- Captured stderr call -------\n", "\n"),
    ],
)
def test_source_and_what_stops_nothing_is_no_cause(before: str, after: str) -> None:
    assert rule_of(f"{before}{OOM}{after}".encode()) is None
    assert rule_of(f"{before}{OOM}{after}----- end -----\n{OOM}\n".encode()) == "cuda-oom"


# --- what is said


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://user:hunter2hunter2@pypi.example.org/simple", "hunter2"),
        ("git+https://deadbeefdeadbeef1234@git.example.org/a/b.git", "deadbeef"),
        ("postgresql://app:pa55word@db:5432/x", "pa55"),
        ("https://bob:pa55@hunter2@pypi.example.org/simple", "hunter2"),
        ("https://bob:pa55/hunter2@pypi.example.org/simple", "hunter2"),
        ("git+https://bob:a/b@c/hunter2@git.example.org/a/b.git@v1", "hunter2"),
        ("(https://:pa55@hunter2@pypi.example.org:8080/simple)", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalr"),
        ("AWS_ACCESS_KEY_ID AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjE", "IQoJ"),
        ("Authorization: Bearer abc123def456", "abc123"),
        ("-H 'Authorization: token abc123def456'", "abc123"),
        ("authorization: Basic dXNlcjpwYXNz", "dXNlc"),
        ("X-Api-Key: 9f8e7d6c5b4a", "9f8e"),
        ("Cookie: sessionid=abcdef1234567890; nvcc", "abcdef12"),
        ("ghp_" + "a1B2" * 9, "a1B2a1"),
        ("github_pat_11ABCDE0Y0" + "a1B2" * 15, "a1B2a1"),
        ("pypi-AgEIcHlwaS5vcmc" + "a1B2" * 20, "a1B2a1"),
        ("export HF_TOKEN=hf_" + "aB3d" * 8, "aB3d"),
        ("//registry.example.org/:_authToken=npm_" + "aB3d" * 9, "aB3d"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3", "dozjg"),
        ("TWINE_PASSWORD: s3cret-value-1", "s3cret"),
        ("UV_INDEX_PRIVATE_PASSWORD=correcthorse", "correcthorse"),
        ('{"token": "correcthorsebattery"}', "correcthorse"),
        ("MYSQL_PWD=opensesame", "opensesame"),
        ("twine upload --password hunter dist/x.whl", "hunter"),
        ("twine upload -u __token__ -p opensesame dist/x.whl", "opensesame"),
        ("docker login -u ci -p opensesame registry.example.org", "opensesame"),
        ("curl -u admin:letmein https://example.org", "letmein"),
        ("machine pypi.example.org login bob password hunter", "hunter"),
        ("https://x.example.org/a.whl?sv=2020&sig=abc%2Bdef123", "abc%2B"),
    ],
)
def test_secrets_are_masked_in_what_is_quoted(text: str, secret: str) -> None:
    line = f"nvcc error   : 'cicc' died due to signal 9 (Kill signal) {text}".encode()
    quoted = of(b"[1/2] nvcc -c a.cu\n" + line)[0].evidence[-1].text
    assert "***" in quoted
    assert secret not in quoted


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "tokenizer: gpt2-large",
        "mkdir -p /usr/local/cuda",
        "docker run -u 1000:1000",
        "-p 8080:80",
        "git+https://git.example.org:8443/a/b.git@v1.2",
    ],
)
def test_what_is_no_secret_is_quoted_as_it_is(text: str) -> None:
    line = f"nvcc error   : 'cicc' died due to signal 9 (Kill signal) {text}"
    assert of(f"[1/2] nvcc -c a.cu\n{line}".encode())[0].evidence[-1].text == line


def test_a_folder_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/usr/local/cuda")
    assert "/usr/local/cuda" in of(KILLED)[0].evidence[0].text or of(KILLED)[0].evidence[0].line == 2


def test_less_proof_is_less_certain_and_says_what_to_run() -> None:
    symbol = b"ImportError: /x/_C.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n"
    unsure, sure = of(symbol)[0], of(symbol + b"torch 2.6.0+cu126\n")[0]
    assert (unsure.rule, unsure.confidence, sure.confidence) == ("cxx11-abi", "likely", "certain")
    assert "compiled_with_cxx11_abi" in unsure.remedy
    assert "compiled_with_cxx11_abi" not in sure.remedy


def test_the_json_is_as_documented() -> None:
    told = explain.to_json(of(KILLED))
    assert told["version"] == 1
    assert set(told["findings"][0]) == {"rule", "cause", "evidence", "remedy", "not", "confidence"}
    assert (
        told["findings"][0]["evidence"]
        == [{"line": 2, "text": "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"}]
        or {"line": 2, "text": "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"}
        in told["findings"][0]["evidence"]
    )


def test_the_command_answers_in_text_and_json(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(KILLED)
    run = CliRunner().invoke
    said = run(command, [str(log)])
    assert said.exit_code == 0
    for words in ("certain: the kernel ended cicc", "2: nvcc error", "what to do:", "it is not:"):
        assert words in said.output
    assert json.loads(run(command, ["-", "--json"], input=KILLED).output)["findings"][0]["rule"] == "oom-compiler"


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    said = CliRunner().invoke(command, ["-"], input=b"KeyError: 'port'\n")
    assert said.exit_code == 0
    assert "no cause is known" in said.output
    assert "collect_env" in said.output
    assert json.loads(CliRunner().invoke(command, ["-", "--json"], input=b"x").output) == {"version": 1, "findings": []}
    assert "the log is empty" in CliRunner().invoke(command, ["-"], input=b"").output
    assert CliRunner().invoke(command, []).exit_code == 2


def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "missing.log", tmp_path, loop):
        raised = CliRunner().invoke(command, [str(path)]).exception
        assert isinstance(raised, InputError)
        assert f"{path} cannot be read" in str(raised)
        assert "COMMAND 2>&1 | wheelmill explain -" in raised.remedy


def test_a_failed_command_ends_with_its_cause(tmp_path: Path) -> None:
    error = proc.ProcessError(["/usr/bin/ninja"], 1, KILLED.decode(), tmp_path / "log")
    assert "the cause, certain: the kernel ended cicc" in str(error)
    assert "MAX_JOBS" in error.remedy
    assert str(tmp_path / "log") in error.remedy


def test_an_explanation_that_fails_hides_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a fault of explain's own")

    monkeypatch.setattr(explain, "explain", broken)
    error = proc.ProcessError(["/usr/bin/ninja"], 1, KILLED.decode(), tmp_path / "log")
    assert "died due to signal 9" in str(error)


# --- the functions of rules


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (("demangle", "_ZN3c104cuda9SetDeviceEab"), "c10::cuda::SetDevice(signed char, bool)"),
        (("demangle", "no_name"), "no_name"),
        (("abi", "_ZN5torch3jit17parseSchemaOrNameERKSsb"), "old"),
        (("abi", "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"), "new"),
        (("abi", "_ZN3c104cuda9SetDeviceEab"), ""),
        (("torch_abi", "2.6.0+cu126"), "new"),
        (("torch_abi", "2.6.0+cu124"), "old"),
        (("torch_abi", "2.8.0"), "new"),
        (("torch_abi", "9.9.0"), ""),
        (("compare", "11.8", "12.6"), "older"),
        (("compare", "12.4", "12.4"), "same"),
        (("compare", "x", "1"), ""),
        (("cuda_of", "2.6.0+cu124"), "12.4"),
        (("cards", "9.0"), "H100, H200, GH200"),
        (("driver_for", "12.4"), "550"),
        (("file", "/a/b/_C.so"), "_C.so"),
        (("before", "14"), "13"),
    ],
)
def test_functions(call: tuple[str, ...], answer: str) -> None:
    name, *words = call
    assert explain_words.FUNCTIONS[name](*words) == answer


def test_a_name_that_would_grow_without_bound_is_left() -> None:
    name = "_Z1fI" + "S0_S0_" * 60 + "Evv"
    assert explain_words.demangle(name) == name


def test_words_are_filled() -> None:
    assert fill("{a|b|else}: {b}", {"b": "x"}) == "x: x"
    assert fill("{a|b|or these words}", {}) == "or these words"
