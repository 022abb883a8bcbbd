"""What a launch passes to a built kernel, whatever executes it: grid, block order, and each argument's C parameters."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.grid_order import choose_order
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, Value, walk
from warpwave.tiles.reference import Extents, launch_grid
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.spans import Span, span
from warpwave.tiles.types import TensorType

Argument = Array | int | float | bool

MAX_GRID = 2**31 - 1
MAX_GRID_RANK = 4
ALL_WIDE = 2**32 - 1
MAX_REACH = 2**31 - 2**16  # bytes from a tile's first element to its last that fast loads can count
REMEMBERED = 4096
ALIGNMENT = 16  # the variant of a launch depends on addresses modulo this

_SCALARS = {"bool": "?", "i32": "i", "i64": "q", "f32": "f"}


@dataclass(frozen=True)
class Geometry:
    """What follows from the arguments' shapes, strides and alignment, for all launches with the same ones.

    `tail` are the last of the kernel's parameters, `wide` is the variant (see `wide_tensors`), `spans` have
    addresses relative to the first element.
    """

    blocks: int
    sizes: tuple[int, ...]
    tail: tuple[int, ...]
    wide: int
    spans: tuple[Span | None, ...]


class Packer:
    """Turns arguments into the C parameters of one kernel; what does not depend on a launch is done once."""

    def __init__(self, kernel: Kernel, target: Target, prints: bool) -> None:
        self._kernel = kernel
        self._chip = target.chips[0]
        atomic = {op.operands[0] for op in walk(kernel.body) if op.name == "atomic_add"}
        self._units = tuple(4 if value in atomic else 1 for value in kernel.params)
        self._reaches = [
            reach for value, reach in reached_extents(kernel).items() if isinstance(value.type, TensorType)
        ]
        self._decide = _before_grid(kernel)
        self.numbers_decide = any(
            decides and not isinstance(v.type, TensorType)
            for v, decides in zip(kernel.params, self._decide, strict=True)
        )
        self._geometries: dict[tuple[object, ...], Geometry] = {}
        self._prints = prints

    @cached_property
    def layout(self) -> struct.Struct:
        """The parameters in memory, as the C ABI aligns them."""
        codes = [_codes(value.type) for value in self._kernel.params]
        return struct.Struct("".join(["@", *codes, f"{MAX_GRID_RANK + 2}i", "QQ" if self._prints else "Q"]))

    def geometry(self, arguments: Mapping[str, Argument]) -> Geometry:
        """The grid for these arguments; CheckFailed if a condition of the launch is not met."""
        key = tuple(
            [
                (a.shape, a.strides, a.address % ALIGNMENT)
                if isinstance(a, Array)
                else (type(a), a)
                if decides
                else None
                for a, decides in zip(arguments.values(), self._decide, strict=True)
            ]
        )
        found = self._geometries.get(key)
        if found is None:
            if len(self._geometries) >= REMEMBERED:
                self._geometries.clear()
            found = self._geometries[key] = self._measure(arguments)
        return found

    def _measure(self, arguments: Mapping[str, Argument]) -> Geometry:
        sizes = launch_grid(self._kernel, {n: _described(a) for n, a in arguments.items()})
        blocks = math.prod(sizes)
        if blocks > MAX_GRID:
            raise UnsupportedError(f"{blocks} blocks, a launch has at most {MAX_GRID}", loc=self._kernel.loc)
        rows, cols = (1, 1, *sizes)[-2:]
        order = choose_order(rows, cols, self._chip.xcds, self._chip.cus_per_xcd) if blocks else None
        padded = (*sizes, 1, 1, 1, 1)[:MAX_GRID_RANK]
        tail = (*padded, order.chunk, order.window) if order else padded
        pairs = zip(arguments.values(), self._units, strict=True)
        spans = tuple(_relative(a, unit) if isinstance(a, Array) else None for a, unit in pairs)
        return Geometry(blocks, sizes, tail, wide_tensors(arguments, self._reaches), spans)


def _before_grid(kernel: Kernel) -> tuple[bool, ...]:
    """For each parameter, whether the grid's size or a condition of the launch may depend on it."""
    ops = kernel.body.ops
    grid = next((i for i, op in enumerate(ops) if op.name == "grid"), 0)
    used = {value for op in ops[: grid + 1] for value in op.operands}
    return tuple(value in used for value in kernel.params)


def _codes(type_: object) -> str:
    if isinstance(type_, TensorType):
        return f"Qq{type_.rank}q{type_.rank}i"
    return _SCALARS[type_.dtype.name]  # type: ignore[attr-defined]


def _described(argument: Argument) -> Extents | int | float | bool:
    return Extents(argument.shape) if isinstance(argument, Array) else argument


def _relative(array: Array, unit: int) -> Span:
    found = span(array, unit)
    return Span(found.address - array.address, found.nbytes, found.offset)


def absolute(arguments: Mapping[str, Argument], spans: Sequence[Span | None]) -> list[Span | None]:
    """The memory of each argument of a launch, None for scalars."""
    pairs = zip(arguments.values(), spans, strict=True)
    return [Span(a.address + s.address, s.nbytes, s.offset) if s and isinstance(a, Array) else None for a, s in pairs]


def reached_extents(kernel: Kernel) -> dict[Value, dict[int, int]]:
    """For each parameter, the largest extent along each axis of the tiles that are loaded and stored.

    The offsets within these have 32 bits; what a tile lies in, such as batches, has 64.
    """
    found: dict[Value, dict[int, int]] = {value: {} for value in kernel.params}
    for op in walk(kernel.body):
        if op.name in ("load", "store"):
            tile = op.attrs["type"] if op.name == "load" else op.operands[1].tile
            extents = found[op.operands[0]]
            for axis, extent in zip(op.attrs["axes"], tile.shape, strict=True):
                extents[axis] = max(extents.get(axis, 0), extent)
    return found


def wide_tensors(arguments: Mapping[str, Argument], extents: Sequence[Mapping[int, int]]) -> int:
    """One bit for each tensor, set if it has wide rows; bits of no tensor are set, as in ALL_WIDE.

    `extents` of tiles are of the tensors in order (see `reached_extents`).
    """
    tensors = [a for a in arguments.values() if isinstance(a, Array)]
    pairs = enumerate(zip(tensors, extents, strict=True))
    narrow = sum([1 << i for i, (array, tile) in pairs if not has_wide_rows(array, tile)])
    return ALL_WIDE & ~narrow


def has_wide_rows(array: Array, tile: Mapping[int, int]) -> bool:
    """Whether rows are contiguous, aligned and of whole 16-byte units, and offsets within a tile fit 32 bits."""
    if not array.shape:
        return False
    size = array.dtype.nbytes
    *outer, last = array.strides
    aligned = array.address % 16 == 0 and all([s * size % 16 == 0 for s in outer])
    whole = last == 1 and array.shape[-1] * size % 16 == 0
    reaches = [(n - 1) * array.strides[axis] * size for axis, n in tile.items()]
    return aligned and whole and all([r >= 0 for r in reaches]) and sum(reaches) < MAX_REACH


def values(arguments: Sequence[Argument], bases: Sequence[int], spans: Sequence[Span | None]) -> list[int | float]:
    """The parameters of the arguments in order: for an array its base, first element, strides and extents."""
    packed: list[int | float] = []
    for argument, base, memory in zip(arguments, bases, spans, strict=True):
        if isinstance(argument, Array):
            assert memory is not None
            packed += (base, memory.offset, *argument.strides, *argument.shape)
        else:
            packed.append(argument)
    return packed
