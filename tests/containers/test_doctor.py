"""The doctor in containers without a GPU: one with a compiler and no nvcc, and a Debian that has neither."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wheelmill
from wheelmill import engine, images

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = (("stdout", "stderr"), ("stderr", "stdout"))
SOURCE = Path(wheelmill.__file__).parents[1]


@pytest.fixture
def ask() -> Callable[..., Any]:
    """The doctor's JSON, told by this engine's own Python in a container of that image without a network."""
    client = engine.connect()
    # The engine's own environment, at its own place.
    places = {str(Path(one).resolve()) for one in (sys.prefix, sys.base_prefix, SOURCE)} | {sys.prefix}
    volumes = {one: {"bind": one, "mode": "ro"} for one in places}

    def run(image: str, *arguments: str) -> Any:
        command = [sys.executable, "-m", "wheelmill", "doctor", "--json", *arguments]
        container = client.containers.run(
            image,
            command,
            detach=True,
            environment={"PYTHONPATH": str(SOURCE), "PATH": "/usr/local/bin:/usr/bin:/bin", "CUDA_HOME": ""},
            network_mode="none",
            user=f"{os.getuid()}:{os.getgid()}",
            volumes=volumes,
        )
        try:
            status = container.wait(timeout=120)["StatusCode"]
            out, said = (container.logs(**{name: True, other: False}).decode() for name, other in STREAMS)
        finally:
            container.remove(force=True)
        assert "Traceback" not in said, said
        told = json.loads(out)
        assert status == int(told["hindered"]), said
        return {**told, "found": {one["id"]: one for one in told["findings"]}}

    return run


def test_an_image_with_a_compiler_and_neither_nvcc_nor_gpu(image: str, ask: Callable[..., Any]) -> None:
    told = ask(image)
    assert told["toolkits"]["nvccs"] == []
    assert told["toolkits"]["home"] is None
    assert told["found"]["nvcc-absent"]["severity"] == "error"
    assert "devel image" in told["found"]["nvcc-absent"]["mend"]
    assert told["found"]["driver-absent"]["severity"] == "info"
    assert told["found"]["engine-absent"]["severity"] == "info"
    assert told["compiler"]["kind"] == "gcc"
    assert "compiler-absent" not in told["found"]
    assert "ninja-absent" not in told["found"]


def test_a_debian_without_a_compiler(image: str, ask: Callable[..., Any]) -> None:
    told = ask(images.local_base("bookworm"))  # which the other is made of
    assert told["found"]["compiler-absent"]["severity"] == "error"
    assert "apt-get install -y g++" in told["found"]["compiler-absent"]["mend"]
    assert told["found"]["ninja-absent"]["severity"] == "warning"
    assert told["environment"]["gpus"] == []
