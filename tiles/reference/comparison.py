"""How an output compares with the values and bounds that it should keep, element by element."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Wide = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """Counts, and the worst element, whose error is the largest fraction `ratio` of its own bound.

    `beyond` counts elements outside their bound, `unknown` those about which nothing is known. `error`, `bound`, `got`
    and `want` are of the worst element, at `index`.
    """

    output: str
    elements: int
    beyond: int
    unknown: int
    index: tuple[int, ...]
    got: float
    want: float
    error: float
    bound: float
    ratio: float

    def as_json(self) -> dict[str, Any]:
        """Plain values, with text for what JSON has no number for."""
        return {k: _plain(v) for k, v in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def widen(array: npt.NDArray[Any]) -> Wide:
    """Any of the language's dtypes as float64, exactly (64-bit integers beyond 2^53 excepted)."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return np.asarray(array).astype(np.float64)


def errors(got: Wide, value: Wide, bound: Wide) -> tuple[Wide, Wide]:
    """Each element's error with its sign, and its size as a fraction of the bound.

    NaN agrees with NaN, an infinity with itself, and anything where nothing is known.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        error = np.where(same, 0.0, got - value)
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(same, 0.0, np.where(bound > 0, np.abs(error) / bound, np.inf))
    return error, np.where(np.isinf(bound), 0.0, ratio)


def worst_element(got: Wide, want: Wide, error: Wide, bound: Wide, ratio: Wide) -> dict[str, Any]:
    """The fields of a comparison but its name."""
    if not got.size:
        return {"elements": 0, "beyond": 0, "unknown": 0, "index": ()} | dict.fromkeys(_NUMBERS, 0.0)
    at = np.unravel_index(int(np.argmax(ratio)), got.shape)
    numbers = (got, want, np.abs(error), bound, ratio)
    return {
        "elements": got.size,
        "beyond": int((ratio > 1).sum()),
        "unknown": int(np.isinf(bound).sum()),
        "index": tuple(int(i) for i in at),
    } | {name: float(array[at]) for name, array in zip(_NUMBERS, numbers, strict=True)}


_NUMBERS = ("got", "want", "error", "bound", "ratio")
