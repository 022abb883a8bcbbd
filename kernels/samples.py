"""Random arrays for the kernels' sample inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpwave as ww


def array(rng: np.random.Generator, dtype: ww.DType, *shape: int) -> np.ndarray[Any, Any]:
    """Normal numbers, or small integers; also serves as an output's memory, which a kernel overwrites."""
    return ww.ArraySpec(dtype, shape).random(rng)
