"""The gate `bench`: an operator's time on the device beside its reference, and against the last accepted one."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from gates_runner import GateFault, sibling

if TYPE_CHECKING:
    from collections.abc import Callable

    from gates_runner import Unit

ROUNDS, CALLS = 12, 10
# Seconds from which a call is made once a round: a plain reference may loop over its elements.
SLOW = 0.1
# Cycles that the device waits while the host launches a round, so that no time of the host's is in what is measured.
AHEAD = 20_000_000
FLUSH = 256 << 20  # bytes, more than any card's L2
SIGNIFICANT = 0.001
# What an event tells apart; a shorter difference is none.
RESOLUTION = 0.001  # milliseconds


def pick(unit: Unit) -> tuple[str, Any, Callable[[], Any]]:
    """(name, sample, the reference's call): `bench_samples`' first where the module offers it, else the largest."""
    values, torch = sibling("gates_values"), unit.torch
    offered = getattr(unit.samples, "bench_samples", None)
    drawn = list(offered(unit.operator, unit.device, unit.dtype)) if offered else []
    drawn = drawn or [one for _, one in unit.drawn(unit.dtype)]
    if not drawn:
        raise GateFault("there is no sample to time")
    sample = max(drawn, key=lambda one: sum(part.numel() for part in values.tensors(torch, one.args)))
    reference = getattr(unit.operator, "reference", None)
    call = (lambda: reference(*sample.args)) if callable(reference) else sample.reference
    if not callable(reference):
        unit.leave_out("time beside the same in plain torch: without `reference` of the operator it is the sample's")
    return getattr(sample, "name", "sample"), sample, call


def _warmed(torch: Any, call: Callable[[], Any]) -> int:
    """Call it until it is warm; how many calls of it a round has."""
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    if time.perf_counter() - start > SLOW:
        return 1
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    return CALLS


def times(torch: Any, candidates: dict[str, Callable[[], Any]]) -> tuple[dict[str, list[float]], set[str]]:
    """Milliseconds on the device of single calls, in turn, each with a cold L2.

    And whose times hold the host's too: the device had come to the last call before it was launched.
    """
    flush = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
    calls = {name: _warmed(torch, call) for name, call in candidates.items()}
    measured: dict[str, list[float]] = {name: [] for name in candidates}
    awaited: set[str] = set()
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            pairs = []
            torch.cuda._sleep(AHEAD)
            for _ in range(calls[name]):
                flush.zero_()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                call()
                end.record()
                pairs.append((start, end))
            if pairs[-1][0].query():
                awaited.add(name)
            torch.cuda.synchronize()
            measured[name] += [start.elapsed_time(end) for start, end in pairs]
    return measured, awaited


def spread(row: list[float]) -> dict[str, Any]:
    """Median, quartiles, and the values themselves for a later comparison."""
    q1, median, q3 = statistics.quantiles(row, n=4)
    return {"median": median, "q1": q1, "q3": q3, "values": [round(one, 6) for one in row]}


def slower(now: list[float], before: list[float]) -> float:
    """The probability that values so much larger come by chance: Mann and Whitney's U, one-sided, ties shared.

    The normal approximation with a correction for ties, good from about 8 values a side:
    https://doi.org/10.1214/aoms/1177730491
    """
    pooled = sorted([(one, 0) for one in now] + [(one, 1) for one in before])
    ranks, ties, start = 0.0, 0, 0
    while start < len(pooled):
        end = start
        while end < len(pooled) and pooled[end][0] == pooled[start][0]:
            end += 1
        count = end - start
        ranks += (start + 1 + end) / 2 * sum(1 for _, side in pooled[start:end] if side == 0)
        ties += count**3 - count
        start = end
    a, b, both = len(now), len(before), len(pooled)
    u = ranks - a * (a + 1) / 2
    variance = a * b / 12 * (both + 1 - ties / (both * (both - 1)))
    if variance <= 0:
        return 1.0
    return 1.0 - statistics.NormalDist().cdf((u - a * b / 2 - 0.5) / variance**0.5)


def bench(unit: Unit) -> None:
    """Time it, and hold it against what was accepted for this card."""
    torch = unit.torch
    name, sample, reference = pick(unit)
    unit.at(f"timing {name}")
    measured, awaited = times(torch, {"operator": lambda: unit.operator.op(*sample.args), "reference": reference})
    for whose in sorted(awaited):
        unit.leave_out(f"times of the device alone: those of the {whose} hold the host's, which did not keep ahead")
    own, other = spread(measured["operator"]), spread(measured["reference"])
    card = torch.cuda.get_device_name()
    unit.found.update(card=card, sample=name, milliseconds=own, reference=other)
    unit.found["of_reference"] = own["median"] / other["median"]
    judge(unit, card, name, own)


def judge(unit: Unit, card: str, sample: str, own: dict[str, Any]) -> None:
    """Raises GateFault for a time beyond the threshold, significantly, by more than an event tells apart."""
    accepted = unit.job["baseline"]
    if accepted is None or accepted["card"] != card or unit.name not in accepted["operators"]:
        unit.leave_out(f"comparison with the last accepted time: none is known of it on {card}")
        return
    if (other := accepted["operators"][unit.name]["sample"]) != sample:
        unit.leave_out(f"comparison with the last accepted time: that is of the sample {other}, and this of {sample}")
        return
    before = accepted["operators"][unit.name]["milliseconds"]
    ratio, chance = own["median"] / before["median"], slower(own["values"], before["values"])
    unit.found.update(of_accepted=ratio, chance=chance)
    allowed = 1 + unit.job["threshold"]
    if ratio > allowed and chance < SIGNIFICANT and own["median"] - before["median"] > RESOLUTION:
        raise GateFault(
            f"it takes {own['median']:.4f} ms, {ratio:.2f} times the accepted {before['median']:.4f} ms, "
            f"and {allowed:.2f} times is allowed"
        )
