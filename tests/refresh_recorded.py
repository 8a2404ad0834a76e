"""What PyPI said, trimmed, as a folder that the engine reads like a server; `python tests/refresh_recorded.py` records.

Pages hold the wheels that KEPT names. Of a wheel there is the text that the engine looks for, and nothing else.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

FILE = Path(__file__).parent / "golden" / "refresh" / "pypi.json"
# The tables' rows of the releases that are recorded, as they were then.
TABLES = FILE.parent / "tables"
KEPT = {
    "torch": r"torch-2\.(9\.1|10\.0|14\.0|14\.1|15\.0)-.*(x86_64|win_amd64)\.whl",
    "cuda-toolkit": r"cuda_toolkit-(12\.9\.2|13\.4|13\.5).*\.whl",
    "nvidia-cuda-nvcc": r"nvidia_cuda_nvcc-13\.(4|5).*x86_64\.whl",
    "nvidia-cuda-crt": r"nvidia_cuda_crt-13\.(4|5).*x86_64\.whl",
    "nvidia-cuda-runtime-cu11": r"nvidia_cuda_runtime_cu11-.*x86_64\.whl",
    "nvidia-cuda-runtime-cu12": r"nvidia_cuda_runtime_cu12-.*x86_64\.whl",
}
# Of each file, the lines that say what is read.
SAYS = {
    "METADATA": rb"(?m)^(?:Metadata-Version|Name|Version|Provides-Extra|Requires-Dist): .*\n",
    "cpp_extension.py": rb".*c\+\+\d\d.*\n",
    "libc10.so": rb"_ZN3c106detail14torchCheckFail\w*",
    "ptxas": rb"(?:compute|sm)_\d+[af]?\b",
    "host_config.h": rb".*__GNUC__.*\n",
}
WHEELS = {
    r"torch-2\.((9\.1|10\.0-3|14\.0|14\.1)-cp310|15\.0-cp311)-cp31[01]-manylinux.*",
    r"cuda_toolkit-(12\.9\.2\.0|13\.4\.3|13\.5\.0)-.*",
    r"nvidia_cuda_(nvcc|crt)-13\.(4\.92|5\.37)-.*",
}


def pages() -> dict[str, list[dict[str, Any]]]:
    """The files of each page, which a test may change before it lays them out."""
    return json.loads(FILE.read_text())["pages"]


def parts() -> dict[str, dict[str, str]]:
    """The members of each wheel, by the wheel's name."""
    return json.loads(FILE.read_text())["wheels"]


def lay_out(
    root: Path, files: dict[str, list[dict[str, Any]]] | None = None, wheels: dict[str, dict[str, str]] | None = None
) -> str:
    """Write the pages under `root`/simple and the wheels under `root`/wheels; the address of the index."""
    for project, every in (pages() if files is None else files).items():
        page(root / "simple" / project, project, ({"url": f"../../wheels/{one['filename']}", **one} for one in every))
    (root / "wheels").mkdir(exist_ok=True)
    for name, members in (parts() if wheels is None else wheels).items():
        with zipfile.ZipFile(root / "wheels" / name, "w", zipfile.ZIP_DEFLATED) as made:
            for member, text in members.items():
                made.writestr(member, text)
    return (root / "simple").as_uri() + "/"


def page(folder: Path, project: str, files: Iterable[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"meta": {"api-version": "1.1"}, "name": project, "files": list(files)}
    (folder / "index.json").write_text(json.dumps(content))


def _record() -> None:
    from wheelmill import web, which_deep, which_links

    session = web.Web()
    recorded: dict[str, Any] = {"source": "https://pypi.org/simple/", "pages": {}, "wheels": {}}
    for project, wanted in KEPT.items():
        answer = session.get(f"https://pypi.org/simple/{project}/", limit=web.PAGE, accept=which_links.ACCEPT)
        kept = ("filename", "hashes", "requires-python", "yanked")
        rows = [one for one in json.loads(answer.body)["files"] if re.fullmatch(wanted, one["filename"])]
        recorded["pages"][project] = [{key: one[key] for key in kept if key in one} for one in rows]
        for one in rows:
            if any(re.fullmatch(form, one["filename"]) for form in WHEELS):
                with session.open(one["url"], limit=64 << 20) as file:
                    opened, infos = which_deep._opened(file)
                    recorded["wheels"][one["filename"]] = {
                        info.filename: b"\n".join(
                            dict.fromkeys(line.strip() for line in re.findall(form, which_deep._member(opened, info)))
                        ).decode()
                        for info in infos
                        if (form := SAYS.get(info.filename.rpartition("/")[2]))
                    }
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    _record()
