"""Elementwise statements: arithmetic, functions, comparisons, selections, conversions, bits."""

from __future__ import annotations

from warpwave.conformance.programs.choose import pick
from warpwave.conformance.programs.model import Var, name_of
from warpwave.conformance.programs.writer import BOOL, FLOATS, FP8, INTEGERS, Writer
from warpwave.tiles.dtypes import DType, bool_, f32, i8, i32

FUNCTIONS = (
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "tanh", "sigmoid", "erf", "gelu", "silu"),
    *("floor", "ceil", "round", "trunc", "relu", "abs"),
)
FLOAT_PAIRS = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "ww.maximum({0}, {1})", "ww.minimum({0}, {1})"),
    *("ww.maximum({0}, {1}, nan='ignore')", "ww.minimum({0}, {1}, nan='ignore')", "ww.max({0}, {1}, 0.5)"),
)
INTEGER_PAIRS = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}"),
    *("{0} // (({1} & 15) + 1)", "{0} % (({1} & 15) + 1)", "{0} // (-3 - ({1} & 7))", "{0} % (-3 - ({1} & 7))"),
    *("{0} << ({1} & 7)", "{0} >> ({1} & 7)", "ww.maximum({0}, {1})", "ww.minimum({0}, {1})"),
)
COMPARISONS = ("{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}", "{0} == {1}", "{0} != {1}")
ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")


def function(w: Writer) -> None:
    """A function of one float, or the sign of a number."""
    x = w.some(FLOATS)
    text = w.pick(*(f"ww.{name}({{0}})" for name in FUNCTIONS), "-{0}", "ww.gelu({0}, approximate=True)")
    if text.startswith(("ww.exp", "ww.rcp")) and w.chance(60):  # so that chains stay finite
        text = text.replace("{0}", "ww.clamp({0}, -8.0, 8.0)")
    w.let(text, (x,), x.dtype, x.shape)


def arithmetic(w: Writer) -> None:
    """Two floats of one shape, or of shapes that broadcast."""
    x = w.some(FLOATS)
    if w.chance(30):
        return number(w, x)
    y = w.like(x.dtype, x.shape)
    if w.chance(15):
        z = w.like(x.dtype, x.shape)
        w.let("ww.fma({0}, {1}, {2})", (x, y, z), x.dtype, x.shape)
        return None
    text = pick(w.chooser, FLOAT_PAIRS)
    w.let(text, (x, y), x.dtype, x.shape)
    return None


def number(w: Writer, x: Var) -> None:
    """A float and a compile-time number, or a run-time scalar."""
    text = w.pick(
        "{0} * 0.5", "1.5 - {0}", "{0} + 0.1", "{0} / 3.0", "2.0 / {0}", "ww.clamp({0}, -1.0, 2.0)", "{0} ** 2"
    )
    scalars = w.having((x.dtype,), ())
    if scalars and w.chance(40):
        w.let("{0} * {1}", (x, scalars[0]), x.dtype, x.shape)
    else:
        w.let(text, (x,), x.dtype, x.shape)


def whole(w: Writer) -> None:
    """Integer arithmetic."""
    x = w.some(INTEGERS)
    if w.chance(20):
        w.let(
            w.pick("-{0}", "ww.abs({0})", "~{0}", "ww.relu({0})", "{0} * 3", "{0} // 5", "{0} % -7"),
            (x,),
            x.dtype,
            x.shape,
        )
        return
    w.let(pick(w.chooser, INTEGER_PAIRS), (x, w.like(x.dtype, x.shape)), x.dtype, x.shape)


def broadcast(w: Writer) -> None:
    """A vector against the rows or columns of a tile."""
    x = w.some(FLOATS if w.chance(80) else INTEGERS, rank=2)
    axis = w.integer(0, 1)
    v = w.like(x.dtype, (x.shape[axis],))
    index = "[:, None]" if axis == 0 else "[None, :]"
    pairs = FLOAT_PAIRS[:5] if x.dtype.is_float else INTEGER_PAIRS[:6]
    text = pick(w.chooser, pairs).replace("{1}", "{1}" + index)
    w.let(text, (x, v), x.dtype, x.shape)


def outer(w: Writer) -> None:
    """A column against a row gives a tile."""
    v = w.some(FLOATS, rank=1)
    u = w.like(v.dtype, w.shape(1))
    if v.shape[0] * u.shape[0] <= 1024:
        w.let(w.pick("{0}[:, None] * {1}[None, :]", "{0}[:, None] - {1}[None, :]"), (v, u), v.dtype, v.shape + u.shape)


def compare(w: Writer) -> None:
    """A mask: from two tiles, a tile and a number, two masks, or NaN."""
    x = w.some((*FLOATS, *INTEGERS, *FP8, bool_))
    if x.dtype == bool_:
        text = w.pick("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} == {1}", "~{0}")
        w.let(text, (x, w.like(bool_, x.shape)), bool_, x.shape)
    elif x.dtype.is_float and w.chance(20):
        w.let("ww.isnan({0})", (x,), bool_, x.shape)
    elif w.chance(50):
        w.let(pick(w.chooser, COMPARISONS).replace("{1}", "1"), (x,), bool_, x.shape)
    else:
        w.let(pick(w.chooser, COMPARISONS), (x, w.like(x.dtype, x.shape)), bool_, x.shape)


def select(w: Writer) -> None:
    """One of two tiles, element by element."""
    masks = w.having(BOOL)
    if not [m for m in masks if m.shape]:
        compare(w)
    mask = w.some(BOOL)
    dtype = pick(w.chooser, (*FLOATS, i32, i8))
    x = w.like(dtype, mask.shape)
    other = w.pick("0", "-1", "math.inf" if dtype.is_float else "7")
    if w.chance(50):
        w.let(f"ww.where({{0}}, {{1}}, {other})", (mask, x), dtype, mask.shape)
    else:
        w.let("ww.where({0}, {1}, {2})", (mask, x, w.like(dtype, mask.shape)), dtype, mask.shape)


def triangle(w: Writer) -> None:
    """A causal mask, from the language's own function or from indices."""
    x = w.some((f32,), rank=2)
    rows, cols = x.shape
    row, col = w.coordinate(), w.coordinate()
    if w.chance(50):
        w.let(f"ww.causal_mask({{0}}, row={row} * {rows}, col={col} * {cols})", (x,), f32, x.shape)
        return
    i = w.let(f"ww.iota(rt[i32, {rows}, {cols}], axis=0) + {row}", (), i32, x.shape)
    j = w.let(f"ww.iota(rt[i32, {rows}, {cols}], axis=1)", (), i32, x.shape)
    w.let("ww.where({0} >= {1}, {2}, -math.inf)", (i, j, x), f32, x.shape)


def convert(w: Writer) -> None:
    """A cast with a named rounding, or the same bits as another type."""
    x = w.some((*FLOATS, *FP8, *INTEGERS, bool_))
    target = pick(w.chooser, [d for d in (*FLOATS, *FP8, *INTEGERS) if d != x.dtype])
    rounding = f", rounding='{pick(w.chooser, ROUNDINGS)}'" if w.chance(50) else ""
    floats = x.dtype.is_float and target.is_float
    saturate = f", saturate={w.pick('True', 'False')}" if floats and w.chance(30) else ""
    w.let(f"ww.cast({{0}}, {name_of(target)}{rounding}{saturate})", (x,), target, x.shape)


def reinterpret(w: Writer) -> None:
    """The same bits as an integer and back; NaN is taken out first, as its payload is not defined."""
    x = w.some((f32, i32))
    if x.dtype == i32:
        w.let("ww.bitcast({0} & 0x3FFFFFFF, f32)", (x,), f32, x.shape)
        return
    w.let("ww.bitcast(ww.where(ww.isnan({0}), 0.0, {0}), i32)", (x,), i32, x.shape)


def random(w: Writer) -> None:
    """Counter-based random numbers."""
    shape = w.shape(w.integer(1, 2))
    dtype: DType = f32 if w.chance(50) else i32
    name = "random_uniform" if dtype == f32 else "random_bits"
    kind = f"r{'t' if len(shape) == 2 else 'v'}[{dtype}, {', '.join(map(str, shape))}]"
    seed, offset = w.pick("7", "0xDEADBEEFCAFE", "-1"), w.pick("0", "2 ** 33 + 5", *w.grid)
    row = f", row={w.coordinate()} * {shape[0]}" if len(shape) == 2 and w.chance(60) else ""
    w.let(f"ww.{name}({kind}, {seed}, {offset}{row}, col={w.coordinate()})", (), dtype, shape)
