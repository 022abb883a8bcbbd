"""Vector work of a scheduled loop: what it costs, and how it is shared out over the memory clusters of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.rescaling import is_rescaling
from warpwave.backends.amd.rates import CU_RATES, SLOT
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.elementwise import PACKED, is_item_by_item

TRANSCENDENTAL = frozenset(["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "div"])
RENAMING = frozenset(["constant", "broadcast", "expand_dims", "squeeze", "transpose", "neg", "dim"])
HALVED = frozenset(["reduce_max", "reduce_min"])  # v_max3 takes two items at a time
ACROSS = 8  # instructions of a reduction that go across lanes, with what they wait for
PORTION = 2  # items of a portion: those that one instruction rounds to 16 bits
HALVES = 2  # portions of packed work
MANY = 16  # items of a reduction, or a multiple of them, that are worth being packed: whole vectors in each half


@dataclass(frozen=True)
class Portion:
    """An op on registers, or one of the equal portions of the items that it makes; `packed`: two at a time."""

    op: Op
    number: int = 0
    of: int = 1
    packed: bool = False

    def items(self, lw: AmdLowering) -> int:
        """Items of the result that it makes; of a reduction those that it takes."""
        value = self.op.operands[0] if self.op.name.startswith("reduce_") else self.op.result
        return len(lw.layout(value).items) // self.of


def can_pack(lw: AmdLowering, op: Op) -> bool:
    """Whether an op has instructions that make two items at a time, and enough for that."""
    if op.name == "reduce_sum":
        return op.operands[0].tile.dtype.name == "f32" and len(lw.layout(op.operands[0]).items) % MANY == 0
    if op.name not in PACKED or op.result.tile.dtype.name != "f32" or is_rescaling(lw, op):
        return False
    layout = lw.layout(op.result)
    return layout.width > 1 and len(layout.items) % (HALVES * layout.width) == 0 and is_item_by_item(lw, op)


def portions_of(lw: AmdLowering, op: Op, *, packed: bool = False) -> list[Portion]:
    """An op's portions: several where its items need nothing but the same items of its operands."""
    if packed and can_pack(lw, op):
        return [Portion(op, number, HALVES, packed=True) for number in range(HALVES)]
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
        items = portion.items(lw)
        across = ACROSS if portion.number == portion.of - 1 else 0
        return across + (items // 2 if op.name in HALVED or portion.packed else items)
    items = sum(len(lw.layout(r).items) for r in op.results if r in lw.layouts) // portion.of
    return items // 2 if portion.packed or (op.name == "cast" and op.result.tile.dtype.nbytes == 2) else items


@dataclass(frozen=True)
class Slot:
    """A cluster that may have vector work: which, how much of it in clocks, and whether among matrix instructions.

    Or the end of a cluster, for `packed` work: there the other group's matrix instructions are over.
    """

    cluster: str
    clocks: float
    mixed: bool = False
    packed: bool = False


def share_out(
    lw: AmdLowering, portions: Sequence[Portion], slots: Sequence[Slot], earliest: Mapping[Value, int]
) -> list[list[Portion]]:
    """The portions, in their order, over the slots; `earliest` says from which slot on some values are there.

    Among matrix instructions there is no room for what branches. Packed work is in the first end of a cluster that is
    not before its operands; what it makes is used from the next slot on, if there is one.
    """
    places = _Places(lw, slots, cost(lw, [p for p in portions if not p.packed])[1])
    found: list[list[Portion]] = [[] for _ in slots]
    there: dict[tuple[Value, int, int], int] = {}
    for portion in portions:
        at = places.of(portion, max(_ready(portion, there, earliest), default=0))
        found[at].append(portion)
        for result in portion.op.results:
            there[result, portion.number, portion.of] = at
    return found


@dataclass
class _Places:
    """Where the next portion goes: slots are filled evenly, by the clocks that they have for all of them."""

    lw: AmdLowering
    slots: Sequence[Slot]
    total: int
    spent: float = 0.0

    def of(self, portion: Portion, ready: int) -> int:
        """The number of its slot, not before `ready`."""
        slots, clocks = self.slots, cost(self.lw, [portion])[1]
        ends = [at for at, slot in enumerate(slots) if slot.packed]
        if portion.packed:  # nothing of the step waits for a reduction's result
            wanted = portion.number - portion.of if portion.op.name.startswith("reduce_") else portion.number
            return max(ends[wanted], next(at for at in ends if at >= ready))
        at = ready if ends and portion.of == 1 and clocks <= SLOT else max(self._even(clocks), ready)
        self.spent += clocks
        while at + 1 < len(slots) and not self._suits(portion, slots[at]):
            at += 1
        return at

    def _even(self, clocks: int) -> int:
        plain = [at for at, slot in enumerate(self.slots) if not slot.packed]
        scale = self.total / max(1.0, sum(slot.clocks for slot in self.slots))
        ends = [scale * sum(self.slots[at].clocks for at in plain[: i + 1]) for i in range(len(plain))]
        return plain[sum(end <= self.spent + clocks / 2 for end in ends[:-1])]

    def _suits(self, portion: Portion, slot: Slot) -> bool:
        return not slot.packed and not (slot.mixed and (is_rescaling(self.lw, portion.op) or slot.clocks == 0))


def _ready(
    portion: Portion, there: Mapping[tuple[Value, int, int], int], earliest: Mapping[Value, int]
) -> Iterator[int]:
    """From which place on each operand is there: of one in portions, those that have items of this one."""
    for value in portion.op.operands:
        if value in earliest:
            yield earliest[value]
        for (other, number, of), slot in there.items():
            if (
                other is value
                and number * portion.of < (portion.number + 1) * of
                and portion.number * of < (number + 1) * portion.of
            ):
                yield slot
