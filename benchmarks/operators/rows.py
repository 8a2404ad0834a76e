"""What is measured and what it is held to, without torch: each row of the report before it has a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

OURS = "fusedops"
WORKS = ("forward", "backward", "small", "nms", "attention", "edge", "matmul", "cpu")


@dataclass(frozen=True, kw_only=True)
class Target:
    """At least so many times as fast as another candidate, by time or by bytes a second."""

    against: str
    at_least: float
    by: Literal["time", "bytes"] = "time"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One call of one operator at one size. `line` is the line of the documentation's table that it belongs to."""

    work: str
    line: str
    operator: str
    what: str = ""
    size: str
    device: Literal["cuda", "cpu"] = "cuda"
    targets: tuple[Target, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.operator} {self.what}".strip() + f", {self.size}"


COPY = {"forward": Target(against="copy", at_least=1.0, by="bytes")}
COPY["backward"] = COPY["forward"]
COMPILED = {
    "forward": Target(against="torch.compile", at_least=1.05),
    "backward": Target(against="torch.compile", at_least=1.0),
}
# Whose eager composition makes three passes over memory; of two passes or one it cannot be 2.8 times as slow.
THREE_PASSES = "scale_clamp_add"
POINTWISE = ("scale_clamp_add", "clip_add", "affine", "vector_add")
COMPOSED = POINTWISE[:3]  # of more than one eager operator


def every() -> tuple[Row, ...]:
    """All rows, in the order of the report."""
    return (*_pointwise(), *_small(), *_nms(), *_attention(), *_edge(), *_matmul(), *_cpu())


def _pointwise() -> Iterator[Row]:
    for work, operators in (("forward", POINTWISE), ("backward", COMPOSED)):
        for dtype in ("float32", "bfloat16"):
            for operator in operators:
                eager = [Target(against="eager", at_least=2.8)] if (work, operator) == ("forward", THREE_PASSES) else []
                yield Row(
                    work=work,
                    line=f"pointwise {work}, 2^28 {dtype}",
                    operator=operator,
                    what=work,
                    size=f"2^28 {dtype}",
                    targets=(COPY[work], COMPILED[work], *eager),
                    how={"exponent": 28, "dtype": dtype},
                )


def _small() -> Iterator[Row]:
    for gradients in (False, True):
        for operator in COMPOSED if gradients else POINTWISE:
            target = (
                Target(against="eager", at_least=1.0)
                if gradients
                else Target(against="torch.add", at_least=round(1 / 1.8, 4))
            )
            what = "forward and backward" if gradients else "forward"
            yield Row(
                work="small",
                line=f"a small call {what}, 1,024 float32",
                operator=operator,
                what=what,
                size="1,024 float32",
                targets=(target,),
                how={"elements": 1024, "gradients": gradients},
            )


def _nms() -> Iterator[Row]:
    for count, ratio in ((1_000, 1.2), (5_000, 2.0), (20_000, 4.0)):
        for kind in ("scattered", "clustered"):
            yield Row(
                work="nms",
                line=f"nms, {count:,} boxes",
                operator="nms",
                size=f"{count:,} {kind} boxes",
                targets=(Target(against="torchvision", at_least=ratio),),
                how={"count": count, "kind": kind},
            )


def _attention() -> Iterator[Row]:
    for length in (4_096, 16_384):
        for gradients in (False, True):
            what = "forward and backward" if gradients else "forward"
            yield Row(
                work="attention",
                line=f"local_attention {what}, bfloat16 2 × 16 × {length:,} × 64, window 256",
                operator="local_attention",
                what=what,
                size=f"bfloat16 2 × 16 × {length:,} × 64, window 256",
                targets=(Target(against="SDPA", at_least=3.0), Target(against="flex_attention", at_least=1.0)),
                how={"length": length, "window": 256, "gradients": gradients},
            )


def _edge() -> Iterator[Row]:
    yield Row(
        work="edge",
        line="edge_enhance 3 × 3, float32 16 × 3 × 2048 × 2048",
        operator="edge_enhance",
        size="float32 16 × 3 × 2048 × 2048",
        targets=(Target(against="copy", at_least=0.85, by="bytes"), Target(against="eager", at_least=9.0)),
        how={"shape": (16, 3, 2048, 2048)},
    )


def _matmul() -> Iterator[Row]:
    for dtype, ratio in (("float32", 0.85), ("bfloat16", 0.80)):
        for side in (4_096, 8_192):
            yield Row(
                work="matmul",
                line=f"matmul, {dtype} {side:,}",
                operator="matmul",
                size=f"{dtype} {side:,}",
                targets=(Target(against="cuBLAS", at_least=ratio),),
                how={"side": side, "dtype": dtype},
            )


def _cpu() -> Iterator[Row]:
    for operator in POINTWISE:
        yield Row(
            work="cpu",
            line="pointwise forward on the CPU, 2^24 float32, two threads",
            operator=operator,
            what="forward on the CPU",
            size="2^24 float32, two threads",
            device="cpu",
            targets=(Target(against="eager", at_least=2.0),) if operator in COMPOSED else (),
            how={"exponent": 24, "dtype": "float32", "threads": 2},
        )


TINY = {"exponent": 12, "elements": 64, "count": 300, "length": 600, "window": 40, "side": 96, "shape": (2, 3, 9, 11)}


def rehearsed(row: Row, device: Literal["cuda", "cpu"]) -> Row:
    """The row at a tiny size, of odd shapes, and held to nothing."""
    how = {name: TINY.get(name, value) for name, value in row.how.items()}
    size = f"tiny, in place of {row.size}"
    return replace(row, size=size, device=row.device if device == "cuda" else "cpu", targets=(), how=how)


def judged(
    targets: Sequence[Target], times: Mapping[str, Mapping[str, float]], amounts: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Each target with the ratio of medians and whether it is met; None where the other was not timed.

    By bytes: `amounts` are those that each candidate reads and writes.
    """
    told = []
    for target in targets:
        ratio = None
        if OURS in times and target.against in times:
            ratio = times[target.against]["median"] / times[OURS]["median"]
            if target.by == "bytes":
                ratio *= amounts[OURS] / amounts[target.against]
        met = None if ratio is None else ratio >= target.at_least
        told.append({**asdict(target), "ratio": ratio, "met": met})
    return told


def begun(row: Row) -> dict[str, Any]:
    """A row of the report that has no result yet."""
    return {
        "work": row.work,
        "line": row.line,
        "operator": row.operator,
        "size": row.size,
        "name": row.name,
        "device": row.device,
        "result": "not-run",
        "reason": None,
        "shrunk": None,
        "unit": None,
        "times": {},
        "amounts": {},
        "amount": None,
        "check": None,
        "targets": judged(row.targets, {}, {}),
        "left_out": {},
    }
