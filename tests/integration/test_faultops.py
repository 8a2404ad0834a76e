"""The planted faults of the gates: their wheel builds, and on a CPU twins are clean and values right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from wheelmill import facts, fetch
from wheelmill.store import Store

from .conftest import PROJECTS, STORE, command

PROJECT = PROJECTS / "faultops"
TORCH = "2.10"


def test_the_planted_faults_on_a_cpu(tmp_path: Path) -> None:
    # No proof: computing with every sample is what two of the faults end.
    args = command("build", f"cpu-stable{TORCH}", "--matrix", PROJECT / "matrix.yaml", "--store", STORE)
    args += ["--executor", "local", "--no-prove", "--json"]
    done = subprocess.run(args, cwd=tmp_path, text=True, stdout=subprocess.PIPE, check=True)
    (row,) = json.loads(done.stdout)["wheels"]
    wheel = Path(row["file"])
    assert re.fullmatch(r"faultops-1\.0\+cpu-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)

    store, log = Store(STORE), tmp_path / "log"
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    known = facts.load().torch[TORCH]
    version = own if own in known.python else known.python[-1]
    # The same as for the reference extension's tests, so that they share what was fetched.
    pins = fetch.resolve(store, [f"torch=={known.release}", "numpy", "pytest", "setuptools"], python=version, log=log)
    python = fetch.venv(tmp_path / "env", python=sys.executable if version == own else version, log=log)
    fetch.install(store, pins, into=python, log=log)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, str(tmp_path / wheel)], check=True)

    tests = [str(python), "-m", "pytest", str(PROJECT / "tests"), "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*tests, "--rootdir", str(PROJECT)], cwd=tmp_path, text=True, check=False, capture_output=True, timeout=240
    )
    print(done.stdout[-3000:], done.stderr[-3000:])
    assert done.returncode == 0
    assert "skipped" not in done.stdout
