"""What a record keeps of an output: a digest of all of it, and all or a sample of its elements."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import BY_NAME, BY_NUMPY

Array = npt.NDArray[Any]
WHOLE_BYTES = 2048
SAMPLE = 320


@dataclass(frozen=True)
class Kept:
    """`elements` are those at `indices(shape)`, flat and in order. Any NaN is one NaN to the digest."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    elements: Array

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.elements.size == int(np.prod(self.shape, dtype=np.int64))

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        packed = base64.b64encode(zlib.compress(self.elements.tobytes(), 6)).decode()
        return {"dtype": self.dtype, "shape": list(self.shape), "digest": self.digest, "elements": packed}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Kept:
        """The inverse of `as_json`."""
        raw = zlib.decompress(base64.b64decode(data["elements"]))
        elements = np.frombuffer(raw, BY_NAME[data["dtype"]].numpy)
        return Kept(data["dtype"], tuple(data["shape"]), data["digest"], elements)


def keep(array: Array) -> Kept:
    """The part of an output that goes into a record."""
    dtype = BY_NUMPY[array.dtype]
    flat = np.ascontiguousarray(array).reshape(-1)
    return Kept(dtype.name, array.shape, digest(flat), flat[indices(array.shape, dtype.nbytes)].copy())


def indices(shape: tuple[int, ...], nbytes: int) -> npt.NDArray[np.int64]:
    """Which elements are kept: all of a small output, else SAMPLE of them, spread with a golden-ratio stride."""
    size = int(np.prod(shape, dtype=np.int64))
    if size * nbytes <= WHOLE_BYTES:
        return np.arange(size)
    return np.unique((np.arange(SAMPLE) * 0.6180339887498949 % 1.0 * size).astype(np.int64))


def digest(flat: Array) -> str:
    """The same for the same values, whatever the bits of a NaN are."""
    canonical = flat.copy()
    if flat.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            canonical[np.isnan(flat.astype(np.float64))] = np.nan
    return hashlib.sha256(canonical.tobytes()).hexdigest()[:32]
