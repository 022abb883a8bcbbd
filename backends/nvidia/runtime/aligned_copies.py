"""Aligned copies of operands: where rows do not begin at multiples of 16 bytes, the bulk copy engine cannot read them.

A kernel of its own copies such a tensor in front of the launch to rows that begin at multiples of 128 bytes, and the
launch reads the copy. That costs one more pass over the operand; a product reads it many times.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import driver, masks
from warpwave.backends.nvidia.runtime.functions import Function
from warpwave.backends.nvidia.runtime.masks import UNIT, View
from warpwave.backends.nvidia.runtime.memory import for_launch
from warpwave.tiles.runtime.arrays import Array

LINE = 128  # bytes; the engine asks for a line at a time: rows that begin inside one cost it two requests for each
AXES, COPIES = 4, 8  # COPIED_AXES and COPIES of rows.cuh
THREADS, EACH = 256, 2  # of a block; units of a thread
ALL_SHARED = 100  # percent
MOST_UNITS = 2**31 - 1 - THREADS * EACH  # the kernel counts them in 32 bits

SOURCE = f"""#include "warpwave/ptx/grids.cuh"
#include "warpwave/rows.cuh"

extern "C" __global__ void __launch_bounds__({THREADS}) copy_rows(const __grid_constant__ ww::row_copies copies) {{
  ww::ptx::start_dependent_grids();
  const int first = blockIdx.x * {THREADS * EACH} + threadIdx.x;
  ww::copy_units<{EACH}>(copies.of[blockIdx.y], first, {THREADS});
}}
"""
_COPY_WORDS = struct.calcsize("3Q4qq4iii") // 8
KERNEL = Lowered(SOURCE, SOURCE, "copy_rows", THREADS, 0, 1, False, (), (), (), ())


@dataclass(frozen=True)
class RowCopy:
    """One tensor's copy. `tensor` is its place among the tensor arguments; strides count elements."""

    tensor: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Along the last axis, all others together."""
        return math.prod(self.shape[:-1])

    @property
    def pitch(self) -> int:
        """Bytes from row to row of the copy."""
        return -(-self.shape[-1] * self.element_bytes // LINE) * LINE

    @property
    def units(self) -> int:
        """16-byte units of a row."""
        return -(-self.shape[-1] * self.element_bytes // UNIT)

    @property
    def nbytes(self) -> int:
        """Of the copy."""
        return self.rows * self.pitch

    @property
    def copied_strides(self) -> tuple[int, ...]:
        """The copy's strides, in elements."""
        strides = [1]
        step = self.pitch // self.element_bytes
        for extent in reversed(self.shape[:-1]):
            strides.insert(0, step)
            step *= extent
        return tuple(strides)

    @property
    def last(self) -> int:
        """Bytes from the tensor's first element to behind its last one."""
        pairs = zip(self.shape, self.strides, strict=True)
        return (sum((extent - 1) * stride for extent, stride in pairs) + 1) * self.element_bytes

    def packed(self, address: int = 0, to: int = 0) -> bytes:
        """`row_copy` of rows.cuh for a tensor at this address."""
        outer = len(self.shape) - 1
        strides = [stride * self.element_bytes for stride in self.strides[:-1]] + [0] * (AXES - outer)
        extents = list(self.shape[:-1]) + [1] * (AXES - outer)
        places = address, address + self.last, to
        return struct.pack("3Q4qq4iii", *places, *strides, self.pitch, *extents, self.rows, self.units)


class Copier:
    """The copies of a planned launch: all but addresses is worked out."""

    def __init__(self, copies: Sequence[RowCopy], function: Function) -> None:
        self._handle = function.handle
        # A launch can begin beside the copies only where they leave its shared memory as it will be.
        carveout = driver.module().CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        driver.call("cuFuncSetAttribute", self._handle, carveout, ALL_SHARED)
        self._template = b"".join(copy.packed() for copy in copies).ljust(COPIES * _COPY_WORDS * 8, b"\0")
        blocks = max(-(-copy.rows * copy.units // (THREADS * EACH)) for copy in copies)
        self._grid = blocks, len(copies), 1
        self._places: list[tuple[int, int, int]] = []  # of each copy: its tensor, its last byte, its place in memory
        self._nbytes = 0
        for copy in copies:
            self._places.append((copy.tensor, copy.last, self._nbytes))
            self._nbytes += copy.nbytes

    @contextmanager
    def copied(self, addresses: Sequence[int], ordinal: int, stream: int) -> Iterator[Sequence[int]]:
        """Start the copies; yields the addresses with the copies' own, which are valid for work on the stream."""
        with for_launch(self._nbytes, ordinal, stream) as memory:
            parameter = bytearray(self._template)
            words, result = memoryview(parameter).cast("Q"), list(addresses)
            for word, (tensor, last, place) in zip(range(0, len(words), _COPY_WORDS), self._places, strict=False):
                words[word], words[word + 1], words[word + 2] = result[tensor], result[tensor] + last, memory + place
                result[tensor] = memory + place
            driver.launch(self._handle, self._grid, THREADS, stream, parameter)
            yield result


def copies_for(lowered: Lowered, arrays: Mapping[str, Array]) -> tuple[RowCopy, ...]:
    """The copies with which the engine can read all that it is to read; none if it can anyway, or not even so."""
    wanted = []
    for place, (name, array) in enumerate(arrays.items()):
        view = masks.view_of(array)
        if name in lowered.copied and not masks.fits_maps(view):
            copy = RowCopy(place, view.nbytes, view.shape, view.strides)
            if not _can_be_made(copy, view):
                return ()
            wanted.append(copy)
    return tuple(wanted) if len(wanted) <= COPIES else ()


def _can_be_made(copy: RowCopy, view: View) -> bool:
    if not 1 < len(view.shape) <= AXES + 1 or 0 in view.shape or not masks.has_rows(view):
        return False
    return copy.rows * copy.units <= MOST_UNITS and all(stride >= 0 for stride in view.strides)


def as_copied(arrays: Mapping[str, Array], copies: Sequence[RowCopy]) -> dict[str, Array]:
    """The arrays as the launch sees them, at addresses that are not known yet."""
    names, result = list(arrays), dict(arrays)
    for copy in copies:
        name = names[copy.tensor]
        result[name] = replace(arrays[name], strides=copy.copied_strides, address=0)
    return result
