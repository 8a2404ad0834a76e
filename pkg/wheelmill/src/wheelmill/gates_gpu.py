"""Whether a GPU can be used, and if not, which of the things that can be missing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


# What CUDA says where code holds nothing for a card.
NO_IMAGE = "no kernel image is available"


def look(torch: Any) -> dict[str, Any]:
    """What driver and torch say of GPUs here; `error` is of the first, and a later one that has one is left out."""
    import ctypes

    told: dict[str, Any] = {"torch_cuda": torch.version.cuda, "driver": None, "cards": [], "error": None}
    try:
        library = ctypes.CDLL("libcuda.so.1")
        number = ctypes.c_int()
        if library.cuDriverGetVersion(ctypes.byref(number)) == 0:
            told["driver"] = number.value
    except OSError:
        return told
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        told["error"] = str(error).splitlines()[0]
        return told
    for index in range(count):
        row = torch.cuda.get_device_properties(index)
        card = {"name": row.name, "capability": [row.major, row.minor], "memory": row.total_memory}
        try:
            torch.ones(1, device=f"cuda:{index}").cpu()
        except RuntimeError as error:
            if index:
                continue
            told["error"] = str(error).splitlines()[0]
        told["cards"].append(card)
    return told


def judge(
    told: dict[str, Any], targets: dict[str, list[str]] | None, withheld: dict[str, str] | None
) -> dict[str, Any]:
    """Whether a GPU can be used, and if not which of the reasons it is and what to do.

    `told` is what `look` tells; `targets` the SASS and PTX of the wheel, None for a wheel that holds none;
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
    card = told["cards"][0] if told["cards"] else {}
    if card and targets is not None and not runs_on(tuple(card["capability"]), targets):
        number = "{}.{}".format(*card["capability"])
        names = ", ".join([*targets["sass"], *(f"{one} as PTX" for one in targets["ptx"])])
        yield (
            "card-old",
            f"{card['name']} is of compute capability {number}, and the wheel holds code for {names} alone",
            f"build the wheel with {number} among its targets, or test it on a card that it is for",
        )
    if card and NO_IMAGE in (told["error"] or ""):
        yield (
            "card-old",
            "{} is of compute capability {}.{}, for which the torch here holds no code".format(
                card["name"], *card["capability"]
            ),
            "test beside a torch that is for this card, or on a card that this torch is for",
        )
    if told["error"] or not card:
        yield (
            "no-device",
            "the driver is here, and no GPU can be used: " + (told["error"] or "it shows none"),
            "see what nvidia-smi says, and whether CUDA_VISIBLE_DEVICES hides it",
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
