"""Writers of one index as processes: killed at any moment, and several at once."""

from __future__ import annotations

import json
import random
import subprocess
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.index_wheels import add, tree
from tests.integration.conftest import command, environment

if TYPE_CHECKING:
    from pathlib import Path

NEW, OLD = ["cu130-torch2.11", "cu130-torch2.12"], ["cpu-torch2.11"]
WRITERS = 4


def run(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command("index", *arguments), stdout=subprocess.DEVNULL, env=environment())


def index(*arguments: str | Path) -> None:
    assert run(*arguments).wait() == 0


def links(site: Path) -> list[Path]:
    """Where every entry of every JSON page leads, and what is promised beside it."""
    found = []
    for page in site.rglob("index.json"):
        for row in json.loads(page.read_text()).get("files", ()):
            file = page.parent / unquote(row["url"])
            found += [file, file.with_name(file.name + ".metadata"), file.with_name(file.name + ".record.json")]
    return found


def test_a_writer_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    dist, site = tmp_path / "dist", tmp_path / "site"
    for number in range(60):
        add(dist, f"1.{number}+cu130", NEW, project=f"demo{number % 4}")
    chance = random.Random(6)  # noqa: S311  moments, not secrets
    began = time.monotonic()
    index(dist, "--out", tmp_path / "calibrated")
    whole = time.monotonic() - began
    unfinished = 0
    for number in range(8):
        add(dist, f"2.{number}+cpu", OLD, project=f"demo{number % 4}")
        writer = run(dist, "--out", site, "--full")
        time.sleep(whole * chance.uniform(0.4, 1))
        writer.kill()
        writer.wait()
        unfinished += (site / "pending.json").exists()
        assert [path for path in links(site) if not path.is_file()] == []
    assert unfinished, "no writer was killed while it wrote"
    index(dist, "--out", site)
    index(dist, "--out", tmp_path / "fresh")
    assert tree(site) == tree(tmp_path / "fresh")


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    site = tmp_path / "site"
    folders = [tmp_path / f"dist{number}" for number in range(WRITERS)]
    for number, dist in enumerate(folders):
        for minor in range(5):
            add(dist, f"{number}.{minor}+cu130", NEW)
            add(dist, f"{number}.{minor}+cpu", OLD)
    # Each adds its wheels twice, so that first writes, updates and updates without a change meet.
    running = [run(dist, "--add", "--out", site) for dist in folders * 2]
    assert [writer.wait() for writer in running] == [0] * len(running)
    for dist in folders:
        index(dist, "--add", "--out", tmp_path / "one-by-one")
    assert tree(site) == tree(tmp_path / "one-by-one")
    assert len(json.loads((site / "simple/demo/index.json").read_text())["files"]) == WRITERS * 10
