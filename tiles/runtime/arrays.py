"""Arrays of any library as one view: dtype, shape, strides, device and address, without copying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import DType


@dataclass(frozen=True)
class Array:
    """A borrowed array. `strides` count elements. `host` is a NumPy view if the memory is the CPU's.

    `owner` keeps the memory alive. `device` is "cpu:0", "cuda:N" or "rocm:N".
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    address: int
    owner: Any
    host: np.ndarray[Any, Any] | None = None
