"""What containers are created with, and what an image's labels and flags come to in them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wheelmill import container, image_inside, sandbox
from wheelmill.errors import MissingError
from wheelmill.store import Store

LIMITS = sandbox.Limits(memory=1 << 30, cores=2, bounded=True, labelled=False)


def test_a_container_is_closed_and_bounded(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    args = sandbox.create_args(store, {"tools": Path("/a:b,c")}, tmp_path / "work", LIMITS)
    assert {"--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--cpus=2"} <= set(args)
    assert f"--memory={1 << 30}" in args
    assert '--mount=type=bind,"source=/a:b,c",target=/inputs/tools,readonly' in args


def test_a_container_writes_into_what_it_is_given_to_write_into(tmp_path: Path) -> None:
    given = {Path("/compiler-cache/log"): Path("/a:b,c")}
    args = sandbox.create_args(Store(tmp_path / "store"), {}, tmp_path / "work", LIMITS, given)
    assert [arg for arg in args if arg.startswith("--mount")] == [
        '--mount=type=bind,"source=/a:b,c",target=/compiler-cache/log'
    ]


def test_an_engine_gets_the_limits_that_it_can_set() -> None:
    info = {"MemTotal": 8 << 30, "NCPU": 1, "CpuCfsQuota": False, "SecurityOptions": ["name=selinux"]}
    client: Any = SimpleNamespace(info=lambda: info)
    found = sandbox.limits(client, None)
    assert found == sandbox.Limits(memory=7 << 30, cores=1, bounded=False, labelled=True)
    args = sandbox.create_args(SimpleNamespace(root="/s"), {}, Path("/w"), found)  # type: ignore[arg-type]
    assert not [arg for arg in args if arg.startswith("--cpus")]
    assert "--security-opt=label=disable" in args


def test_what_is_mounted_is_readable_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text("")
    (folder / "deep" / "program").write_text("")
    (folder / "link").symlink_to("/nowhere")
    for name, mode in (("deep/file", 0o600), ("deep/program", 0o700), ("deep", 0o700), (".", 0o700)):
        (folder / name).chmod(mode)
    sandbox.readable(folder)
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in ("deep/file", "deep/program", "deep", ".")}
    assert modes == {"deep/file": 0o644, "deep/program": 0o755, "deep": 0o755, ".": 0o755}


def inside(*pythons: str) -> image_inside.Inside:
    return image_inside.Inside(image="image", toolkit=None, gcc="12", pythons=pythons, identity="")


def test_the_newest_python_of_an_image_with_the_gil_builds_for_any() -> None:
    assert image_inside.python(inside("3.9", "3.13", "3.13t"), None) == "3.13"
    assert image_inside.python(inside("3.9", "3.13", "3.13t"), "3.13t") == "3.13t"
    with pytest.raises(MissingError, match=r"holds Python 3\.9, 3\.13, and the wheel is for 3\.12"):
        image_inside.python(inside("3.9", "3.13"), "3.12")


@pytest.mark.parametrize(
    "shebang", ["#!/x/bin/python3.11\n", "#!/bin/sh\n'''exec' /x/bin/python \"$0\" \"$@\"\n' '''\n"]
)
def test_a_tools_script_runs_under_the_containers_python(tmp_path: Path, shebang: str) -> None:
    program = tmp_path / "tool"
    program.write_text(f"{shebang}print()\n")
    container._any_python(program)
    assert program.read_text() == "#!/usr/bin/env python\nprint()\n"
    program.write_bytes(b"\x7fELF")
    container._any_python(program)
    assert program.read_bytes() == b"\x7fELF"
