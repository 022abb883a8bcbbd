"""Ops that only move elements: the same for whatever the elements stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _slice(attrs: Attrs, x: Array) -> list[Array]:
    ranges = zip(attrs["offsets"], attrs["shape"], strict=True)
    return [x[tuple(slice(offset, offset + size) for offset, size in ranges)]]


def _interleave(_: Attrs, even: Array, odd: Array) -> list[Array]:
    return [np.stack([even, odd], axis=-1).reshape(*even.shape[:-1], -1)]


def _same(_: Attrs, x: Array) -> list[Array]:
    return [x]


REARRANGE: dict[str, Callable[..., list[Array]]] = {
    "expand_dims": lambda attrs, x: [np.expand_dims(x, attrs["axis"])],
    "squeeze": lambda attrs, x: [np.squeeze(x, attrs["axis"])],
    "broadcast": lambda attrs, x: [np.broadcast_to(x, attrs["shape"])],
    "transpose": lambda _, x: [x.T],
    "slice": _slice,
    "concat": lambda attrs, *xs: [np.concatenate(xs, axis=attrs["axis"])],
    "deinterleave": lambda _, x: [x[..., 0::2], x[..., 1::2]],
    "interleave": _interleave,
    "copy": _same,
    "distribute": _same,
}
