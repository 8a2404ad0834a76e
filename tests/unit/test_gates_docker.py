"""How a GPU is asked for of an engine, and what a container of the gates may do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import gates_box, gates_docker
from wheelmill.errors import InputError
from wheelmill.store import Store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates_box.shutil, "which", lambda _: None)


def test_cdi_is_used_where_a_file_names_gpus(tmp_path: Path) -> None:
    (tmp_path / "nvidia.yaml").write_text('cdiVersion: "0.5.0"\nkind: "nvidia.com/gpu"\n')
    request, refused = gates_box.gpu_request({"CDISpecDirs": [str(tmp_path)], "Runtimes": {"nvidia": {}}})
    assert refused is None
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=all"])


def test_nvidias_runtime_is_used_without_cdi(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text('kind: "vendor.com/net"\n')
    request, refused = gates_box.gpu_request({"CDISpecDirs": [str(tmp_path)], "Runtimes": {"nvidia": {}}})
    assert refused is None
    assert (request["Count"], request["Capabilities"]) == (-1, [["gpu"]])


def test_an_engine_without_either_is_told(tmp_path: Path) -> None:
    request, refused = gates_box.gpu_request({"CDISpecDirs": [str(tmp_path)], "Runtimes": {"runc": {}}})
    assert request is None
    assert refused is not None
    assert refused["kind"] == "no-runtime"
    assert "nvidia-ctk" in refused["remedy"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "no-runtime"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all", "no-runtime"),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "no-driver"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update", "driver-old"),
        ('exec: "/opt/none/bin/python": stat /opt/none/bin/python: no such file or directory', None),
    ],
)
def test_why_an_engine_gives_no_gpu_is_told_apart(said: str, kind: str | None) -> None:
    found = gates_box.refusal(said)
    assert (found and found["kind"]) == kind
    assert found is None or (said in found["reason"] and found["remedy"])


def test_mounts_and_variables_are_taken_apart(tmp_path: Path) -> None:
    assert gates_box.pair(f"{tmp_path}:/usr") == (str(tmp_path), "/usr")
    assert gates_box.variable("PATH=/a=b") == ("PATH", "/a=b")
    for text in ("/usr", f"{tmp_path}:usr", "/nowhere-at-all:/usr"):
        with pytest.raises(InputError, match="--mount"):
            gates_box.pair(text)
    with pytest.raises(InputError, match="--env"):
        gates_box.variable("PATH")


def test_a_container_is_closed_and_writes_to_one_folder(tmp_path: Path) -> None:
    info = {"MemTotal": 8 << 30, "NCPU": 1, "SecurityOptions": []}
    client: Any = SimpleNamespace(info=lambda: info)
    box = gates_box.Box(image=None, mounts=(f"{tmp_path}:/usr",), env=("A=b",), python=None)
    docker = gates_docker.Docker(
        client=client,
        store=Store(tmp_path / "store"),
        box=box,
        image="image",
        place=None,
        folders={"wheel": tmp_path},
        log=tmp_path / "log",
        tell=print,
    )
    options = docker._options(tmp_path, tmp_path / "out", None)
    assert options["network_mode"] == "none"
    assert options["cap_drop"] == ["ALL"]
    assert options["read_only"]
    assert "no-new-privileges" in options["security_opt"]
    assert options["device_requests"] is None
    writable = [mount["Target"] for mount in options["mounts"] if not mount["ReadOnly"]]
    assert writable == ["/out"]
