"""One program for each family of ops and dtype: every output shows one op on ordinary and adversarial values."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpwave.conformance.programs.model import Block, Do, Let, Program, Statement, Tensor, Var, name_of, tile_type
from warpwave.tiles.dtypes import BY_NAME, DType, f32, i32

ROWS, COLS, BLOCK = 44, 48, 8
NARROW = 32  # columns of a tile where it does not matter to the op: building these is most of a quick run
ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")
FLOATS = ("f32", "bf16", "f16")
FP8 = ("fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz")
INTEGERS = ("i32", "i8", "i64")
NUMBERS = (*FLOATS, *INTEGERS)
TILE = "ww.rt[a0.dtype, 8, 48]"

FUNCTIONS = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "tanh", "sigmoid", "erf", "gelu", "silu")
WHOLE_FUNCTIONS = ("floor", "ceil", "round", "trunc", "relu", "abs")
REDUCTIONS = ("sum", "prod", "max", "min")


@dataclass(frozen=True)
class Family:
    """Ops by name as expressions of the tiles {0}, {1} and {2}, the dtypes they are shown on, their results' dtype."""

    dtypes: tuple[str, ...]
    ops: Mapping[str, str]
    result: str = ""  # the operands' dtype if empty
    shape: str = "tile"  # "row" for a result per row, "column" for one per column


FAMILIES: dict[str, Family] = {
    "functions": Family(
        FLOATS, {n: f"ww.{n}({{0}})" for n in FUNCTIONS} | {"gelu_tanh": "ww.gelu({0}, approximate=True)"}
    ),
    "rounding": Family(FLOATS, {n: f"ww.{n}({{0}})" for n in WHOLE_FUNCTIONS} | {"neg": "-{0}"}),
    "arithmetic": Family(
        FLOATS,
        {
            **{"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}"},
            **{"max": "ww.maximum({0}, {1})", "min": "ww.minimum({0}, {1})", "fma": "ww.fma({0}, {1}, {2})"},
            **{"max ignore": "ww.maximum({0}, {1}, nan='ignore')", "min ignore": "ww.minimum({0}, {1}, nan='ignore')"},
            **{"mul add": "{0} * {1} + {2}", "select": "ww.where({0} < {1}, {0}, {2})"},
            # What divides shows the sign of a zero, and as an operand it is another instruction's than as a result.
            "sub of zeros": "{1} / (0.0 - {0})",
            "reduce_sum of zeros": "{1} / ww.sum(ww.where({0} == 0.0, {0}, -0.0), axis=1)[:, None]",
        },
    ),
    "integers": Family(
        INTEGERS,
        {
            **{"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}", "abs": "ww.abs({0})"},
            **{"floordiv": "{0} // (({1} & 15) + 1)", "mod": "{0} % (({1} & 15) + 1)", "relu": "ww.relu({0})"},
            **{"and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "~{0}"},
            **{"shl": "{0} << ({1} & 7)", "shr": "{0} >> ({1} & 7)", "max": "ww.maximum({0}, {1})"},
            **{"min": "ww.minimum({0}, {1})", "select": "ww.where({0} < {1}, {0}, {2})"},
        },
    ),
    "comparisons": Family(
        (*FLOATS, *FP8, *INTEGERS),
        {
            "eq": "{0} == {1}",
            "ne": "{0} != {1}",
            "lt": "{0} < {1}",
            "le": "{0} <= {1}",
            "gt": "{0} > {1}",
            "ge": "{0} >= {1}",
        },
        "bool",
    ),
    "nan": Family((*FLOATS, *FP8), {"isnan": "ww.isnan({0})"}, "bool"),
    "logic": Family(
        ("bool",), {"and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "~{0}", "eq": "{0} == {1}"}
    ),
    "rows": Family(
        NUMBERS,
        {
            **{f"reduce_{n}": f"ww.{n}({{0}}, axis=1)" for n in REDUCTIONS},
            **{f"reduce_{n} ignore": f"ww.{n}({{0}}, axis=1, nan='ignore')" for n in ("max", "min")},
        },
        shape="row",
    ),
    "columns": Family(NUMBERS, {f"reduce_{n}": f"ww.{n}({{0}}, axis=0)" for n in REDUCTIONS}, shape="column"),
    "scans": Family(
        NUMBERS,
        {
            **{"cumsum": "ww.cumsum({0})", "cumsum reverse": "ww.cumsum({0}, axis=0, reverse=True)"},
            "cumsum exclusive": "ww.cumsum({0}, exclusive=True)",
        },
    ),
    "loads": Family(
        ("f32", "bf16", "i32"),
        {
            "fill": f"ww.load(a0, (m, 1), {TILE}, fill=7)",
            "fill before": f"ww.load(a0, (m * 8 - 3, -5), {TILE}, unit='element', fill=7)",
            "no fill": f"ww.load(a1, (m * 8 + 3, 5), {TILE}, unit='element')",
        },
    ),
    "random": Family(
        ("i32",),
        {
            "random_bits": f"ww.random_bits({TILE}, 2**40 + 1, 7, row=m * 8, col=16)",
            "random_bits offset": f"ww.random_bits({TILE}, 3, 2**33 + 5, row=m * 8 + 1, col=m)",
            **{"iota 0": f"ww.iota({TILE}, 0)", "iota 1": f"ww.iota({TILE}, 1)"},
        },
    ),
    "moves": Family(
        (*FLOATS, *FP8, *INTEGERS),
        {
            **{
                "transpose": "ww.concat([{0}.T, {1}.T], axis=0).T[:, 8:56]",
                "slice": "ww.concat([{0}[:, 3:48], {1}[:, 0:3]], axis=1)",
            },
            **{"interleave": "ww.interleave({0}, {1})[:, 0:48]", "copy": "ww.to_register(ww.to_shared({0}))"},
            "deinterleave": "ww.interleave(*ww.deinterleave({0}))",
        },
    ),
}
OF_WHOLE_ROWS = ("rows", "columns", "scans", "loads", "random", "moves")
CASTS = tuple((a, b) for a in (*FLOATS, *FP8, *INTEGERS, "bool") for b in (*FLOATS, *FP8, *INTEGERS) if a != b)
PRODUCTS = ("bf16", "f16", "f32", "tf32", "i8", *FP8)


def case_names() -> list[str]:
    """All `ops:<family>:<dtype>`."""
    names = [f"ops:{family}:{dtype}" for family, f in FAMILIES.items() for dtype in f.dtypes]
    names += [f"ops:casts:{source}" for source in dict.fromkeys(a for a, _ in CASTS)]
    return names + [f"ops:products:{dtype}" for dtype in PRODUCTS]


def make(family: str, dtype: str) -> tuple[Program, dict[str, tuple[str, str]]]:
    """The program of a family on a dtype, and which op and dtype each output shows."""
    seed = zlib.crc32(f"{family}:{dtype}".encode())
    if family == "products":
        return _products(dtype, seed)
    kind, whole = BY_NAME[dtype], family in OF_WHOLE_ROWS
    grid = f"m = ww.grid(cdiv(a0.rows, {BLOCK}))"
    if not whole:
        grid = f"m, n = ww.grid(cdiv(a0.rows, {BLOCK}), cdiv(a0.cols, {NARROW}))"
    place = "(m, 0)" if whole else "(m, n)"
    tiles = [Var(f"x{i}", kind, (BLOCK, COLS if whole else NARROW)) for i in range(3)]
    tensors = [Tensor(f"a{i}", kind, (ROWS, COLS), "rows", "everything") for i in range(3)]
    body: list[Statement] = [
        Let(x, f"ww.load({t.name}, {place}, {tile_type(kind, x.shape)})") for x, t in zip(tiles, tensors, strict=True)
    ]
    labels: dict[str, tuple[str, str]] = {}
    for index, (label, text, result, shape) in enumerate(_results(family, dtype)):
        name = f"o{index}"
        statement, output = _stored(name, text, tiles, result, shape, place)
        body += statement
        tensors.append(output)
        labels[name] = label, dtype
    return Program(seed, tuple(tensors), (grid,), tuple(body)), labels


def _results(family: str, dtype: str) -> Iterator[tuple[str, str, DType, str]]:
    if family != "casts":
        f = FAMILIES[family]
        for label, text in f.ops.items():
            yield label, text, BY_NAME[f.result or dtype], f.shape
        return
    for source, target in CASTS:
        if source == dtype:
            for rounding in ROUNDINGS if _rounds(source, target) else ("rne",):
                text = f"ww.cast({{0}}, {name_of(BY_NAME[target])}, rounding='{rounding}')"
                yield f"cast to {target}, {rounding}", text, BY_NAME[target], "tile"
    if BY_NAME[dtype].has_inf:
        yield "cast to f32, saturating", "ww.cast({0}, f32, saturate=True)", f32, "tile"


def _rounds(source: str, target: str) -> bool:
    """Whether every named rounding is shown: those of bf16 and of one fp8 format, where the cast is not exact."""
    return BY_NAME[source].is_float and (target == "fp8e4m3" or (target == "bf16" and source not in FP8))


def _stored(
    name: str, text: str, tiles: list[Var], result: DType, shape: str, place: str
) -> tuple[list[Statement], Tensor]:
    """Statements that compute one op and write it, and the output."""
    extents = {"tile": tiles[0].shape, "row": (BLOCK,), "column": (COLS,)}[shape]
    value = Var(f"y{name}", result, extents)
    blocks = -(-ROWS // BLOCK)
    whole = {"tile": (ROWS, COLS), "row": (blocks, BLOCK), "column": (blocks, COLS)}[shape]
    store = f"ww.store({name}, {place}, {{0}}" + (")" if shape == "tile" else ", axes=(1,))")
    return [Let(value, text, tuple(tiles)), Do(store, (value,), name)], Tensor(name, result, whole, output=True)


def _products(dtype: str, seed: int) -> tuple[Program, dict[str, tuple[str, str]]]:
    """Four orientations of a product with ordinary and with adversarial operands, two of them pipelined."""
    kind = f32 if dtype == "tf32" else BY_NAME[dtype]
    result = i32 if kind.kind == "int" else f32
    rows, cols, depth, step = 24, 20, 72, 32
    precision = ", precision='tf32'" if dtype == "tf32" else ""
    tensors: list[Tensor] = []
    body: list[Statement] = []
    labels: dict[str, tuple[str, str]] = {}
    for number, (ta, tb) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        values = ("normal", "everything" if kind.is_float else "whole range")[number % 2]
        a, b, o = f"a{number}", f"b{number}", f"o{number}"
        tensors += [Tensor(a, kind, (depth, rows) if ta else (rows, depth), values=values)]
        tensors += [Tensor(b, kind, (cols, depth) if tb else (depth, cols), values="normal")]
        tensors += [Tensor(o, result, (rows, cols), output=True)]
        acc = Var(f"acc{number}", result, (rows, cols))
        at = tile_type(kind, (step, rows) if ta else (rows, step), "s")
        bt = tile_type(kind, (cols, step) if tb else (step, cols), "s")
        loads = (
            f"ww.load({a}, {'(k, 0)' if ta else '(0, k)'}, {at})",
            f"ww.load({b}, {'(0, k)' if tb else '(k, 0)'}, {bt})",
        )
        update = f"ww.mma_A{'t' * ta}B{'t' * tb}({{0}}, {loads[0]}, {loads[1]}{precision})"
        loop = "ww.pipeline" if ta == tb else "ww.range"
        body += _loop(acc, f"for k in {loop}({-(-depth // step)})", update)
        body += [Do(f"ww.store({o}, (0, 0), {{0}})", (acc,), o)]
        labels[o] = f"mma_A{'t' * ta}B{'t' * tb}", dtype
    return Program(seed, tuple(tensors), (), tuple(body)), labels


def _loop(acc: Var, head: str, update: str) -> list[Statement]:
    zeros = Let(acc, f"ww.zeros({tile_type(acc.dtype, acc.shape)})")
    return [zeros, Block(head, (Let(acc, update, (acc,)),))]
