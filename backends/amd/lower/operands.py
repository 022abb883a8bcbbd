"""Operands of products: fragments from LDS or registers, for each block of rows (a) or columns (b)."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, replace

from warpwave.backends.amd.arch import Mfma
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.depth import DepthOrder, can_transpose
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.writer import ctype


@dataclass(frozen=True)
class Operand:
    """One operand of a product as its fragments are read: which, from where, and in which order of depth.

    `places` are the blocks' first rows (a) or columns (b); `depth_last` says whether depth runs along the rows.
    """

    op: Op
    which: str
    value: Value
    mfma: Mfma
    order: DepthOrder
    places: list[int]
    depth: int
    depth_last: bool

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return self.value.tile.dtype

    @property
    def per_lane(self) -> int:
        """Elements of a fragment."""
        return len(self.order.merged[0])

    @property
    def kind(self) -> str:
        """The elements' C type."""
        return ctype(self.dtype)

    @property
    def is_widened(self) -> bool:
        """Whether the instruction takes another format, f16, than the one that is stored."""
        return self.dtype.name != self.mfma.a and self.dtype.is_fp8 and self.mfma.a == "f16"

    def item(self, e: str) -> str:
        """C suffix of an element of a fragment; a fragment of one element is no vector."""
        return f"[{e}]" if self.per_lane > 1 else ""

    def firsts(self, run: int) -> list[int]:
        """The constant part of the depth of each read of `run` elements, over all steps."""
        return [group[e] for group in self.order.merged for e in range(0, self.per_lane, run)]

    def deep(self, number: int, parts: int) -> Operand:
        """One of the equal parts of its depth."""
        count = len(self.order.items) // parts
        items = self.order.items[number * count : (number + 1) * count]
        return replace(self, order=replace(self.order, items=items))

    def waves(self, lw: AmdLowering) -> list[str]:
        """What the wave adds to the row or column, as C terms."""
        axis = 0 if self.which == "a" else 1
        return [
            f"{digit} * {part[axis]}" for digit, part in lw.wave_digits(lw.layout(self.op.result).waves) if part[axis]
        ]


def declare_fragments(lw: AmdLowering, operand: Operand) -> None:
    """Declare the fragments of one operand for step s, not yet filled."""
    lw.body.line(f"vec<{operand.kind}, {operand.per_lane}> {operand.which}[{len(operand.places)}];")


def read_fragments(lw: AmdLowering, operand: Operand, shared: SharedTile | None) -> None:
    """Fill the fragments of one operand for step s."""
    if shared is not None and is_transposing(lw, operand):
        _read_transposed(lw, operand, shared)
    elif shared is not None:
        _read_rows(lw, operand, shared)
    else:
        _take_registers(lw, operand)
    with lw.body.each(len(operand.places)):
        _mask_depth(lw, operand)


def take_step(lw: AmdLowering, operand: Operand) -> None:
    """Declare the fragments of one instruction's depth, step p of those that were read together."""
    per_lane, count = len(operand.order.items[0]), len(operand.places)
    step = f"{operand.which}[i]"
    if operand.order.together > 1:
        step = f"part<{operand.kind}, {per_lane}>({step}, p * {per_lane})"
    kind = operand.kind
    if operand.is_widened:
        kind, step = "_Float16", f"f16_from_codes<{operand.dtype.name}_format, {per_lane}>({step})"
    lw.body.line(f"vec<{kind}, {per_lane}> {operand.which}_step[{count}];")
    lw.body.line(f"EACH(i, {count}) {operand.which}_step[i] = {step};")


def _take_registers(lw: AmdLowering, operand: Operand) -> None:
    total = len(operand.order.flat)
    with lw.body.each(len(operand.places)):
        source = f"{lw.names[operand.value]}.get(i * {total} + s * {operand.per_lane} + e)"
        lw.body.line(f"EACH(e, {operand.per_lane}) {operand.which}[i]{operand.item('e')} = {source};")


# -- from LDS, rows or elements ------------------------------------------------------------------------


def _read_rows(lw: AmdLowering, operand: Operand, shared: SharedTile) -> None:
    """Elements that are neighbours in LDS, or one by one where depth runs across rows."""
    kind, which = operand.kind, operand.which
    along_rows = operand.depth_last != (shared.block is not None)  # whether depth runs along the rows of the LDS
    run = operand.order.run(operand.dtype) if along_rows else 1
    reads = operand.per_lane // run
    with lw.body.each(len(operand.places)), lw.body.each(reads, "e"):
        address = _row_address(lw, operand, shared, operand.firsts(run), f"s * {reads} + e", along_rows=along_rows)
        if run == 1:
            lw.body.line(f"{which}[i]{operand.item('e')} = *(const {kind} *)(lds + {address});")
        elif reads == 1:
            lw.body.line(f"{which}[i] = *(const vec<{kind}, {run}> *)(lds + {address});")
        else:
            lw.body.line(f"const auto x = *(const vec<{kind}, {run}> *)(lds + {address});")
            lw.body.line(f"EACH(q, {run}) {which}[i]{operand.item(f'e * {run} + q')} = x[q];")


def _row_address(
    lw: AmdLowering, operand: Operand, shared: SharedTile, firsts: list[int], read: str, *, along_rows: bool
) -> str:
    """C expression of where read number `read` of block i begins."""
    index = " + ".join([f"(lane & {operand.mfma.m - 1})", *operand.waves(lw)])
    depth = f"({operand.order.lane} + {lw.table(firsts)}[READ])"
    if along_rows and not any(shared.masks[operand.mfma.m.bit_length() - 1 :]):
        # Blocks are whole multiples of the swizzle's period, so the lane's part is the same for all of them.
        lane = row_addresses(lw, operand, shared, firsts)
        return f"{shared.shift} + {lane}[{read}] + {lw.table(operand.places)}[i] * {shared.pitch}"
    place = f"({index} + {lw.table(operand.places)}[i])"
    at = (place, depth) if operand.depth_last else (depth, place)
    return shared.address(*at).replace("READ", read)


def row_addresses(lw: AmdLowering, operand: Operand, shared: SharedTile, firsts: list[int]) -> str:
    """The name of the lane's byte offsets, of block 0, for each read of `firsts`; blocks add multiples of the pitch."""
    index = " + ".join([f"(lane & {operand.mfma.m - 1})", *operand.waves(lw)])
    depth = f"({operand.order.lane} + {lw.table(firsts)}[READ])"
    at = (f"({index})", depth) if operand.depth_last else (depth, f"({index})")
    return lw.lane_addresses(f"{shared.base} + {shared.within(*at)}", len(firsts))


# -- from LDS, transposing ------------------------------------------------------------------------------


def _read_transposed(lw: AmdLowering, operand: Operand, shared: SharedTile) -> None:
    """Runs of depth for one column a lane, from rows that the lanes bring 8 bytes at a time.

    In a group of 16 lanes with E = 8 bytes / element size, lane l brings E columns of row l E / 16, and
    receives column l of E rows (CDNA4 ISA, LDS transpose loads). Written as assembly, because the compiler
    waits for all direct loads before such a read; the wait that follows names every register that it makes ready.
    """
    raw = f"{operand.which}_raw"
    lw.body.line(f"vec<short, 4> {raw}[{transposed_reads(operand)}];")
    issue_transposed(lw, operand, shared, raw)
    tied = ", ".join(f'"+v"({raw}[{i}])' for i in range(transposed_reads(operand)))
    lw.body.line(f'asm volatile("s_waitcnt lgkmcnt(0)" : {tied} : : "memory");')
    take_transposed(lw, operand, raw)


def is_transposing(lw: AmdLowering, operand: Operand) -> bool:
    """Whether an operand is read from LDS by transposing reads."""
    return not operand.depth_last and can_transpose(lw.target, operand.order, operand.dtype)


def transposed_reads(operand: Operand) -> int:
    """How many reads bring the fragments of a step."""
    return operand.per_lane * operand.dtype.nbytes // 8 * len(operand.places)


def issue_transposed(lw: AmdLowering, operand: Operand, shared: SharedTile, raw: str) -> None:
    """The reads of step s into the array `raw`; nothing may use it before a wait."""
    run = 8 // operand.dtype.nbytes
    reads = operand.per_lane // run
    lane, offset = _transposed_places(lw, operand, shared, run, reads)
    with lw.body.each(reads, "e"), lw.body.each(len(operand.places)):
        address = f"lds_address(lds) + {shared.shift} + {lane}"
        lw.body.line(f"{raw}[i * {reads} + e] = read_transposed<{operand.dtype.bits}>({address}, {offset});")


def take_transposed(lw: AmdLowering, operand: Operand, raw: str) -> None:
    """The fragments of step s from what its reads have brought."""
    reads = operand.per_lane * operand.dtype.nbytes // 8
    with lw.body.each(len(operand.places)):
        lw.body.line(f"vec<short, {4 * reads}> x;")
        lw.body.line(f"EACH(q, {4 * reads}) x[q] = {raw}[i * {reads} + q / 4][q % 4];")
        lw.body.line(f"{operand.which}[i] = bits<vec<{operand.kind}, {operand.per_lane}>>(x);")


def _transposed_places(lw: AmdLowering, operand: Operand, shared: SharedTile, run: int, reads: int) -> tuple[str, str]:
    """The lane's address for a read, and the read's constant offset, as C expressions of i, s and e."""
    found = transposed_lanes(lw, operand, shared, run)
    period, block = found.period, f"{lw.table(operand.places)}[i - i % {found.period}] * {operand.dtype.nbytes}"
    if found.by_read:
        return f"{found.name}[(s * {reads} + e) * {period} + i % {period}]", block
    offset = f"{lw.table(operand.firsts(run))}[s * {reads} + e] * {shared.pitch} + {block}"
    return f"{found.name}[i % {period}]", offset


@dataclass(frozen=True)
class TransposedLanes:
    """A lane's addresses for transposing reads: those of `period` blocks of columns, by `by_read` for each read."""

    name: str
    period: int
    by_read: bool

    def place(self, operand: Operand, shared: SharedTile, run: int, block: int, read: int) -> tuple[int, int]:
        """Index of the address, and the constant offset, of a read of a block."""
        offset = operand.places[block - block % self.period] * operand.dtype.nbytes
        if self.by_read:
            return read * self.period + block % self.period, offset
        return block % self.period, operand.firsts(run)[read] * shared.pitch + offset


def transposed_lanes(lw: AmdLowering, operand: Operand, shared: SharedTile, run: int) -> TransposedLanes:
    """Declare the lane's addresses.

    Columns beyond the reach of the swizzle's masks, and row bits that it does not look at, are plain additions
    to the address: the instruction's offset. For the rest a lane keeps an address each.
    """
    size, step = operand.dtype.nbytes, operand.mfma.m
    firsts = operand.firsts(run)
    period = 1
    while period * step * size <= max(shared.masks, default=0):
        period *= 2
    looked_at = sum(1 << b for b, mask in enumerate(shared.masks) if mask)
    across = 16 // run
    row = f"{operand.order.lane} + ((lane & 15) >> {across.bit_length() - 1})"
    own = f"((lane & {step - 1}) >> 4) * 16 + (lane & {across - 1}) * {run}"
    column = " + ".join([own, *operand.waves(lw)])
    moved = functools.reduce(operator.or_, shared.masks, 0)
    if operand.order.constant_bits(run) & looked_at or any(first * shared.pitch & moved for first in firsts):
        place = shared.within(
            f"({row} + {lw.table(firsts)}[(READ) / {period}])", f"({column} + (READ) % {period} * {step})"
        )
        lane = lw.lane_addresses(f"{shared.base} + {place}", len(firsts) * period)
        return TransposedLanes(lane, period, by_read=True)
    place = shared.within(f"({row})", f"({column} + READ * {step})")
    lane = lw.lane_addresses(f"{shared.base} + {place}", period)
    return TransposedLanes(lane, period, by_read=False)


# -- depth beyond the product ----------------------------------------------------------------------------


def _mask_depth(lw: AmdLowering, operand: Operand) -> None:
    """Items beyond the depth of the product count as 0: what lies there may be anything."""
    order = operand.order
    if order.reach <= operand.depth:
        return None
    unit = max(1, 4 // operand.dtype.nbytes)
    if unit > 1 and order.run(operand.dtype) % unit == 0 and operand.depth % unit == 0:
        return _mask_words(lw, operand, unit)
    k = f"{order.lane} + {lw.table(order.flat)}[s * {operand.per_lane} + e]"
    target = f"{operand.which}[i]{operand.item('e')}"
    return lw.body.line(f"EACH(e, {operand.per_lane}) if ({k} >= {operand.depth}) {target} = zero<{operand.kind}>();")


def _mask_words(lw: AmdLowering, operand: Operand, unit: int) -> None:
    """Items that share a register are all inside or all beyond the depth: one select for them."""
    words, per_lane = operand.per_lane // unit, operand.per_lane
    k = f"{operand.order.lane} + {lw.table(operand.order.flat)}[s * {per_lane} + e * {unit}]"
    lw.body.line(f"auto words = bits<vec<u32, {words}>>({operand.which}[i]);")
    lw.body.line(f"EACH(e, {words}) if ({k} >= {operand.depth}) words{'[e]' if words > 1 else ''} = 0;")
    lw.body.line(f"{operand.which}[i] = bits<vec<{operand.kind}, {per_lane}>>(words);")
