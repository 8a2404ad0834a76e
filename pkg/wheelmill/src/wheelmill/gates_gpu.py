"""Whether a GPU can be used, and if not, which of the things that can be missing is. No torch here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def judge(
    told: dict[str, Any], targets: dict[str, list[str]] | None, withheld: dict[str, str] | None
) -> dict[str, Any]:
    """Whether a GPU can be used, and if not which of the reasons it is and what to do.

    `told` is `gates_runner.gpus`; `targets` the SASS and PTX of the wheel, None for a wheel that holds none;
    `withheld` why the executor gives no GPU, None where it does.
    """
    kind, reason, remedy = next(_hindrances(told, targets, withheld), (None, None, None))
    return {"usable": kind is None, "kind": kind, "reason": reason, "remedy": remedy, **told}


def _hindrances(
    told: dict[str, Any], targets: dict[str, list[str]] | None, withheld: dict[str, str] | None
) -> Iterator[tuple[str, str, str]]:
    """(kind, reason, remedy) of what keeps the GPU from being used, the first cause first."""
    if withheld is not None:
        yield withheld["kind"], withheld["reason"], withheld["remedy"]
    if not told["torch_cuda"]:
        yield "torch-cpu", "the torch here was built without CUDA", "install a torch of the wheel's CUDA"
    if told["driver"] is None:
        yield (
            "no-driver",
            "there is no NVIDIA driver here: libcuda.so.1 is not found or does not answer",
            "run on a machine with an NVIDIA GPU and its driver; in a container, give it the GPU",
        )
        return
    have, need = told["driver"] // 1000, int(told["torch_cuda"].split(".")[0])
    if have < need:
        yield (
            "driver-old",
            (
                f"the NVIDIA driver here serves CUDA {have}.{told['driver'] % 1000 // 10}, and torch is of CUDA "
                f"{told['torch_cuda']}"
            ),
            f"update the driver to one of CUDA {need} or later, or test the wheel of an older CUDA",
        )
    if told["error"] or not told["cards"]:
        yield (
            "no-device",
            "the driver is here, and no GPU can be used: " + (told["error"] or "it shows none"),
            "see what nvidia-smi says, and whether CUDA_VISIBLE_DEVICES hides it",
        )
        return
    capability = tuple(told["cards"][0]["capability"])
    if targets is not None and not runs_on(capability, targets):
        number = "{}.{}".format(*capability)
        names = ", ".join([*targets["sass"], *(f"{one} as PTX" for one in targets["ptx"])])
        yield (
            "card-old",
            f"{told['cards'][0]['name']} is of compute capability {number}, and the wheel holds code for {names} alone",
            f"build the wheel with {number} among its targets, or test it on a card that it is for",
        )


def runs_on(capability: tuple[int, ...], targets: dict[str, list[str]]) -> bool:
    """Whether a card loads any SASS or can compile any PTX of these targets, such as `90`, `90a` or `100f`."""

    def parts(text: str) -> tuple[tuple[int, int], str]:
        digits = text.rstrip("af")
        return (int(digits[:-1]), int(digits[-1])), text[len(digits) :]

    for text in targets["sass"]:
        (major, minor), kind = parts(text)
        if capability == (major, minor) or (kind != "a" and major == capability[0] and minor <= capability[1]):
            return True
    for text in targets["ptx"]:
        number, kind = parts(text)
        if capability == number or (not kind and number <= capability) or (kind == "f" and number[0] == capability[0]):
            return True
    return False
