"""`which` against real indexes on loopback: a written site, a stranger's page, servers that mean harm."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shlex
import subprocess
import sys
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from tests import audit_wheels, index_wheels

from wheelmill import folder, index
from wheelmill.__main__ import main
from wheelmill.records import RECORD
from wheelmill.storage import Folder

from .conftest import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HERE = ["--bare", "--python-version=3.12", "--platform=manylinux_2_35_x86_64", "--driver=580.65", "--gpu", "9.0"]
TORCH = ("--torch", "2.11.0+cu130")
CU130, CU128 = (f"demo-1.0+{cuda}-py3-none-manylinux_2_28_x86_64.whl" for cuda in ("cu130", "cu128"))


class Handler(SimpleHTTPRequestHandler):
    """Static files, in parts where asked; addresses under /bad/ are what the test put there."""

    bad: dict[str, tuple[int, dict[str, str], bytes]]
    seen: list[str]

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers.get('Range', '')}".strip())
        if self.path in self.bad:
            status, headers, body = self.bad[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        elif match := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            self.part(*match.groups())
        else:
            super().do_GET()

    def part(self, first: str, last: str) -> None:
        from pathlib import Path

        path = Path(self.translate_path(self.path))
        data = path.read_bytes() if path.is_file() else b""
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start:end])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, type[Handler], Path]]:
    """(address, its handler, the folder that it serves)."""
    root = tmp_path / "served"
    root.mkdir()
    handler = type("Here", (Handler,), {"bad": {}, "seen": []})
    made = ThreadingHTTPServer(
        ("127.0.0.1", 0),
        lambda *args: handler(*args, directory=str(root)),  # type: ignore[misc, arg-type]
    )
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}", handler, root
    made.shutdown()
    made.server_close()


def ask(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The verb's own entry point, in this process: a start of Python for each question takes too long."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["which", *map(str, arguments)])
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def told(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    done = ask(*arguments, "--json")
    assert done.returncode == status, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def add_wheel(folder: Path, name: str, *requires: str, environments: tuple[str, ...] = ()) -> Path:
    """A wheel of METADATA alone, with a manifest where it has environments."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    project, version = name.split("-")[:2]
    lines = [
        f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}",
        *(f"Requires-Dist: {one}" for one in requires),
    ]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{project}-{version}.dist-info/METADATA", "\n".join(lines) + "\n\n")
        tag = name.removesuffix(".whl").split("-", 2)[2]
        archive.writestr(f"{project}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        archive.writestr(f"{project}-{version}.dist-info/RECORD", "")
    if environments:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest = {"wheel": "x", "sha256": sha256, "environments": environments, "proof": {"sha256": sha256}}
        path.with_name(path.name + index.MANIFEST).write_text(json.dumps(manifest))
    return path


@pytest.fixture
def site(tmp_path: Path, server: tuple[str, type[Handler], Path]) -> Path:
    """A written site of two wheels."""
    dist, root = tmp_path / "dist", server[2]
    for name, cuda in ((CU130, "cu130"), (CU128, "cu128")):
        version = name.split("-")[1]
        wheel = index_wheels.add(
            dist, version, [f"{cuda}-torch2.10", f"{cuda}-torch2.11"], requires=("torch>=2.10",), cuda=cuda
        )
        assert wheel.name == name
        library = {"sass": ["80", "90"], "needed": [f"libcudart.so.{cuda[2:4]}"], "torch_abi": "stable"}
        libraries = {"demo/libdemo.so": {**library, "min_torch": "2.10.0", "glibc": "2.14"}}
        index_wheels.change(wheel, ".audit.json", libraries=libraries)
    folder.write(dist, Folder(root))
    return root


def test_a_written_site_by_its_root_its_simple_index_and_its_page(
    site: Path, server: tuple[str, type[Handler], Path]
) -> None:
    url, handler, _ = server
    places = [url, f"{url}/", f"{url}/simple/", f"{url}/cu130-torch2.11.html", str(site), site.as_uri()]
    for place in places:
        answer = told("demo", "--index", place, *HERE, *TORCH)
        assert answer["choice"] == CU130, place
        assert answer["environment"]["id"] == "cu130-torch2.11"
    assert answer["measured"]
    answer = told("demo", "--index", url, *HERE, *TORCH)
    assert answer["command"] == f"pip install demo==1.0+cu130 --find-links {url}/cu130-torch2.11.html"
    assert answer["uv"] == f"uv pip install demo==1.0+cu130 --find-links {url}/cu130-torch2.11.html"
    (other,) = [one for one in answer["candidates"] if one["file"] == CU128]
    assert not other["accepted"]
    assert any("needs CUDA 12's runtime" in reason["message"] for reason in other["reasons"])
    assert not [path for path in handler.seen if unquote(path).endswith(".whl")], "no wheel is downloaded"


def test_a_projects_own_page_is_an_index_too(site: Path, server: tuple[str, type[Handler], Path]) -> None:
    for where in (f"{server[0]}/simple/demo/", site / "simple" / "demo"):
        assert told("demo", "--index", where, *HERE, *TORCH)["choice"] == CU130


def test_the_command_installs_the_choice_and_hashes_hold(
    site: Path, server: tuple[str, type[Handler], Path], tmp_path: Path
) -> None:
    url = server[0]
    pins = tmp_path / "pins.txt"
    done = ask("demo", "--index", url, *HERE, *TORCH, "--require-hashes", pins)
    assert done.returncode == 0, done.stderr
    assert f"pip install --require-hashes --no-deps -r {pins}" in done.stdout
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "--target", target, "--no-index", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "-r", pins], check=True, capture_output=True, env={"PIP_CONFIG_FILE": "/dev/null"})
    assert (target / "demo-1.0+cu130.dist-info").is_dir()


def test_what_our_record_says_decides(site: Path, server: tuple[str, type[Handler], Path]) -> None:
    done = ask("demo", "--index", server[0], *HERE[:-1], "12.0", *TORCH)
    assert done.returncode == 1
    assert "no code for 12.0: it holds SASS 80, 90, and no PTX" in done.stdout
    newer = ask("demo", "--index", server[0], *HERE, "--torch", "2.16.0+cu130")
    assert newer.returncode == 0
    assert "nobody measured it beside your torch 2.16.0+cu130" in newer.stdout
    assert "--find-links" in newer.stdout


def test_a_record_that_is_not_the_stated_one_is_not_used(site: Path, server: tuple[str, type[Handler], Path]) -> None:
    for body in (b"{}", b"\0", (site / "files" / f"{CU130}{RECORD}").read_bytes() + b" "):
        (site / "files" / f"{CU130}{RECORD}").write_bytes(body)
        answer = told("demo", "--index", server[0], *HERE, *TORCH)
        (choice,) = [one for one in answer["candidates"] if one["file"] == CU130]
        assert any("its record was not read" in reason["message"] for reason in choice["reasons"])


def test_metadata_of_other_bytes_keeps_a_wheel_out(site: Path, server: tuple[str, type[Handler], Path]) -> None:
    (site / "files" / f"{CU130}.metadata").write_text("Name: demo\nVersion: 1.0\n")
    answer = told("demo", "--index", server[0], *HERE, *TORCH, status=1)
    assert "pip refuses it" in json.dumps(answer["candidates"])


def test_a_strangers_wheels_are_read_in_parts(server: tuple[str, type[Handler], Path], tmp_path: Path) -> None:
    url, handler, root = server
    faults = {"project": "demo", "version": "1.0", "files": {"demo/large.bin": "x" * 3_000_000}}
    made = audit_wheels.Maker(tmp_path).wheel(faults)
    made = made.rename(root / made.name)
    (root / "page.html").write_text(f'<base href="/"><a href="{made.name}">the wheel</a><a href="javascript:x">x</a>')
    shallow = told("demo", "--index", f"{url}/page.html", *HERE, *TORCH)
    assert shallow["choice"] == made.name
    rules = {reason["rule"] for reason in shallow["candidates"][0]["reasons"]}
    assert "torch-abi-unstated" in rules
    deep = told("demo", "--index", f"{url}/page.html", *HERE, *TORCH, "--deep")
    assert not {reason["rule"] for reason in deep["candidates"][0]["reasons"]} & {"torch-abi-unstated", "sass-unknown"}
    older = told("demo", "--index", f"{url}/page.html", *HERE, "--torch", "2.8.0+cu128", "--deep", status=1)
    assert "requires torch>=2.10" in json.dumps(older)
    unserved = ask("demo", "--index", f"{url}/page.html", *HERE[:-1], "7.5", *TORCH, "--deep")
    assert "no code for 7.5" in unserved.stdout
    parts = [re.search(r"bytes=(\d*)-(\d+)", path) for path in handler.seen if ".whl" in path]
    assert all(parts), "every read of the wheel is of a part"


def test_a_wheel_in_a_folder_with_its_manifest(tmp_path: Path) -> None:
    dist = tmp_path / "my dist; $(x)"
    add_wheel(dist, CU130, "torch>=2.10", environments=("cu130-torch2.11",))
    (dist / "demo-9-broken.whl").write_text("x")
    answer = told("demo", "--index", dist, *HERE, *TORCH)
    assert answer["choice"] == CU130
    assert answer["command"] == f"pip install demo==1.0+cu130 --find-links '{dist}'"
    assert len(answer["skipped"]) == 1
    assert any("nobody states that it was measured" in r["message"] for r in answer["candidates"][0]["reasons"])
    plain = add_wheel(dist, "demo-2.0-py3-none-any.whl")
    answer = told("demo", "--index", dist, *HERE, *TORCH)
    digest = hashlib.sha256(plain.read_bytes()).hexdigest()
    assert answer["command"] == f"pip install 'demo @ {plain.as_uri()}#sha256={digest}'"
    words = shlex.split(answer["command"])
    target = tmp_path / "target"
    subprocess.run(
        [sys.executable, "-m", *words, "--target", target, "--no-index"],
        check=True,
        capture_output=True,
        env={"PIP_CONFIG_FILE": "/dev/null"},
    )
    assert (target / "demo-2.0.dist-info").is_dir()


@pytest.mark.usefixtures("site")
def test_a_password_in_an_address_is_shown_nowhere(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, _ = server
    secret = url.replace("//", "//me:s3cret@")
    for extra in ((), ("--json",)):
        done = ask("demo", "--index", secret, *HERE, *TORCH, *extra)
        assert done.returncode == 0, done.stderr
        assert "s3cret" not in done.stdout + done.stderr
    handler.bad["/bad.html"] = (500, {}, b"")
    for place in (f"{secret}/bad.html", "http://me:s3cret@127.0.0.1:9/", f"{secret}/none.html"):
        done = ask("demo", "--index", place, *HERE, *TORCH)
        assert done.returncode in (2, 3)
        assert "s3cret" not in done.stdout + done.stderr


HTML = {"Content-Type": "text/html"}
JSON_TYPE = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
HOSTILE: dict[str, tuple[int, int, dict[str, str], bytes]] = {
    # what it is: (exit code, HTTP status, headers, body)
    "an image": (2, 200, {"Content-Type": "image/png"}, b"\x89PNG\r\n"),
    "no JSON": (2, 200, JSON_TYPE, b"{"),
    "deep JSON": (2, 200, JSON_TYPE, b"[" * 100_000),
    "JSON of another version": (2, 200, JSON_TYPE, b'{"meta": {"api-version": "2.0"}, "files": []}'),
    "JSON of other shapes": (2, 200, JSON_TYPE, b'{"files": [1, {"filename": 2}, {"filename": "x", "url": []}]}'),
    "an empty page": (2, 200, HTML, b""),
    "a login page": (2, 200, HTML, b"<form><a href='/login'>log in</a></form>"),
    "bytes of no encoding": (2, 200, {"Content-Type": "text/html; charset=nonsense"}, b"\xff\xfe<a href=\xff>"),
    "other schemes": (2, 200, HTML, b'<a href="file:///etc/demo-1.0-py3-none-any.whl">x</a><a href="//[">x</a>'),
    "another project": (2, 200, HTML, b'<a href="demo_two-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>'),
    "a server's fault": (3, 500, HTML, b""),
    "a redirect to a file": (3, 302, {"Location": "file:///etc/passwd"}, b""),
    "comments without end": (2, 200, HTML, b"<!--<a " * 200_000),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_page_that_is_none(server: tuple[str, type[Handler], Path], what: str) -> None:
    url, handler, _ = server
    expected, status, headers, body = HOSTILE[what]
    handler.bad["/bad.html"] = (status, headers, body)
    done = ask("demo", "--index", f"{url}/bad.html", *HERE, *TORCH)
    assert done.returncode == expected, done.stderr
    assert "what to do:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_root_of_an_index_is_not_read(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, _ = server
    done = ask("demo", "--index", f"{url}/simple", *HERE, *TORCH)
    assert done.returncode == 2
    assert handler.seen == ["/simple/demo/"]


def test_source_archives_alone_are_no_wheel(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, _ = server
    files = [{"filename": "demo-1.0.tar.gz", "url": "x"}]
    handler.bad["/simple/demo/"] = (200, JSON_TYPE, json.dumps({"files": files}).encode())
    done = ask("demo", "--index", f"{url}/simple", *HERE, *TORCH)
    assert done.returncode == 1
    assert "source archives of it alone" in done.stderr


def test_a_redirect_that_never_ends(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, _ = server
    handler.bad["/bad.html"] = (302, {"Location": "/bad.html"}, b"")
    done = ask("demo", "--index", f"{url}/bad.html", *HERE, *TORCH)
    assert done.returncode == 3
    assert "redirects" in done.stderr


def test_names_cannot_move_the_terminal_nor_reach_the_shell(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, _ = server
    files = [
        {"filename": "demo-1.0-py3-none-any.whl", "url": "x/demo-1.0-py3-none-any.whl", "yanked": "\x1b[2Jgone"},
        {"filename": "demo-1.1-py3-none-any.whl\x1b[2J", "url": "x"},
        {"filename": "demo-1.2-py3-none-\x1b[31many.whl", "url": "x;$(touch y)"},
        {"filename": "../demo-1.3-py3-none-any.whl", "url": "x"},
    ]
    handler.bad["/bad/demo/"] = (200, JSON_TYPE, json.dumps({"files": files}).encode())
    done = ask("demo", "--index", f"{url}/bad", *HERE, *TORCH, "--all")
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    assert "yanked: " in done.stdout


def test_an_archive_that_is_none_keeps_its_wheel_out(server: tuple[str, type[Handler], Path]) -> None:
    url, _, root = server
    (root / CU130).write_bytes(b"PK\5\6" + b"\xff" * 18)
    (root / "page.html").write_text(f'<a href="{CU130}">x</a>')
    answer = told("demo", "--index", f"{url}/page.html", *HERE, *TORCH, status=1)
    assert "no archive that can be read" in json.dumps(answer["candidates"])


def test_metadata_of_another_version_keeps_a_wheel_out(server: tuple[str, type[Handler], Path]) -> None:
    url, _, root = server
    add_wheel(root, "demo-1.0-py3-none-any.whl").rename(root / "demo-1.0+cu130-py3-none-any.whl")
    (root / "page.html").write_text('<a href="demo-1.0%2Bcu130-py3-none-any.whl">x</a>')
    answer = told("demo", "--index", f"{url}/page.html", *HERE, *TORCH, status=1)
    assert "its METADATA is of demo 1.0, which is not what its name says" in json.dumps(answer["candidates"])


def test_a_folder_of_wheels_with_their_records(site: Path) -> None:
    answer = told("demo", "--index", site / "files", *HERE, *TORCH)
    assert answer["choice"] == CU130
    assert answer["measured"]
    (site / "files" / CU130).write_bytes((site / "files" / CU130).read_bytes() + b"x")
    answer = told("demo", "--index", site / "files", *HERE, *TORCH)
    assert "its record was not read: it is of other bytes" in json.dumps(answer["candidates"])


def test_a_server_without_parts_leaves_metadata_unread(server: tuple[str, type[Handler], Path]) -> None:
    url, handler, root = server
    handler.bad["/w/" + CU130.replace("+", "%2B")] = (200, {}, b"x" * 100)
    (root / "page.html").write_text(f'<a href="w/{CU130.replace("+", "%2B")}">x</a>')
    answer = told("demo", "--index", f"{url}/page.html", *HERE, *TORCH)
    assert "gives no parts of files" in json.dumps(answer["candidates"])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["demo", "--index", "http://127.0.0.1:9/"], 3, "cannot be read"),
        (["demo", "--index", "ftp://127.0.0.1/"], 2, "no way to read an index"),
        (["demo", "--index", "http:///x"], 2, "no address"),
        (["demo", "--index", "http://["], 2, "no address"),
        (["demo", "--index", "/nowhere/at/all"], 2, "no such folder"),
        (["../../etc", "--index", "."], 2, "no name of a project"),
        (["demo[x] @ http://x", "--index", "."], 2, "more than a name"),
        (["demo", "--index", ".", "--torch", "new"], 2, "--torch new is no version"),
        (["demo", "--index", ".", "--torch", "2.x.y"], 2, "no version"),
        (["demo", "--index", ".", "--gpu", "RTX 9999"], 2, "--gpu RTX 9999"),
        (["demo", "--index", ".", "--platform", "amiga"], 2, "--platform amiga"),
        (["demo", "--index", ".", "--driver", "new"], 2, "--driver"),
        (["demo", "--index", ".", "--glibc", "2"], 2, "--glibc"),
        (["demo", "--index", ".", "--cuda", "thirteen", "--torch", "2.11.0"], 2, "--cuda thirteen"),
        (["demo", "--index", ".", "--python-version", "three"], 2, "--python-version three"),
        (["demo", "--index", ".", "--python", "/nowhere/python"], 2, "no such program"),
        (["demo", "--index", ".", "--collect-env", "/nowhere"], 2, "--collect-env"),
        (["demo", "--index", ".", "--collect-env", "/proc/version"], 2, "no output of torch.utils.collect_env"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_question(arguments: list[str], status: int, words: str) -> None:
    asked = arguments if {"--collect-env", "--python"} & set(arguments) else [*arguments, "--bare"]
    done = ask(*asked)
    assert done.returncode == status, done.stdout + done.stderr
    assert words in done.stderr
    assert "what to do:" in done.stderr


def test_whom_it_asked_where_nobody_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_wheel(tmp_path / "dist", "demo-1.0-py3-none-any.whl")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    notes = told("demo", "--index", tmp_path / "dist")["environment"]["notes"]
    assert f"asked of {sys.prefix}/bin/python; --python names another" in notes


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    add_wheel(tmp_path / "dist", "demo-1.0-py3-none-any.whl")
    done = ask("demo", "--index", tmp_path / "dist", "--python", "/bin/true")
    assert done.returncode == 3
    assert "it is no Python, it seems" in done.stderr
    assert "with --python, or state the environment with flags" in done.stderr


def test_standard_input_and_the_exit_status(tmp_path: Path) -> None:
    add_wheel(tmp_path / "dist", "demo-1.0-cp312-cp312-win_amd64.whl")
    lines = ["PyTorch version: 2.8.0+cu128", "OS: Debian GNU/Linux 12 (x86_64)", "Python version: 3.12.1 (main)"]
    text = "\n".join([*lines, "Libc version: glibc-2.36"])
    asked = command("which", "demo", "--index", tmp_path / "dist", "--collect-env", "-")
    done = subprocess.run(asked, input=text, text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "for Windows x86_64; you have Linux x86_64" in done.stdout
    assert "what to do:" in done.stderr


def test_this_interpreter_is_read(tmp_path: Path) -> None:
    name = "demo-1.0-py3-none-any.whl"
    add_wheel(tmp_path / "dist", name)
    answer = told("demo", "--index", tmp_path / "dist", "--python", sys.executable)
    here = answer["environment"]
    assert here["python"]["version"].split(".")[:2] == [str(part) for part in sys.version_info[:2]]
    assert here["system"] == "linux"
    assert here["libc"]["kind"] == "glibc"
    assert answer["choice"] == name


@pytest.fixture
def broken_torch(tmp_path: Path) -> Callable[[str], str]:
    """An environment whose torch says what it is in its files, and does as it is told when it is imported."""

    def make(body: str) -> str:
        env = tmp_path / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
        (folder,) = env.glob("lib/python3*/site-packages")
        (folder / "torch" / "share" / "cmake" / "Torch").mkdir(parents=True)
        (folder / "torch" / "__init__.py").write_text(body)
        (folder / "torch" / "version.py").write_text(
            "__version__ = '2.4.1+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n"
        )
        cmake = folder / "torch" / "share" / "cmake" / "Torch" / "TorchConfig.cmake"
        cmake.write_text('set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")')
        return str(env / "bin" / "python")

    return make


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise OSError('libcudart.so.12: cannot open')", "libcudart.so.12: cannot open"),
        ("import os; os.abort()", "it crashed with signal 6"),
        ("import os; os._exit(3)", "it ended with status 3"),
        ("print('RESULT[1]'); raise SystemExit", "it ended with status 0"),
        ("print('RESULT{'); raise SystemExit", "it ended with status 0"),
    ],
)
def test_a_torch_that_does_not_import_is_read_from_its_files(
    broken_torch: Callable[[str], str], body: str, why: str, tmp_path: Path
) -> None:
    add_wheel(tmp_path / "dist", "demo-1.0-py3-none-any.whl")
    answer = told("demo", "--index", tmp_path / "dist", "--python", broken_torch(body))
    assert answer["environment"]["torch"] == {
        "version": "2.4.1+cu121",
        "cuda": "12.1",
        "cxx11_abi": False,
        "origin": "pytorch",
    }
    assert f"torch does not import ({why})" in answer["environment"]["notes"][0].replace("OSError: ", "")
