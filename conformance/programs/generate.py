"""The generator: a grid, a few statements drawn from all families, and a store of whatever nothing else reads."""

from __future__ import annotations

from collections.abc import Callable

from warpwave.conformance.programs import blocks, control, elementwise
from warpwave.conformance.programs.choose import Chooser, SeedChooser, pick
from warpwave.conformance.programs.model import Program
from warpwave.conformance.programs.writer import FLOATS, LENGTHS, Writer
from warpwave.tiles.dtypes import f32

Production = Callable[[Writer], None]
MAX_OUTPUTS = 5
MAX_INPUT_SEED = 2**31 - 1

SIMPLE: tuple[tuple[Production, int], ...] = (
    (elementwise.arithmetic, 5),
    (elementwise.function, 5),
    (elementwise.whole, 3),
    (elementwise.broadcast, 3),
    (elementwise.outer, 1),
    (elementwise.compare, 3),
    (elementwise.select, 3),
    (elementwise.triangle, 1),
    (elementwise.convert, 4),
    (elementwise.reinterpret, 1),
    (elementwise.random, 1),
    (blocks.reduce, 4),
    (blocks.scan, 2),
    (blocks.rearrange, 4),
    (blocks.buffer, 2),
    (blocks.check, 1),
)
LARGE: tuple[tuple[Production, int], ...] = (
    (blocks.product, 4),
    (blocks.small_product, 2),
    (blocks.softmax, 2),
    (blocks.online_softmax, 1),
    (blocks.normalise, 1),
    (blocks.atomic, 2),
    (blocks.round_trip, 1),
    (lambda w: control.loop(w, _simple), 4),
    (lambda w: control.branch(w, _simple), 3),
    (lambda w: control.call(w, _simple), 2),
)


def _weighted(w: Writer, table: tuple[tuple[Production, int], ...]) -> Production:
    return pick(w.chooser, [production for production, weight in table for _ in range(weight)])


def _simple(w: Writer) -> None:
    _weighted(w, SIMPLE)(w)


def _any(w: Writer) -> None:
    _weighted(w, LARGE if w.chance(30) else SIMPLE)(w)


def program_of_seed(seed: int) -> Program:
    """The program of an integer, the same on every machine."""
    return generate(SeedChooser(seed))


def generate(chooser: Chooser) -> Program:
    """A program from a source of choices."""
    w = Writer(chooser)
    prologue = _grid(w)
    for _ in range(w.integer(1, 7)):
        _any(w)
    _store_results(w)
    seed = w.integer(0, MAX_INPUT_SEED)
    return Program(seed, tuple(w.tensors), prologue, tuple(w.frames[0]), tuple(w.helpers), frozenset(w.features))


def _grid(w: Writer) -> tuple[str, ...]:
    """A grid of one or two dimensions over the first tensor, whose first tile is loaded."""
    rank = w.integer(1, 2)
    shape = w.shape(2)
    extents = [_covered(w, n) for n in shape]
    tensor = w.new_tensor(f32 if w.chance(50) else pick(w.chooser, FLOATS), tuple(extents))
    w.blocks = tuple(-(-n // t) for n, t in zip(extents[:rank], shape, strict=False))
    w.grid = ("m", "n")[:rank]
    sizes = ", ".join(
        f"cdiv({tensor.name}.{axis}, {t})" for axis, t in zip(("rows", "cols")[:rank], shape, strict=False)
    )
    w.let(
        f"ww.load({tensor.name}, ({', '.join(w.grid)}{', 0' * (2 - rank)}), rt[f32, {shape[0]}, {shape[1]}])",
        (),
        f32,
        shape,
    )
    return (f"{', '.join(w.grid)} = ww.grid({sizes})",)


def _covered(w: Writer, tile: int) -> int:
    """An extent of one to three tiles, whole or not."""
    return min(pick(w.chooser, LENGTHS), 3 * tile) if w.chance(60) else tile * w.integer(1, 2)


def _store_results(w: Writer) -> None:
    unread = [v for v in w.scope if v.name not in w.read]
    for var in unread[-MAX_OUTPUTS:] or w.scope[-1:]:
        w.store(var)
