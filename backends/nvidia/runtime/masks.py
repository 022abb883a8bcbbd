"""Which accesses a tensor allows: wide ones of 16 bytes, and the bulk copy engine's (TMA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.backends.nvidia.arch import TensorMapLimits
from warpwave.backends.nvidia.lowered import MASKED
from warpwave.tiles.runtime.arrays import Array

ALL = 2**64 - 1
UNIT = 16  # bytes of a wide access
_LIMITS = TensorMapLimits()


@dataclass(frozen=True)
class View:
    """What decides about accesses to a tensor: element size, extents, strides in elements, address modulo 16."""

    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    misalignment: int

    @property
    def outer(self) -> list[int]:
        """Strides in bytes that matter: of all axes but the last, without those of a single element."""
        pairs = zip(self.strides[:-1], self.shape[:-1], strict=True)
        return [stride * self.nbytes for stride, extent in pairs if extent != 1]


def view_of(array: Array) -> View:
    """What decides about accesses to an array."""
    return View(array.dtype.nbytes, array.shape, array.strides, array.address % UNIT)


def is_wide(view: View) -> bool:
    """Rows contiguous, 16-byte aligned and of whole 16-byte units."""
    if not view.shape or view.misalignment or any(stride % UNIT for stride in view.outer):
        return False
    return (view.strides[-1] == 1 or view.shape[-1] == 1) and view.shape[-1] * view.nbytes % UNIT == 0


def fits_maps(view: View) -> bool:
    """Whether tensor maps of this tensor can be encoded, so that the bulk copy engine can move its tiles."""
    if view.misalignment % _LIMITS.alignment or 0 in view.shape or view.strides[-1:] != (1,):
        return False
    return all(0 < s < _LIMITS.max_stride and s % _LIMITS.alignment == 0 for s in view.outer)


def has_rows(view: View) -> bool:
    """Rows contiguous, wherever they begin."""
    return bool(view.shape) and (view.strides[-1] == 1 or view.shape[-1] == 1)


def wide_mask(views: Sequence[View]) -> int:
    """Bit i is set if the i-th tensor is wide, bit 32 + i if its rows are contiguous.

    Bits of no tensor are set, as in ALL. Later than the 32nd: neither.
    """
    narrow = sum(1 << i for i, view in enumerate(views[:MASKED]) if not is_wide(view))
    apart = sum(1 << i for i, view in enumerate(views[:MASKED]) if not has_rows(view))
    return ALL & ~narrow & ~(apart << MASKED)


def map_mask(views: Sequence[View], mapped: Sequence[bool]) -> int:
    """Bit i is set if the i-th tensor has maps (`mapped`), and they can be used."""
    pairs = zip(views[:MASKED], mapped[:MASKED], strict=True)
    return sum(1 << i for i, (view, has_maps) in enumerate(pairs) if has_maps and fits_maps(view))
