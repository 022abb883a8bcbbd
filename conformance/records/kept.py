"""What a record keeps of an output: a digest of all of it, and all or a sample of its elements."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
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
    """`elements` are those at `indices`, flat and in order; `sample` says how many were asked for, 0 for all.

    Any NaN is one NaN to the digest.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str
    elements: Array
    sample: int = 0

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.sample == 0

    @property
    def indices(self) -> npt.NDArray[np.int64]:
        """Where the kept elements are in the flat output."""
        return spread(int(np.prod(self.shape, dtype=np.int64)), self.sample)

    @property
    def facts(self) -> dict[str, Any]:
        """All but the elements, as plain values."""
        return {"dtype": self.dtype, "shape": list(self.shape), "digest": self.digest, "sample": self.sample}

    @staticmethod
    def of(facts: Mapping[str, Any], elements: Array) -> Kept:
        """From its facts and the elements' bytes, as anything that has them."""
        typed = elements.view(BY_NAME[facts["dtype"]].numpy)
        return Kept(facts["dtype"], tuple(facts["shape"]), facts["digest"], typed, facts["sample"])

    def as_json(self) -> dict[str, Any]:
        """Plain values, elements included."""
        return {**self.facts, "elements": base64.b64encode(zlib.compress(self.elements.tobytes(), 6)).decode()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Kept:
        """The inverse of `as_json`."""
        raw = zlib.decompress(base64.b64decode(data["elements"]))
        return Kept.of(data, np.frombuffer(raw, np.uint8))


def keep(array: Array) -> Kept:
    """The part of an output that goes into a record."""
    dtype = BY_NUMPY[array.dtype]
    flat = np.ascontiguousarray(array).reshape(-1)
    sample = 0 if flat.nbytes <= WHOLE_BYTES else SAMPLE
    return Kept(dtype.name, array.shape, digest(flat), flat[spread(flat.size, sample)].copy(), sample)


def spread(size: int, sample: int) -> npt.NDArray[np.int64]:
    """About `sample` of `size` places, spread with a golden-ratio stride; all for 0."""
    if not sample:
        return np.arange(size)
    return np.unique((np.arange(sample) * 0.6180339887498949 % 1.0 * size).astype(np.int64))


def digest(flat: Array) -> str:
    """The same for the same values, whatever the bits of a NaN are."""
    canonical = flat.copy()
    if flat.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            canonical[np.isnan(flat.astype(np.float64))] = np.nan
    return hashlib.sha256(canonical.tobytes()).hexdigest()[:32]
