"""A kernel's C parameters in memory: where each lies, and a thread's buffer that launches are packed into."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime.tensor_maps import NBYTES
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.types import TensorType

GRID_RANK = 4
MAP_ALIGNMENT = 64
_SCALARS = {"bool": "?", "i32": "i", "i64": "q", "f32": "f"}

Argument = Array | int | float | bool


@dataclass(frozen=True)
class Layout:
    """Offsets of a kernel's parameters in one buffer, and the sizes that the C ABI gives them."""

    arguments: tuple[int, ...]
    codes: tuple[str, ...]  # of `struct`: a scalar's, or for a tensor that of its address, strides and extents
    maps: tuple[int, ...]
    grid: int
    status: int
    prints: int | None
    nbytes: int

    @property
    def offsets(self) -> tuple[int, ...]:
        """Of all parameters in the kernel's order."""
        last = () if self.prints is None else (self.prints,)
        return (*self.arguments, *self.maps, self.grid, self.status, *last)


def layout_of(kernel: Kernel, lowered: Lowered) -> Layout:
    """The layout of `lowered`'s parameters."""
    end = 0

    def place(nbytes: int, alignment: int) -> int:
        nonlocal end
        start = -(-end // alignment) * alignment
        end = start + nbytes
        return start

    codes = tuple(_code(value.type) for value in kernel.params)
    arguments = tuple(place(struct.calcsize(c), 8 if c[0] == "Q" else struct.calcsize(c)) for c in codes)
    maps = tuple(place(NBYTES, MAP_ALIGNMENT) for _ in lowered.maps)
    grid, status = place(4 * GRID_RANK, 4), place(8, 8)
    prints = place(8, 8) if lowered.prints else None
    return Layout(arguments, codes, maps, grid, status, prints, end)


def _code(type_: object) -> str:
    if isinstance(type_, TensorType):
        rank = max(type_.rank, 1)
        return f"Q{rank}q{rank}i0q"  # 0q: padded to a multiple of 8, as a C struct is
    return _SCALARS[type_.dtype.name]  # type: ignore[attr-defined]


def template(layout: Layout, arguments: Sequence[Argument], sizes: Sequence[int]) -> bytes:
    """All parameters of a launch; what is written later is 0: addresses, scalars, maps and feedback."""
    memory = bytearray(layout.nbytes)
    for offset, code, argument in zip(layout.arguments, layout.codes, arguments, strict=True):
        if isinstance(argument, Array):
            strides, shape = argument.strides or (0,), argument.shape or (1,)
            struct.pack_into(code, memory, offset, 0, *strides, *shape)
    struct.pack_into(f"{GRID_RANK}i", memory, layout.grid, *(*sizes, 1, 1, 1, 1)[:GRID_RANK])
    return bytes(memory)


def scalar_writers(layout: Layout) -> tuple[Callable[[memoryview, int | float | bool], None] | None, ...]:
    """For each argument that is a scalar, what writes it into a buffer; None for tensors."""
    return tuple(
        None if code[0] == "Q" else _writer(struct.Struct(code), offset)
        for code, offset in zip(layout.codes, layout.arguments, strict=True)
    )


def _writer(form: struct.Struct, offset: int) -> Callable[[memoryview, int | float | bool], None]:
    def write(memory: memoryview, value: int | float | bool) -> None:
        form.pack_into(memory, offset, value)

    return write


class Buffer:
    """One thread's memory for parameters, and the array of pointers into it that the driver takes.

    The driver copies parameters when it accepts a launch, so that a thread's next launch may use the same memory.
    """

    def __init__(self, layout: Layout) -> None:
        size = self.size_of(layout)
        owned = bytearray(size + MAP_ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(owned))
        skipped = -start % MAP_ALIGNMENT
        self.bytes = memoryview(owned)[skipped : skipped + size]
        self.words = self.bytes.cast("Q")
        base = start + skipped
        self._pointers = (ctypes.c_void_p * len(layout.offsets))(*(base + offset for offset in layout.offsets))
        self.pointers = ctypes.addressof(self._pointers)

    @staticmethod
    def size_of(layout: Layout) -> int:
        """Bytes of a buffer: whole words."""
        return -(-layout.nbytes // 8) * 8
