"""ww.print: a record for each time that a block prints goes to a device buffer, and to the user after the launch.

Words have 64 bits. The first counts the words in use; a record is the number of its print, the block's
coordinates, and the elements of all values in row-major order, each as its bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.convert import inside
from warpwave.tiles.types import TileType

CAPACITY = 1 << 17
Words = npt.NDArray[np.uint64]


def _size(tile: TileType) -> int:
    return math.prod(tile.shape)


def lower_print(lw: Lowering, op: Op) -> None:
    """One lane reserves the record, all write their elements; what does not fit is counted but not kept."""
    lw.prints.append(op)
    grid = next((other for other in lw.kernel.body.ops if other.name == "grid"), None)
    coordinates = [lw.name(v) for v in grid.results] if grid else []
    header = [str(len(lw.prints)), *coordinates]
    words = len(header) + sum(_size(v.tile) for v in op.operands)
    body, record = lw.body, lw.fresh("record")
    lw.scratch(8)
    lw.barrier()
    body.line(f"if (thread == 0) *(u64 *)scratch = reserve(prints, {words});")
    lw.barrier()
    body.line(f"const u64 {record} = *(const u64 *)scratch;")
    with body.block(f"if ({record} + {words} <= {CAPACITY})"):
        body.line("if (thread == 0) {")
        for i, text in enumerate(header):
            body.line(f"  prints[{record} + {i}] = (u64)(long){text};")
        body.line("}")
        place = len(header)
        for value in op.operands:
            _write_elements(lw, value, f"prints[{record} + {place}")
            place += _size(value.tile)


def _write_elements(lw: Lowering, value: Any, first: str) -> None:
    tile, name = value.tile, lw.name(value)
    if tile.is_scalar:
        return lw.body.line(f"if (thread == 0) {first}] = {_bits(name, tile.dtype)};")
    layout = lw.layout(value)
    at = lw.coordinates(layout)
    element = f"{at.at(0)} * {tile.shape[-1]} + {at.at(1)}" if tile.rank == 2 else at.at(0)
    conditions = [c for c in (lw.primary(layout), inside(lw, layout, tile.shape)) if c != "true"]
    with lw.body.each(len(layout.items)):
        text = f"{first} + {element}] = {_bits(f'{name}.get(i)', tile.dtype)};"
        lw.body.line(f"if ({' && '.join(conditions)}) {text}" if conditions else text)
    return None


def _bits(text: str, dtype: DType) -> str:
    if dtype.is_float:
        return f"(u64)bits<u{dtype.bits}>({text})"
    return f"(u64)(long)({text})"


def show_prints(prints: Sequence[Op], rank: int, words: Words) -> None:
    """Print all records, block by block; those of one block in the order in which it printed."""
    records = sorted(_records(prints, rank, words), key=lambda record: record[0])
    for block, message, values in records:
        print(f"block ({', '.join(map(str, block))}) {message}", *(np.array2string(v) for v in values))
    if int(words[0]) > CAPACITY:
        print(f"ww.print: {int(words[0]) - CAPACITY} words more than the buffer of {CAPACITY} were not kept")


def _records(prints: Sequence[Op], rank: int, words: Words) -> Iterator[tuple[tuple[int, ...], str, list[Any]]]:
    place = 1
    while place < min(int(words[0]), CAPACITY) and words[place]:
        op = prints[int(words[place]) - 1]
        block = tuple(int(w) for w in words[place + 1 : place + 1 + rank])
        place += 1 + rank
        values = []
        for operand in op.operands:
            size = _size(operand.tile)
            values.append(_value(words[place : place + size], operand.tile))
            place += size
        yield block, op.attrs["message"], values


def _value(words: Words, tile: TileType) -> npt.NDArray[Any]:
    dtype = tile.dtype
    if dtype.is_float:
        return words.astype(f"u{dtype.nbytes}").view(dtype.numpy).reshape(tile.shape)
    return words.view(np.int64).astype(dtype.numpy).reshape(tile.shape)
