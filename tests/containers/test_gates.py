"""The gates in a container: what a wheel's operators do there, without a network, and without a GPU."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.gate_wheels import pyfaults

from wheelmill import engine, sandbox

from .conftest import OF_GATES, command

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ("--namespace", "pyfaults", "--samples", "pyfaults.testing", "--executor", "docker", "--store", OF_GATES)
OPERATORS = ("wrong_value", "wrong_value_clean", "wrong_gradient", "wrong_gradient_clean", "crash")


def run(folder: Path, image: str, *more: str, operators: tuple[str, ...] = OPERATORS) -> tuple[int, Any, str]:
    names = [word for name in operators for word in ("--operator", name)]
    args = command("test", pyfaults(folder), *ASKED, "--image", image, *names, "--json", *more)
    done = subprocess.run(args, cwd=folder, text=True, capture_output=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_cpu_gates_in_a_container(image: str, tmp_path: Path) -> None:
    code, made, said = run(tmp_path, image, "--gates", "ops,gradcheck,robust", "--timeout", "60", "--fresh")
    assert code == 1, said
    rows = {(row["gate"], row["operator"]): row for row in made["rows"] if row["device"] == "cpu"}
    assert rows["ops", "wrong_value"]["result"] == "fail"
    assert rows["ops", "crash"]["result"] == "crash"
    assert rows["gradcheck", "wrong_gradient"]["result"] == "fail"
    assert rows["gradcheck", "wrong_gradient_clean"]["result"] == "pass"
    for gate in ("ops", "robust"):
        assert rows[gate, "wrong_value_clean"]["result"] == "pass", rows[gate, "wrong_value_clean"]
    assert made["environment"]["executor"] == "docker"
    lacking = [row for row in made["rows"] if row["device"] == "cuda"]
    assert {row["result"] for row in lacking} == {"not-run"}
    left = engine.connect().containers.list(all=True, filters={"label": f"{sandbox.STORE}={OF_GATES}"})
    assert left == []


def test_an_operator_that_hangs_in_a_container_is_told(image: str, tmp_path: Path) -> None:
    code, made, said = run(tmp_path, image, "--gates", "ops", "--timeout", "30", "--fresh", operators=("hang",))
    assert code == 1, said
    assert [row["result"] for row in made["rows"] if row["device"] == "cpu"] == ["hang"]


def test_a_gpu_that_the_engine_cannot_give_is_told(image: str, tmp_path: Path) -> None:
    code, made, said = run(tmp_path, image, "--gates", "ops", "--require-gpu")
    assert (code, made) == (3, None)
    assert "neither NVIDIA's runtime nor a CDI file" in said
    assert "nvidia-ctk" in said
