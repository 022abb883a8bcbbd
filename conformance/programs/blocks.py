"""Statements over whole tiles: reductions, scans, rearrangements, products, shared memory, atomics, known kernels."""

from __future__ import annotations

from warpwave.conformance.programs.choose import pick
from warpwave.conformance.programs.model import Block, Tensor, Var, tile_type
from warpwave.conformance.programs.writer import FLOATS, FP8, INTEGERS, MAX_TILE, SMALL, Writer
from warpwave.tiles.dtypes import DType, bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32

PRODUCTS: tuple[tuple[DType, DType], ...] = (
    *((bf16, bf16), (f16, f16), (f32, f32), (i8, i8), (fp8e4m3, fp8e4m3), (fp8e4m3, fp8e5m2)),
    *((fp8e4m3fnuz, fp8e4m3fnuz), (fp8e5m2fnuz, fp8e4m3fnuz), (fp8e5m2, fp8e5m2)),
)
DEPTHS = (16, 32, 8, 5, 17, 64)


def reduce(w: Writer) -> None:
    """Maximum, minimum, sum or product along an axis or of everything."""
    x = w.some(SMALL)
    name = w.pick("sum", "max", "min", "prod")
    axis = w.integer(0, len(x.shape) - 1)
    nan = ", nan='ignore'" if name in ("max", "min") and w.chance(30) else ""
    if len(x.shape) == 1 or w.chance(15):
        w.let(f"ww.{name}({{0}}{nan})", (x,), x.dtype, ())
    elif w.chance(20):
        shape = (1, x.shape[1]) if axis == 0 else (x.shape[0], 1)
        w.let(f"ww.{name}({{0}}, axis={axis}, keepdims=True{nan})", (x,), x.dtype, shape)
    else:
        w.let(f"ww.{name}({{0}}, axis={axis}{nan})", (x,), x.dtype, (x.shape[1 - axis],))


def scan(w: Writer) -> None:
    """A running sum."""
    x = w.some(SMALL)
    options = w.pick("", ", reverse=True", ", exclusive=True", ", reverse=True, exclusive=True")
    w.let(f"ww.cumsum({{0}}, axis={w.integer(0, len(x.shape) - 1)}{options})", (x,), x.dtype, x.shape)


def rearrange(w: Writer) -> None:
    """Transposes, slices, concatenations, interleavings, distributions, moves through shared memory."""
    x = w.some((*FLOATS, *INTEGERS, *FP8), rank=2)
    rows, cols = x.shape
    pick(w.chooser, (_transpose, _slice, _concat, _interleave, _distribute, _through_shared))(w, x, rows, cols)


def _transpose(w: Writer, x: Var, rows: int, cols: int) -> None:
    w.let(w.pick("{0}.T", "ww.transpose({0})"), (x,), x.dtype, (cols, rows))


def _slice(w: Writer, x: Var, rows: int, cols: int) -> None:
    top, left = w.integer(0, rows - 1), w.integer(0, cols - 1)
    height, width = w.integer(1, rows - top), w.integer(1, cols - left)
    w.let(f"{{0}}[{top}:{top + height}, {left}:{left + width}]", (x,), x.dtype, (height, width))


def _concat(w: Writer, x: Var, rows: int, cols: int) -> None:
    if 2 * rows * cols > MAX_TILE:
        return
    axis = w.integer(0, 1)
    shape = (2 * rows, cols) if axis == 0 else (rows, 2 * cols)
    w.let(f"ww.concat([{{0}}, {{1}}], axis={axis})", (x, w.like(x.dtype, x.shape)), x.dtype, shape)


def _interleave(w: Writer, x: Var, rows: int, cols: int) -> None:
    if cols % 2 == 0 and w.chance(60):
        half = (rows, cols // 2)
        w.let(f"ww.deinterleave({{0}})[{w.integer(0, 1)}]", (x,), x.dtype, half)
    elif 2 * rows * cols <= MAX_TILE:
        w.let("ww.interleave({0}, {1})", (x, w.like(x.dtype, x.shape)), x.dtype, (rows, 2 * cols))


def _distribute(w: Writer, x: Var, rows: int, cols: int) -> None:
    w.let(f"ww.distribute({{0}}, over={w.pick('(1, 1)', '(2, 1)', '(1, 2)')})", (x,), x.dtype, x.shape)


def _through_shared(w: Writer, x: Var, rows: int, cols: int) -> None:
    w.let("ww.to_register(ww.to_shared({0}))", (x,), x.dtype, x.shape)


def buffer(w: Writer) -> None:
    """A shared buffer: written, partly overwritten, read back in another window."""
    x = w.some((*FLOATS, i32), rank=2)
    rows, cols = x.shape
    name = w.buffer(x)
    top, left = w.integer(0, rows - 1), w.integer(0, cols - 1)
    height, width = w.integer(1, rows - top), w.integer(1, cols - left)
    window = tile_type(x.dtype, (height, width))
    at = f"({top}, {left})"
    if w.chance(50):
        y = w.like(x.dtype, (height, width))
        w.do(f"ww.store({name}, {at}, {{0}} + {{0}}, unit='element')", (y,))
    if w.chance(50):
        w.let(f"ww.load({name})", (), x.dtype, x.shape)
    w.let(f"ww.load({name}, {at}, {window}, unit='element')", (), x.dtype, (height, width))


def product(w: Writer) -> None:
    """A pipelined loop of matrix products over the depth."""
    left, right = pick(w.chooser, PRODUCTS)
    rows, cols = (e if e <= 64 else 64 for e in w.shape())
    depth = pick(w.chooser, DEPTHS)
    ta, tb = w.integer(0, 1), w.integer(0, 1)
    total = depth * w.integer(1, 3) - (w.integer(1, depth - 1) if w.chance(40) else 0)
    a = _operand(w, left, rows, total, ta)
    b = _operand(w, right, total, cols, tb)
    result = i32 if left == i8 else f32
    acc = w.let(f"ww.zeros({tile_type(result, (rows, cols))})", (), result, (rows, cols))
    shape_a = (depth, rows) if ta else (rows, depth)
    shape_b = (cols, depth) if tb else (depth, cols)
    space = w.pick("s", "s", "r")
    row, col = w.coordinate(), w.coordinate()
    at = f"(k, {row})" if ta else f"({row}, k)"
    bt = f"({col}, k)" if tb else f"(k, {col})"
    stages = w.pick("", "", ", stages=1", ", stages=2", ", stages=3")
    loop = w.pick("ww.pipeline", "ww.pipeline", "range")
    extent = f"{a.name}.{'rows' if ta else 'cols'}"
    with w.inner() as body:
        x = w.let(f"ww.load({a.name}, {at}, {tile_type(left, shape_a, space)})", (), left, shape_a)
        y = w.let(f"ww.load({b.name}, {bt}, {tile_type(right, shape_b, space)})", (), right, shape_b)
        precision = ", precision='tf32'" if left == f32 and w.chance(30) else ""
        w.rebind(acc, f"ww.mma_A{'t' * ta}B{'t' * tb}({{0}}, {{1}}, {{2}}{precision})", (acc, x, y))
    head = f"for k in {loop}(cdiv({extent}, {depth}){stages if loop == 'ww.pipeline' else ''})"
    w.append(Block(head, tuple(body)))
    w.features.add("product")


def _operand(w: Writer, dtype: DType, rows: int, cols: int, transposed: int) -> Tensor:
    grown = (rows + 3, cols) if w.chance(30) else (rows, cols)
    return w.new_tensor(dtype, grown[::-1] if transposed else grown)


def small_product(w: Writer) -> None:
    """One matrix product of tiles that are computed, as P @ V of attention."""
    x = w.some(FLOATS, rank=2)
    dtype = bf16 if x.dtype == f32 and w.chance(60) else x.dtype
    rows, depth = x.shape
    cols = pick(w.chooser, (16, 8, 32, 5, 24))
    b = w.load(dtype, (depth, cols))
    left = "ww.cast({0}, bf16)" if dtype != x.dtype else "{0}"
    right = w.pick("{1}", "ww.to_shared({1})")
    w.let(f"ww.mma_AB(ww.zeros(rt[f32, {rows}, {cols}]), {left}, {right})", (x, b), f32, (rows, cols))


def softmax(w: Writer) -> None:
    """Rows of weights; a row that is all -inf gives NaN."""
    x = w.some((f32, bf16), rank=2)
    m = w.let("ww.max({0}, axis=1)", (x,), x.dtype, (x.shape[0],))
    p = w.let("ww.exp({0} - {1}[:, None])", (x, m), x.dtype, x.shape)
    s = w.let("ww.sum({0}, axis=1)", (p,), x.dtype, (x.shape[0],))
    w.let("{0} / {1}[:, None]", (p, s), x.dtype, x.shape)


def online_softmax(w: Writer) -> None:
    """Running maximum and sum over the tiles of long rows, as in attention."""
    rows, cols = w.shape()
    dtype = pick(w.chooser, FLOATS)
    x = w.new_tensor(dtype, (rows, cols * w.integer(1, 3)), w.pick("late maximum", "normal", "masked rows", "special"))
    peak = w.let(f"ww.full(rv[f32, {rows}], -math.inf)", (), f32, (rows,))
    total = w.let(f"ww.zeros(rv[f32, {rows}])", (), f32, (rows,))
    with w.inner() as body:
        tile = w.let(
            f"ww.load({x.name}, ({w.coordinate()}, k), rt[f32, {rows}, {cols}], fill=-math.inf)", (), f32, (rows, cols)
        )
        last = w.let("{0}", (peak,), f32, (rows,))
        w.rebind(peak, "ww.maximum({0}, ww.max({1}, axis=1))", (peak, tile))
        base = w.let("ww.where({0} == -math.inf, 0.0, {0})", (peak,), f32, (rows,))
        powers = w.let("ww.exp2({0} - {1}[:, None])", (tile, base), f32, (rows, cols))
        w.rebind(total, "{0} * ww.exp2({1} - {2}) + ww.sum({3}, axis=1)", (total, last, base, powers))
    w.append(Block(f"for k in ww.range(cdiv({x.name}.cols, {cols}))", tuple(body)))
    w.features.add("online softmax")


def normalise(w: Writer) -> None:
    """Rows of mean 0 and variance 1."""
    x = w.some((f32,), rank=2)
    rows, cols = x.shape
    mean = w.let(f"ww.sum({{0}}, axis=1) * {1.0 / cols!r}", (x,), f32, (rows,))
    d = w.let("{0} - {1}[:, None]", (x, mean), f32, x.shape)
    v = w.let(f"ww.sum({{0}} * {{0}}, axis=1) * {1.0 / cols!r}", (d,), f32, (rows,))
    w.let("{0} * ww.rsqrt({1} + 1e-5)[:, None]", (d, v), f32, x.shape)


def atomic(w: Writer) -> None:
    """All blocks add to one place."""
    x = w.some((f32, i32, bf16, f16))
    name = w.fresh("o")
    extents = tuple(max(1, n - (w.integer(0, 2) if w.chance(30) else 0)) for n in x.shape)
    w.tensors.append(Tensor(name, x.dtype, extents, "rows", w.pick("zeros", "normal"), output=True))
    w.do(f"ww.atomic_add({name}, ({'0, ' * len(x.shape)}), {{0}})", (x,), name)


def check(w: Writer) -> None:
    """A check that holds."""
    x = w.some((i32, f32))
    condition = "({0} == {0}) | ww.isnan({0})" if x.dtype == f32 else "{0} == {0}"
    w.do(f"ww.check({condition}, 'equal to itself')", (x,))


def round_trip(w: Writer) -> None:
    """Written to global memory and, after a barrier, read back by the same block."""
    x = w.some((*FLOATS, i32), rank=2)
    w.store(x)
    name, output = w.tensors[-1].name, w.tensors[-1]
    w.do("ww.barrier()")
    column = w.grid[1] if len(w.grid) == 2 else "0"
    w.let(f"ww.load({name}, ({w.grid[0]}, {column}), {tile_type(output.dtype, x.shape)})", (), output.dtype, x.shape)
