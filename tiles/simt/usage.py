"""Which tiles take a kernel's registers and shared memory: what resource errors show, by the user's names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Block, Op, Value
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.drawn import name_of, tile_offsets

ROWS = 8


@dataclass(frozen=True)
class Use:
    """One tile and what it takes: registers of each lane, or bytes of shared memory."""

    name: str
    type: str
    amount: int
    loc: Loc | None


def registers_in_use(lw: Lowering) -> tuple[list[Use], Op | None]:
    """The tiles that are alive where most registers are, largest first, and the op there.

    By the lifetimes of the kernel's own values: the compiler adds addresses and temporaries, and may reorder.
    """
    lifetimes = _Lifetimes(lw)
    lifetimes.visit(lw.kernel.body)
    best = max(range(lifetimes.position + 1), key=lifetimes.total, default=0)
    op = lifetimes.ops.get(best)
    alive = [use for value in lifetimes.alive(best) if (use := _use(lw, value)).amount]
    return sorted(alive, key=_amount, reverse=True), op


def shared_in_use(lw: Lowering) -> list[Use]:
    """The tiles in shared memory, largest first, and what conversions and reductions need beside them."""
    uses = [_shared_use(lw, value) for value in lw.shared]
    if lw.scratch_bytes:
        uses.append(Use("exchange between lanes", "", lw.scratch_bytes, None))
    return sorted(uses, key=_amount, reverse=True)


def _amount(use: Use) -> int:
    return use.amount


def table(uses: Iterable[Use], unit: str) -> str:
    """Names, types, amounts and lines in columns; the small ones together in one row."""
    listed = list(uses)
    rows = [(u.name, u.type, str(u.amount), str(u.loc or "")) for u in listed[:ROWS]]
    if len(listed) > ROWS:
        rest = listed[ROWS:]
        rows.append((f"{len(rest)} smaller ones", "", str(sum(u.amount for u in rest)), ""))
    rows.insert(0, ("tile", "type", unit, "defined at"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        f"    {n:<{widths[0]}}  {t:<{widths[1]}}  {a:>{widths[2]}}  {where}".rstrip() for n, t, a, where in rows
    )


def _registers(lw: Lowering, value: Value) -> int:
    """32-bit registers that a lane needs for a value.

    Masks of bools lie in scalar registers; what is broadcast or expanded is what it was before.
    """
    tile, op = value.tile, lw.definitions.get(value)
    if tile.dtype.name == "bool" or (op is not None and op.name in ("broadcast", "expand_dims")):
        return 0
    return -(-len(lw.layouts[value].items) * tile.dtype.bits // 32)


def _defined_at(lw: Lowering, value: Value) -> Loc | None:
    op = lw.definitions.get(value)
    return op.loc if op is not None else None


def _use(lw: Lowering, value: Value) -> Use:
    return Use(name_of(value, lw), str(value.tile), _registers(lw, value), _defined_at(lw, value))


def _shared_use(lw: Lowering, value: Value) -> Use:
    size = int(tile_offsets(lw.shared[value]).max()) + value.tile.dtype.nbytes
    return Use(name_of(value, lw), str(value.tile), -(-size // 128) * 128, _defined_at(lw, value))


@dataclass
class _Lifetimes:
    """From which position to which each storage is alive; values that a loop or product updates in place share one."""

    lw: Lowering
    position: int = 0
    ops: dict[int, Op] = field(default_factory=dict)
    _first: dict[Value, int] = field(default_factory=dict)
    _last: dict[Value, int] = field(default_factory=dict)
    _same: dict[Value, Value] = field(default_factory=dict)
    _shown: dict[Value, Value] = field(default_factory=dict)

    def visit(self, block: Block) -> None:
        """Walk the ops in order."""
        for op in block.ops:
            self.position += 1
            self.ops[self.position] = op
            start = self.position
            self._touch(op.operands)
            self._tie(op)
            for region in op.regions:
                self.position += 1  # what is carried takes the place of what it began with
                self.ops[self.position] = op
                self._touch(region.args)
                self.visit(region)
            if op.name in ("for", "while"):
                self._extend(start, {self._storage(a) for region in op.regions for a in region.args})
            self._touch(op.results)

    def alive(self, position: int) -> list[Value]:
        """A value for each storage that is alive at a position, one that the user has named if there is any."""
        found = [v for v, first in self._first.items() if first <= position <= self._last[v]]
        return [self._shown.get(v, v) for v in found]

    def total(self, position: int) -> int:
        """Registers of a lane for them."""
        return sum(_registers(self.lw, value) for value in self.alive(position))

    def _storage(self, value: Value) -> Value:
        while value in self._same:
            value = self._same[value]
        return value

    def _touch(self, values: Sequence[Value]) -> None:
        for value in values:
            if value in self.lw.layouts:
                storage = self._storage(value)
                self._first.setdefault(storage, self.position)
                self._last[storage] = self.position

    def _extend(self, start: int, carried: set[Value]) -> None:
        """What a loop carries, or was there before and is used in it, is needed until its last iteration."""
        for storage, first in self._first.items():
            if storage in carried or first <= start < self._last[storage]:
                self._last[storage] = self.position

    def _tie(self, op: Op) -> None:
        """Values that lie in the same registers: the named one stands for them."""
        if op.name == "mma":
            self._join(op.result, op.operands[0])
        elif op.name == "for":
            (body,) = op.regions
            for inside, after, result in zip(body.args[1:], body.terminator.operands, op.results, strict=True):
                self._join(after, inside)
                self._join(result, inside)

    def _join(self, value: Value, other: Value) -> None:
        a, b = self._storage(value), self._storage(other)
        if a is not b and a in self.lw.layouts and b in self.lw.layouts:
            self._same[a] = b
            members = (self._shown.get(b, b), self._shown.get(a, a), value)
            self._shown[b] = max(members, key=lambda v: (v.name is not None, v in self.lw.definitions))
            if a in self._first:
                self._first[b] = min(self._first.pop(a), self._first.get(b, self.position))
                self._last[b] = max(self._last.pop(a), self._last.get(b, 0))
