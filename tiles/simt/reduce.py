"""Reductions and running sums: within lanes, across lanes, across waves."""

from __future__ import annotations

from contextlib import nullcontext

from warpwave.tiles.dtypes import DType, f32, i32
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.convert import convert, inside
from warpwave.tiles.simt.elementwise import narrow, wide
from warpwave.tiles.simt.layout import Layout, drop_axis
from warpwave.tiles.simt.writer import ctype, literal


def _working_dtype(dtype: DType) -> DType:
    """Small floats are summed in f32, small integers in 32 bits and wrapped at the end."""
    if dtype.is_float:
        return f32
    return dtype if dtype.bits == 64 else i32


def _identity(op: Op, dtype: DType) -> str:
    """The value that does not change a reduction, as an element of the working dtype; for sums of floats that is -0."""
    if op.name == "reduce_sum":
        return literal(-0.0 if dtype.is_float else 0, dtype)
    if op.name == "reduce_prod":
        return literal(1, dtype)
    if dtype.is_float:
        return literal(float("-inf") if op.name == "reduce_max" else float("inf"), dtype)
    source = op.operands[0].tile.dtype
    return literal(source.min if op.name == "reduce_max" else source.max, dtype)


def _combine(op: Op, dtype: DType, a: str, b: str) -> str:
    kind = ctype(dtype)
    if op.name in ("reduce_sum", "reduce_prod"):
        sign = "+" if op.name == "reduce_sum" else "*"
        if dtype.is_float:
            return f"{a} {sign} {b}"
        unsigned = "u64" if dtype.bits == 64 else "u32"
        return f"({kind})(({unsigned}){a} {sign} ({unsigned}){b})"
    which = op.name.removeprefix("reduce_")
    if not dtype.is_float:
        return f"{'larger' if which == 'max' else 'smaller'}<{kind}>({a}, {b})"
    name = f"{which}imum" if op.attrs["nan"] == "propagate" else f"{which}imum_number"
    return f"{name}({a}, {b})"


def _widened(op: Op, x: str) -> str:
    source = op.operands[0].tile.dtype
    return wide(x, source) if source.is_float else f"({ctype(_working_dtype(source))}){x}"


def lower_reduce(lw: Lowering, op: Op) -> None:
    """Combine a lane's items, then lanes that differ along the axis, then waves."""
    source, axis = op.operands[0], op.attrs["axis"]
    layout, dtype = lw.layout(source), _working_dtype(source.tile.dtype)
    partial_layout = drop_axis(layout, axis)
    partial = lw.once(op, "partial")
    if lw.is_first_portion:
        lw.body.line(f"tile<{ctype(dtype)}, {len(partial_layout.items)}> {partial};")
    with lw.body.block("") if lw.is_first_portion and lw.is_last_portion else nullcontext():
        _within_lane(lw, op, partial, partial_layout, dtype)
    if not lw.is_last_portion:
        return
    with lw.undivided():
        _across_lanes(lw, op, partial, partial_layout, dtype)
        _across_waves(lw, op, partial, partial_layout, dtype)
        _finish(lw, op, partial, partial_layout, dtype)


def running_values(lw: Lowering, op: Op) -> str:
    """What is added up between portions of a reduction, for each result that a lane takes part in."""
    return f"running_{lw.once(op, 'partial')}"


def _within_lane(lw: Lowering, op: Op, partial: str, result: Layout, dtype: DType) -> None:
    """The items that are taken here: all of a lane's, or a portion of them into the same running values."""
    source, axis = op.operands[0], op.attrs["axis"]
    layout, name = lw.layout(source), lw.name(source)
    place = {item: i for i, item in enumerate(result.items)}
    groups = [place[(*item[:axis], *item[axis + 1 :])] for item in layout.items]
    condition = inside(lw, layout, source.tile.shape)
    lanes = _running_sums(lw, op, groups, condition)
    running = "running" if lw.is_first_portion and lw.is_last_portion else running_values(lw, op)
    if lw.is_first_portion:
        lw.body.line(f"vec<{ctype(dtype)}, {lanes}> {running}[{len(result.items)}];")
        with lw.body.each(len(result.items)), lw.body.each(lanes, "p"):
            lw.body.line(f"{running}[i]{'[p]' if lanes > 1 else ''} = {_identity(op, dtype)};")
    with lw.each_item(len(layout.items) // lanes):
        lw.body.line(f"const int to = {lw.table(groups[::lanes])}[i];")
        lw.body.line(_accumulate(lw, op, name, dtype, (running, lanes), condition))
    if lw.is_last_portion:
        with lw.body.each(len(result.items)):
            lw.body.line(f"{partial}.set(i, {_joined(op, dtype, running, lanes)});")


def _joined(op: Op, dtype: DType, running: str, lanes: int) -> str:
    """A result's running values as one, in pairs."""
    left = [f"{running}[i][{p}]" for p in range(lanes)] if lanes > 1 else [f"{running}[i]"]
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=True)
        left = [_combine(op, dtype, a, b) if len(left) == 2 else f"({_combine(op, dtype, a, b)})" for a, b in pairs]
    return left[0]


def _accumulate(lw: Lowering, op: Op, name: str, dtype: DType, into: tuple[str, int], condition: str) -> str:
    """The statement that takes item i, or as many items as there are running values of each, `into` these."""
    running, lanes = into
    if lanes > 1 and not lw.packs:
        value = _widened(op, f"{name}.get(i * {lanes} + p)")
        combined = _combine(op, dtype, f"{running}[to][p]", value)
        even = "p" if lanes == 2 else "p % 2"  # else they are paired
        return f"EACH(p, {lanes}) {running}[to][p] = {even} ? {combined} : in_register({combined});"
    values = [_widened(op, f"{name}.get(i * {lanes} + {p})") for p in range(lanes)]
    value = f"vec<float, {lanes}>{{{', '.join(values)}}}" if lanes > 1 else values[0]
    if condition != "true":
        value = f"({condition} ? {value} : {_identity(op, dtype)})"
    return f"{running}[to] = {_combine(op, dtype, f'{running}[to]', value)};"


def _running_sums(lw: Lowering, op: Op, groups: list[int], condition: str) -> int:
    """How many running sums in f32 take neighbouring items that go to one sum: pairs make packed instructions."""
    summed = op.name in ("reduce_sum", "reduce_prod") and op.operands[0].tile.dtype.is_float
    if not summed or condition != "true":
        return 1
    return next((n for n in (lw.sums_at_once, 2) if len(groups) % n == 0 and _alike(groups, n)), 1)


def _alike(groups: list[int], count: int) -> bool:
    return all(groups[::count] == groups[i::count] for i in range(1, count))


def _across_lanes(lw: Lowering, op: Op, partial: str, result: Layout, dtype: DType) -> None:
    axis, layout = op.attrs["axis"], lw.layout(op.operands[0])
    for bit, part in enumerate(layout.lanes):
        if part[axis]:
            with lw.body.each(len(result.items)):
                text = lw.with_partner(bit, f"{partial}.get(i)", lambda a, b: _combine(op, dtype, a, b))
                lw.body.line(f"{partial}.set(i, {text});")


def _across_waves(lw: Lowering, op: Op, partial: str, result: Layout, dtype: DType) -> None:
    """Each wave writes its part to the scratch area and reads those of all waves along the axis."""
    axis, layout = op.attrs["axis"], lw.layout(op.operands[0])
    digits = lw.wave_digits(layout.waves)
    along = [(digits[d][0], count) for d, (count, part) in enumerate(layout.waves) if part[axis] and count > 1]
    if not along:
        return
    rows = 1
    terms = []
    for digit, count in along:
        terms.append(f"{digit} * {rows}" if rows > 1 else digit)
        rows *= count
    elements = 1
    for extent in result.extent:
        elements *= extent
    lw.scratch(rows * elements * dtype.nbytes)
    address = _element(lw, result)
    kind = ctype(dtype)
    lw.barrier()
    unique = lw.primary(result, waves=layout)  # each wave along the axis has a part of its own
    with lw.body.each(len(result.items)):
        store = f"(({kind} *)scratch)[({' + '.join(terms)}) * {elements} + {address}] = {partial}.get(i);"
        lw.body.line(store if unique == "true" else f"if ({unique}) {store}")
    lw.barrier()
    with lw.body.each(len(result.items)):
        lw.body.line(f"{kind} all = (({kind} *)scratch)[{address}];")
        with lw.body.block(f"for (int w = 1; w < {rows}; ++w)"):
            lw.body.line(f"all = {_combine(op, dtype, 'all', f'(({kind} *)scratch)[w * {elements} + {address}]')};")
        lw.body.line(f"{partial}.set(i, all);")


def _element(lw: Lowering, layout: Layout) -> str:
    """The place of item i among all elements of a vector, or 0 for a scalar."""
    return lw.coordinates(layout).at(0) if layout.rank else "0"


def _finish(lw: Lowering, op: Op, partial: str, layout: Layout, dtype: DType) -> None:
    """Round to the result's dtype and bring it to the result's layout."""
    result = op.results[0]
    target = result.tile.dtype
    text = narrow(f"{partial}.get(i)", target) if target.is_float else f"({ctype(target)}){partial}.get(i)"
    if result.tile.is_scalar:
        uniform = text.replace("(i)", "(0)")
        lw.body.line(f"const {ctype(target)} {lw.define(result)} = {uniform};")
        return
    own = Value(result.type)
    lw.layouts[own] = layout
    name = lw.declare(own, result.name)
    with lw.body.each(len(layout.items)):
        lw.body.line(f"{name}.set(i, {text});")
    lw.names[result] = convert(lw, own, lw.layout(result))


def lower_cumsum(lw: Lowering, op: Op) -> None:
    """Through shared memory: one lane runs along each line."""
    source, axis = op.operands[0], op.attrs["axis"]
    layout, shape = lw.layout(source), source.tile.shape
    dtype, kind = _working_dtype(source.tile.dtype), ctype(_working_dtype(source.tile.dtype))
    rows, cols = shape if len(shape) == 2 else (1, shape[0])
    pitch = cols + 1
    lw.scratch(rows * pitch * dtype.nbytes)
    at = lw.coordinates(layout)
    place = f"{at.at(0)} * {pitch} + {at.at(1)}" if layout.rank == 2 else at.at(0)
    condition = inside(lw, layout, shape)
    once = " && ".join(c for c in (lw.primary(layout), condition) if c != "true") or "true"
    body = lw.body
    lw.barrier()
    with body.each(len(layout.items)):
        body.line(f"if ({once}) (({kind} *)scratch)[{place}] = {_widened(op, f'{lw.name(source)}.get(i)')};")
    lw.barrier()
    along_cols = axis == layout.rank - 1
    lines, count = (rows, cols) if along_cols else (cols, rows)
    step, stride = (1, pitch) if along_cols else (pitch, 1)
    with body.block(f"for (int line = thread; line < {lines}; line += {lw.threads})"):
        first = -0.0 if dtype.is_float and not op.attrs["exclusive"] else 0
        body.line(f"{kind} sum = {literal(first, dtype)};")
        with body.block(f"for (int k = 0; k < {count}; ++k)"):
            index = f"{count - 1} - k" if op.attrs["reverse"] else "k"
            body.line(f"{kind} &slot = (({kind} *)scratch)[line * {stride} + ({index}) * {step}];")
            body.line(f"const {kind} before = sum, x = slot;")
            body.line(f"sum = {_sum(dtype, 'sum', 'x')};")
            body.line(f"slot = {'before' if op.attrs['exclusive'] else 'sum'};")
    lw.barrier()
    result = op.result
    name, target = lw.declare(result), result.tile.dtype
    read = f"(({kind} *)scratch)[{place}]"
    text = narrow(read, target) if target.is_float else f"({ctype(target)}){read}"
    with body.each(len(layout.items)):
        body.line(
            f"{name}.set(i, {text if condition == 'true' else f'{condition} ? {text} : zero<{ctype(target)}>()'});"
        )


def _sum(dtype: DType, a: str, b: str) -> str:
    if dtype.is_float:
        return f"{a} + {b}"
    unsigned = "u64" if dtype.bits == 64 else "u32"
    return f"({ctype(dtype)})(({unsigned}){a} + ({unsigned}){b})"
