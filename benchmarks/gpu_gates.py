"""Runs every gate of a wheel on a GPU, on the host and then in a container, and leaves both reports in a folder.

    python gpu_gates.py --wheel WHEEL --out OUT --python "$(command -v python3)" [--hosted | --image IMAGE] [-- MORE]

Needs wheelmill, and no network: `--python` is an interpreter that has torch and pytest. With `--hosted` the container
is of an image that holds nothing but folders and links, over this machine's own /usr, /etc and /opt, read-only; it is
for machines where no registry answers. MORE goes to `wheelmill test`: `--tests tests/ops --matrix matrix.yaml`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

IMAGE = ("wheelmill/hosted", "latest")
FOLDERS = ("usr", "etc", "opt", "proc", "sys", "dev", "tmp", "root", "var", "inputs", "out")
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
PASSED = ("PATH", "LD_LIBRARY_PATH")


def hosted_image() -> str:
    """Make the image of folders and links, unless it is here: what was tested in it goes on in it. Its name."""
    import docker

    client, image = docker.from_env(), ":".join(IMAGE)
    if client.images.list(name=image):
        return image
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    client.api.import_image_from_data(data.getvalue(), repository=IMAGE[0], tag=IMAGE[1])
    return image


def container(options: argparse.Namespace) -> list[str]:
    """The docker executor's own options."""
    if not options.hosted:
        return ["--image", options.image] if options.image else []
    # A Python that is elsewhere brings its whole prefix, and a virtual environment its own besides.
    folders = [Path("/usr"), Path("/etc"), Path("/opt")]
    for program in (os.path.realpath(options.python), os.path.abspath(options.python)):  # noqa: PTH100
        prefix = Path(program).parents[1]
        if not any(folder in (prefix, *prefix.parents) for folder in folders):
            folders.append(prefix)
    words = ["--image", hosted_image()]
    words += [word for folder in folders if folder.is_dir() for word in ("--mount", f"{folder}:{folder}")]
    return words + [word for name in PASSED if name in os.environ for word in ("--env", f"{name}={os.environ[name]}")]


def run(executor: str, options: argparse.Namespace) -> int:
    """One run of every gate; its report is `OUT/<executor>.json`."""
    folder = options.out / executor
    folder.mkdir(parents=True, exist_ok=True)
    wheel = Path(shutil.copy2(options.wheel, folder))
    command = [sys.executable, "-m", "wheelmill", "test", str(wheel), "--require-gpu", "--executor", executor]
    command += ["--python", str(options.python), "--store", str(folder / "store"), "--json"]
    command += [*(container(options) if executor == "docker" else []), *options.more]
    print("+", *command, file=sys.stderr, flush=True)
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    seconds = round(time.monotonic() - began, 1)
    if done.stdout.strip():
        report = json.loads(done.stdout)
        beside = options.out / f"{executor}.json.new"
        beside.write_text(json.dumps({**report, "wall_seconds": seconds}, indent=1) + "\n")
        beside.replace(options.out / f"{executor}.json")
    for log in sorted(folder.glob("store/gate-runs/*/logs/*.log")):
        kept = options.out / "logs" / executor
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy2(log, kept)
    print(f"{executor}: exit {done.returncode} in {seconds} s", file=sys.stderr)
    return done.returncode


def main() -> int:
    """The worst exit code of the runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="where reports and logs go")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with torch")
    parser.add_argument("--executor", action="append", choices=["host", "docker"], help="default: both")
    parser.add_argument("--image", help="the container's image")
    parser.add_argument("--hosted", action="store_true", help="an image over this machine's own files")
    parser.add_argument("more", nargs="*", help="after --: options of `wheelmill test`")
    options = parser.parse_args()
    options.out = options.out.resolve()
    return max(run(executor, options) for executor in options.executor or ["host", "docker"])


if __name__ == "__main__":
    sys.exit(main())
