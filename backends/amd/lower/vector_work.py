"""Vector work of a scheduled loop: what it costs, and how it is shared out over the memory clusters of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.rescaling import is_rescaling
from warpwave.backends.amd.rates import CU_RATES, SLOT
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.elementwise import is_item_by_item

TRANSCENDENTAL = frozenset(["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "div"])
RENAMING = frozenset(["constant", "broadcast", "expand_dims", "squeeze", "transpose", "neg", "dim"])
HALVED = frozenset(["reduce_max", "reduce_min"])  # v_max3 takes two items at a time
ACROSS = 8  # instructions of a reduction that go across lanes, with what they wait for
PORTION = 2  # items of a portion: those that one instruction rounds to 16 bits


@dataclass(frozen=True)
class Portion:
    """An op on registers, or one of the equal portions of the items that it makes."""

    op: Op
    number: int = 0
    of: int = 1

    def items(self, lw: AmdLowering) -> int:
        """Items of the result that it makes."""
        return len(lw.layout(self.op.result).items) // self.of


def portions_of(lw: AmdLowering, op: Op) -> list[Portion]:
    """An op's portions: several where its items need nothing but the same items of its operands."""
    if not is_item_by_item(lw, op) or is_rescaling(lw, op):
        return [Portion(op)]
    items = len(lw.layout(op.result).items)
    count = items // PORTION if items % PORTION == 0 else 1
    return [Portion(op, number, count) for number in range(count)]


def cost(lw: AmdLowering, portions: Sequence[Portion]) -> tuple[int, int]:
    """Instructions of vector work, and their clocks."""
    each = [(p.op, _instructions(lw, p)) for p in portions]
    slow = CU_RATES[lw.target.name].transcendental
    clocks = sum(n * (slow if op.name in TRANSCENDENTAL else SLOT) for op, n in each)
    return sum(n for _, n in each), clocks


def _instructions(lw: AmdLowering, portion: Portion) -> int:
    op = portion.op
    if op.name in RENAMING or is_rescaling(lw, op):
        return 0
    if op.name.startswith("reduce_"):
        items = len(lw.layout(op.operands[0]).items)
        return ACROSS + (items // 2 if op.name in HALVED else items)
    items = sum(len(lw.layout(r).items) for r in op.results if r in lw.layouts) // portion.of
    return items // 2 if op.name == "cast" and op.result.tile.dtype.nbytes == 2 else items


@dataclass(frozen=True)
class Slot:
    """A cluster that may have vector work: which, how much of it in clocks, and whether among matrix instructions."""

    cluster: str
    clocks: float
    mixed: bool = False


def share_out(
    lw: AmdLowering, ops: Sequence[Op], slots: Sequence[Slot], earliest: Mapping[Value, int]
) -> dict[str, tuple[Portion, ...]]:
    """The ops, in their order, over the slots; `earliest` says from which slot on some values are there.

    Among matrix instructions there is no room for what branches.
    """
    portions = [portion for op in ops for portion in portions_of(lw, op)]
    scale = cost(lw, portions)[1] / max(1.0, sum(slot.clocks for slot in slots))
    ends = [scale * sum(slot.clocks for slot in slots[: i + 1]) for i in range(len(slots))]
    spent = 0.0
    found: list[list[Portion]] = [[] for _ in slots]
    there: dict[tuple[Value, int, int], int] = {}
    for portion in portions:
        clocks = cost(lw, [portion])[1]
        even = sum(end <= spent + clocks / 2 for end in ends[:-1])
        spent += clocks
        at = max([even, *_ready(portion, there, earliest)])
        while slots[at].mixed and is_rescaling(lw, portion.op):
            at += 1
        found[at].append(portion)
        for result in portion.op.results:
            there[result, portion.number, portion.of] = at
    return {slot.cluster: tuple(work) for slot, work in zip(slots, found, strict=True)}


def _ready(
    portion: Portion, there: Mapping[tuple[Value, int, int], int], earliest: Mapping[Value, int]
) -> Iterator[int]:
    """From which place on each operand is there: of one in as many portions, the same portion."""
    for value in portion.op.operands:
        if value in earliest:
            yield earliest[value]
        for (other, number, of), slot in there.items():
            if other is value and (of != portion.of or number == portion.number):
                yield slot
