"""Runs beside an installed wheel: imports it and computes with it. Standard library and torch alone.

usage: python smoke.py JOB.json RESULT.json

The job names the distribution, its version, its modules, the torch release it must find, and where stated
the operators' namespace and the module of samples. The result says what was found and run, or the error.
"""

import importlib
import importlib.metadata
import json
import platform
import sys
import traceback


def operators(torch, namespace):
    """The names of the operators that a namespace registers, without their overloads."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted({name.split("::")[1].split(".")[0] for name in names if name.startswith(namespace + "::")})


def run(job):
    import torch

    result = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda}
    found = importlib.metadata.version(job["distribution"])
    if found != job["version"]:
        raise RuntimeError(f"pip installed {job['distribution']} {found} and not {job['version']}")
    if torch.__version__.split("+")[0] != job["torch"]:
        raise RuntimeError(f"the install replaced torch {job['torch']} by {torch.__version__}")
    for name in job["modules"]:
        importlib.import_module(name)
    result["imported"] = job["modules"]
    if job["namespace"]:
        result["operators"] = operators(torch, job["namespace"])
        if not result["operators"]:
            raise RuntimeError(f"the wheel registers no operator under {job['namespace']}::")
    if job["samples"]:
        result["computed"] = importlib.import_module(job["samples"]).smoke()
        if not result["computed"]:
            raise RuntimeError(f"{job['samples']}.smoke() computed nothing")
    return result


def main(job_path, result_path):
    with open(job_path) as file:
        job = json.load(file)
    try:
        result = {"version": 1, "error": None, **run(job)}
    except Exception as error:
        result = {"version": 1, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    with open(result_path, "w") as file:
        json.dump(result, file, indent=1)
    return 0 if result["error"] is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
