"""Matrix products: operand fragments from shared memory or registers, and the MFMA calls.

The product is computed transposed, D^T = B^T A^T: the tile's b is the instruction's first operand. Both
operands agree on which k each lane and item stands for; where a's registers come from an earlier accumulator,
b is read in that order, so that nothing is shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.backends.amd.layout import LANE_BITS
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.context import SharedTile, lane_terms
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.shared import to_shared
from warpwave.tiles.simt.writer import ctype


@dataclass(frozen=True)
class KOrder:
    """k of a lane's item in a step: `lane` (C expression) plus `items[step][item]`."""

    lane: str
    lane_reach: int
    items: tuple[tuple[int, ...], ...]

    @property
    def flat(self) -> list[int]:
        """All items of all steps."""
        return [k for step in self.items for k in step]


def natural_order(mfma: Mfma, depth: int) -> KOrder:
    """The instruction's own order."""
    per_lane = mfma.k * mfma.m // WAVE
    run = per_lane // mfma.runs
    bits = mfma.m.bit_length() - 1
    parts = [0] * bits + [run << b for b in range(LANE_BITS - bits)]
    one = [e // run * (mfma.k // mfma.runs) + e % run for e in range(per_lane)]
    steps = range(0, -(-depth // mfma.k) * mfma.k, mfma.k)
    return KOrder(" + ".join(lane_terms(parts)), sum(parts), tuple(tuple(s + e for e in one) for s in steps))


def register_order(mfma: Mfma, layout: Layout, accumulator: Layout) -> KOrder | None:
    """The order in which a register operand's items stand for k; None if it does not fit the instruction."""
    bits = mfma.m.bit_length() - 1
    per_lane = mfma.k * mfma.m // WAVE
    rows_fit = all(p == (1 << b, 0) for b, p in enumerate(layout.lanes[:bits]))
    cols_only = all(p[0] == 0 for p in layout.lanes[bits:])
    waves_fit = [(n, (p[0], 0)) for n, p in accumulator.waves] == list(layout.waves)
    rows = list(dict.fromkeys(i[0] for i in layout.items))
    if not (rows_fit and cols_only and waves_fit) or rows != list(dict.fromkeys(i[0] for i in accumulator.items)):
        return None
    per_row = [[i[1] for i in layout.items if i[0] == r] for r in rows]
    by_row = [i[0] for i in layout.items] == [r for r in rows for _ in per_row[0]]
    if not by_row or any(cols != per_row[0] for cols in per_row) or len(per_row[0]) % per_lane:
        return None
    cols = per_row[0]
    steps = tuple(tuple(cols[s : s + per_lane]) for s in range(0, len(cols), per_lane))
    parts = [p[1] for p in layout.lanes]
    return KOrder(" + ".join(lane_terms(parts)) or "0", sum(parts), steps)


def fragment_type(dtype: DType, per_lane: int) -> str:
    """The C type that the MFMA builtin takes."""
    if dtype.name == "f32":
        return "float"
    if dtype.nbytes == 1:
        return {8: "long", 16: "vec<int, 4>", 32: "vec<int, 8>"}[per_lane]
    element = "short" if dtype.name == "bf16" and per_lane == 4 else ctype(dtype)
    return f"vec<{element}, {per_lane}>"


def lower_mma(lw: AmdLowering, op: Op) -> None:
    """All steps of the product, unrolled."""
    acc, a, b = op.operands
    mfma, layout = lw.plan.mmas[op].mfma, lw.layout(op.result)
    depth = a.tile.shape[0 if op.attrs["transpose_a"] else 1]
    order = natural_order(mfma, depth)
    in_registers = None
    if a.tile.space == "register" and not op.attrs["transpose_a"]:
        in_registers = register_order(mfma, lw.layout(a), layout)
    order = in_registers or order
    a_shared = None if in_registers else lw.shared.get(a) or to_shared(lw, a)
    b_shared = lw.shared.get(b) or to_shared(lw, b)
    for shared in (a_shared, b_shared):
        if shared is not None:
            lw.before_shared_read(shared.region)
    start = convert(lw, acc, layout)
    name = lw.declare(op.result)
    lw.body.line(f"{name} = {start};")
    rows = sorted({i[0] for i in layout.items})
    cols = sorted({i[1] // mfma.n * mfma.n for i in layout.items})
    first = _Operand("a", a, order, rows, depth, not op.attrs["transpose_a"])
    second = _Operand("b", b, order, cols, depth, bool(op.attrs["transpose_b"]))
    with lw.body.each(len(order.items), "s"):
        _fragments(lw, op, first, a_shared)
        _fragments(lw, op, second, b_shared)
        with lw.body.each(len(rows), "m"), lw.body.each(len(cols), "n"):
            lw.body.line(f"{name}.v[m * {len(cols)} + n] = {_call(op, mfma, name, len(cols))};")


def _call(op: Op, mfma: Mfma, name: str, cols: int) -> str:
    per_lane = mfma.k * mfma.m // WAVE
    a, b = op.operands[1].tile.dtype, op.operands[2].tile.dtype
    first = f"bits<{fragment_type(b, per_lane)}>(b[n])"
    second = f"bits<{fragment_type(a, per_lane)}>(a[m])"
    value = f"{name}.v[m * {cols} + n]"
    if mfma.mnemonic.endswith("f8f6f4"):
        code = {"fp8e4m3": 0, "fp8e5m2": 1}
        return f"{mfma.builtin}({first}, {second}, {value}, {code[b.name]}, {code[a.name]}, 0, 0, 0, 0)"
    return f"{mfma.builtin}({first}, {second}, {value}, 0, 0, 0)"


@dataclass(frozen=True)
class _Operand:
    """One operand of a product as its fragments are read: which, from where, and in which order of k."""

    which: str
    value: Value
    order: KOrder
    places: list[int]
    depth: int
    depth_last: bool

    @property
    def dtype(self) -> DType:
        return self.value.tile.dtype

    @property
    def per_lane(self) -> int:
        return len(self.order.items[0])

    def item(self, e: str) -> str:
        """C suffix of an element of a fragment; a fragment of one element is no vector."""
        return f"[{e}]" if self.per_lane > 1 else ""


def _fragments(lw: AmdLowering, op: Op, operand: _Operand, shared: SharedTile | None) -> None:
    """Declare and fill the fragments of one operand for step s, one for each block of rows (a) or columns (b)."""
    kind = ctype(operand.dtype)
    lw.body.line(f"vec<{kind}, {operand.per_lane}> {operand.which}[{len(operand.places)}];")
    if shared is not None and not operand.depth_last and _can_read_transposed(lw, operand):
        _read_transposed(lw, op, operand, shared)
        with lw.body.each(len(operand.places)):
            _mask_depth(lw, operand, kind)
        return
    with lw.body.each(len(operand.places)):
        if shared is None:
            total = len(operand.order.flat)
            source = f"{lw.names[operand.value]}.get(i * {total} + s * {operand.per_lane} + e)"
            lw.body.line(f"EACH(e, {operand.per_lane}) {operand.which}[i]{operand.item('e')} = {source};")
        else:
            _read_rows(lw, op, operand, shared)
        _mask_depth(lw, operand, kind)


def _read_rows(lw: AmdLowering, op: Op, operand: _Operand, shared: SharedTile) -> None:
    """Elements that are neighbours in shared memory, or one by one where k runs across rows."""
    kind, which = ctype(operand.dtype), operand.which
    run = _run(operand.order, operand.dtype) if operand.depth_last else 1
    reads = operand.per_lane // run
    index = _index(lw, op, 0 if which == "a" else 1)
    first = [step[e * run] for step in operand.order.items for e in range(reads)]
    with lw.body.each(reads, "e"):
        k = f"({operand.order.lane} + {lw.table(first)}[READ])"
        if operand.depth_last and not any(shared.masks[lw.plan.mmas[op].mfma.m.bit_length() - 1 :]):
            # Blocks are whole multiples of the swizzle's period, so the lane's part is the same for all of them.
            lane = lw.lane_addresses(f"{shared.base} + {shared.within(f'({index})', k)}", len(first))
            address = f"{shared.shift} + {lane}[s * {reads} + e] + {lw.table(operand.places)}[i] * {shared.pitch}"
        else:
            place = f"({index} + {lw.table(operand.places)}[i])"
            at = (place, k) if operand.depth_last else (k, place)
            address = shared.address(*at).replace("READ", f"s * {reads} + e")
        if run == 1:
            lw.body.line(f"{which}[i]{operand.item('e')} = *(const {kind} *)(lds + {address});")
        else:
            lw.body.line(f"const auto x = *(const vec<{kind}, {run}> *)(lds + {address});")
            lw.body.line(f"EACH(q, {run}) {which}[i]{operand.item(f'e * {run} + q')} = x[q];")


def _can_read_transposed(lw: AmdLowering, operand: _Operand) -> bool:
    """Whether ds_read_b64_tr_b16 serves: 16-bit elements, and k in runs of four."""
    fours = (
        all(
            step[i] % 4 == 0 and step[i + j] == step[i] + j
            for step in operand.order.items
            for i in range(0, len(step), 4)
            for j in range(4)
        )
        if operand.per_lane % 4 == 0
        else False
    )
    return operand.dtype.bits == 16 and fours and "ds_read_b64_tr_b16" in lw.target.lds


def _read_transposed(lw: AmdLowering, op: Op, operand: _Operand, shared: SharedTile) -> None:
    """Four rows by sixteen columns at a time: each lane ends with four values of k in its column.

    In a group of 16 lanes, lane l brings four columns of row l / 4, and receives column l (CDNA4 ISA, LDS
    transpose loads). Written as assembly, because the compiler waits for all direct loads before such a read;
    the wait that follows names every register that it makes ready.
    """
    size = lw.plan.mmas[op].mfma.m
    reads = operand.per_lane // 4
    axis = 0 if operand.which == "a" else 1
    waves = [f"{d} * {p[axis]}" for d, p in lw.wave_digits(lw.layout(op.result).waves) if p[axis]]
    column = " + ".join([f"((lane & {size - 1}) >> 4) * 16 + (lane & 3) * 4", *waves])
    first = [step[4 * e] for step in operand.order.items for e in range(reads)]
    row = f"({operand.order.lane} + ((lane & 15) >> 2) + {lw.table(first)}[READ])"
    lane = lw.lane_addresses(f"{shared.base} + {shared.within(row, f'({column})')}", len(first))
    count, raw = len(operand.places), f"{operand.which}_raw"
    lw.body.line(f"vec<short, 4> {raw}[{count * reads}];")
    with lw.body.each(reads, "e"), lw.body.each(count):
        address = f"lds_address(lds) + {shared.shift} + {lane}[s * {reads} + e]"
        offset = f"{lw.table(operand.places)}[i] * {operand.dtype.nbytes}"
        lw.body.line(f"{raw}[i * {reads} + e] = read_transposed({address}, {offset});")
    tied = ", ".join(f'"+v"({raw}[{i}])' for i in range(count * reads))
    lw.body.line(f'asm volatile("s_waitcnt lgkmcnt(0)" : {tied} : : "memory");')
    with lw.body.each(count), lw.body.each(reads, "e"):
        lw.body.line(f"const auto x = bits<vec<{ctype(operand.dtype)}, 4>>({raw}[i * {reads} + e]);")
        lw.body.line(f"EACH(q, 4) {operand.which}[i][e * 4 + q] = x[q];")


def _mask_depth(lw: AmdLowering, operand: _Operand, kind: str) -> None:
    """Items beyond the depth of the product count as 0: what lies there may be anything."""
    order = operand.order
    if max(order.flat) + order.lane_reach < operand.depth:
        return None
    unit = max(1, 4 // operand.dtype.nbytes)
    if unit > 1 and _run(order, operand.dtype) % unit == 0 and operand.depth % unit == 0:
        return _mask_words(lw, operand, kind, unit)
    k = f"{order.lane} + {lw.table(order.flat)}[s * {operand.per_lane} + e]"
    target = f"{operand.which}[i]{operand.item('e')}"
    return lw.body.line(f"EACH(e, {operand.per_lane}) if ({k} >= {operand.depth}) {target} = zero<{kind}>();")


def _mask_words(lw: AmdLowering, operand: _Operand, kind: str, unit: int) -> None:
    """Items that share a register are all inside or all beyond the depth: one select for them."""
    words, per_lane = operand.per_lane // unit, operand.per_lane
    k = f"{operand.order.lane} + {lw.table(operand.order.flat)}[s * {per_lane} + e * {unit}]"
    lw.body.line(f"auto words = bits<vec<u32, {words}>>({operand.which}[i]);")
    lw.body.line(f"EACH(e, {words}) if ({k} >= {operand.depth}) words{'[e]' if words > 1 else ''} = 0;")
    lw.body.line(f"{operand.which}[i] = bits<vec<{kind}, {per_lane}>>(words);")


def _index(lw: AmdLowering, op: Op, axis: int) -> str:
    """The row (axis 0) or column of the accumulator that this lane's operand item belongs to."""
    terms = [f"(lane & {lw.plan.mmas[op].mfma.m - 1})"]
    terms += [f"{digit} * {part[axis]}" for digit, part in lw.wave_digits(lw.layout(op.result).waves) if part[axis]]
    return " + ".join(terms)


def _run(order: KOrder, dtype: DType) -> int:
    """Consecutive items with consecutive k: elements of one LDS access."""
    per_lane = len(order.items[0])
    run = min(per_lane, 16 // dtype.nbytes)
    while run > 1 and not _runs(order, run):
        run //= 2
    return run


def _runs(order: KOrder, run: int) -> bool:
    for step in order.items:
        for start in range(0, len(step), run):
            first = step[start]
            if first % run or any(step[start + i] != first + i for i in range(run)):
                return False
    return True
