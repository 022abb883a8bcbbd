"""Matrix products: operand fragments from shared memory or registers, and the MFMA calls.

The product is computed transposed, D^T = B^T A^T: the tile's b is the instruction's first operand. Both
operands agree on which k each lane and item stands for; where a's registers come from an earlier accumulator,
b is read in that order, so that nothing is shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.backends.amd.layout import LANE_BITS, Layout
from warpwave.backends.amd.lower.context import Lowering, SharedTile, lane_terms
from warpwave.backends.amd.lower.convert import convert
from warpwave.backends.amd.lower.shared import to_shared
from warpwave.backends.amd.lower.writer import ctype
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op


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


def lower_mma(lw: Lowering, op: Op) -> None:
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
            lw.before_shared_read(shared.offset)
    start = convert(lw, acc, layout)
    name = lw.declare(op.result)
    lw.body.line(f"{name} = {start};")
    rows = sorted({i[0] for i in layout.items})
    cols = sorted({i[1] // mfma.n * mfma.n for i in layout.items})
    with lw.body.each(len(order.items), "s"):
        _fragments(lw, op, "a", rows, order, a_shared, lw.names.get(a, ""), depth)
        _fragments(lw, op, "b", cols, order, b_shared, "", depth)
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


def _fragments(
    lw: Lowering,
    op: Op,
    which: str,
    places: list[int],
    order: KOrder,
    shared: SharedTile | None,
    registers: str,
    depth: int,
) -> None:
    """Declare and fill the fragments of one operand for step s: one for each block of rows (a) or columns (b)."""
    mfma, layout = lw.plan.mmas[op].mfma, lw.layout(op.result)
    value = op.operands[1 if which == "a" else 2]
    dtype, per_lane = value.tile.dtype, len(order.items[0])
    kind = ctype(dtype)
    lw.body.line(f"vec<{kind}, {per_lane}> {which}[{len(places)}];")
    element = (lambda e: f"[{e}]") if per_lane > 1 else (lambda e: "")
    if shared is None:
        with lw.body.each(len(places)):
            total = len(order.flat)
            lw.body.line(
                f"EACH(e, {per_lane}) {which}[i]{element('e')} = {registers}.get(i * {total} + s * {per_lane} + e);"
            )
            _mask_depth(lw, which, element, order, depth, per_lane, kind)
        return
    axis = 0 if which == "a" else 1
    index = _index(lw, layout, mfma, axis)
    depth_last = (not op.attrs["transpose_a"]) if which == "a" else bool(op.attrs["transpose_b"])
    run = _run(order, dtype) if depth_last else 1
    with lw.body.each(len(places)):
        place = f"({index} + {lw.table(places)}[i])"
        with lw.body.each(per_lane // run, "e"):
            k = f"({order.lane} + {lw.table(order.flat)}[s * {per_lane} + e * {run}])"
            address = shared.address(place, k) if depth_last else shared.address(k, place)
            if run == 1:
                lw.body.line(f"{which}[i]{element('e')} = *(const {kind} *)(lds + {address});")
            else:
                lw.body.line(f"const vec<{kind}, {run}> x = *(const vec<{kind}, {run}> *)(lds + {address});")
                lw.body.line(f"EACH(q, {run}) {which}[i]{element(f'e * {run} + q')} = x[q];")
        _mask_depth(lw, which, element, order, depth, per_lane, kind)


def _mask_depth(lw: Lowering, which: str, element: object, order: KOrder, depth: int, per_lane: int, kind: str) -> None:
    """Items beyond the depth of the product count as 0: what lies there may be anything."""
    if max(order.flat) + order.lane_reach < depth:
        return
    target = f"{which}[i][e]" if per_lane > 1 else f"{which}[i]"
    k = f"{order.lane} + {lw.table(order.flat)}[s * {per_lane} + e]"
    lw.body.line(f"EACH(e, {per_lane}) if ({k} >= {depth}) {target} = zero<{kind}>();")


def _index(lw: Lowering, layout: Layout, mfma: Mfma, axis: int) -> str:
    """The row (axis 0) or column of the accumulator that this lane's operand item belongs to."""
    terms = [f"(lane & {mfma.m - 1})"]
    terms += [f"{digit} * {part[axis]}" for digit, part in lw.wave_digits(layout.waves) if part[axis]]
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
