"""The memory that arrays cover: from the lowest to the highest element, and merged where arrays share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime.arrays import Array, borrow


@dataclass(frozen=True)
class Span:
    """The bytes from an array's lowest to its highest element: address, size, and where its first element is."""

    address: int
    nbytes: int
    offset: int


@dataclass(frozen=True)
class Region:
    """Memory that one or several overlapping arrays cover."""

    address: int
    nbytes: int
    written: bool


ALIGNMENT = 256  # copies keep addresses modulo this, so that what is aligned stays aligned


def span(array: Array, unit: int = 1) -> Span:
    """An array's memory in whole units of bytes, for kernels that access whole units around its elements."""
    if 0 in array.shape:
        return Span(array.address, 0, 0)
    size = array.dtype.nbytes
    reach = [s * (n - 1) * size for s, n in zip(array.strides, array.shape, strict=True)]
    low = array.address + sum([r for r in reach if r < 0])
    high = array.address + sum([r for r in reach if r > 0]) + size
    low, high = low // unit * unit, -(-high // unit) * unit
    return Span(low, high - low, array.address - low)


def duplicate(array: Array) -> Array:
    """A copy of an array that the CPU reaches, with its strides and its place within 16 bytes."""
    if array.host is None:
        raise UnsupportedError(f"{array} on {array.device} is not copied to the host", hint="describe it with ww.spec")
    memory, host = span(array), array.host
    raw = np.zeros(memory.nbytes + 15, np.uint8)
    start = (memory.address - raw.ctypes.data) % 16
    copy = np.ndarray(host.shape, host.dtype, raw.data, start + memory.offset, host.strides)
    copy[...] = host
    return borrow(copy)


@dataclass(frozen=True)
class Moved:
    """A region, and where a copy of it begins."""

    region: Region
    start: int


def moved(memory: Span, copies: Sequence[Moved]) -> int | None:
    """Where memory is in one of these copies; None if it is in none."""
    for copy in copies:
        offset = memory.address - copy.region.address
        if 0 <= offset < copy.region.nbytes:
            return copy.start + offset
    return None


def regions(spans: Sequence[Span], written: Sequence[bool]) -> list[Region]:
    """The memory of arrays with what overlaps merged, so that arrays which share memory still do in a copy of it."""
    merged: list[Region] = []
    present = [(s, w) for s, w in zip(spans, written, strict=True) if s.nbytes]
    for memory, is_written in sorted(present, key=lambda pair: pair[0].address):
        last = merged[-1] if merged else None
        if last and memory.address < last.address + last.nbytes:
            end = max(last.address + last.nbytes, memory.address + memory.nbytes)
            merged[-1] = Region(last.address, end - last.address, last.written or is_written)
        else:
            merged.append(Region(memory.address, memory.nbytes, is_written))
    return merged
