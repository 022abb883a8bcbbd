"""Arguments described without data: `ww.spec("bf16[512,256]")`, `ww.spec("i32=5")`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import ALL, BY_NAME, DType
from warpwave.tiles.errors import TileTypeError, TileValueError

SCALAR_DTYPES = ("i32", "i64", "f32", "bool")

_SPEC = re.compile(r"\s*(?P<dtype>\w+)\s*(?:\[(?P<shape>[^\]]*)\]|=\s*(?P<value>\S+))?\s*")


@dataclass(frozen=True)
class ArraySpec:
    """An array's dtype and shape; an extent of None is not known yet."""

    dtype: DType
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join('?' if n is None else str(n) for n in self.shape)}]"

    def random(self, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """A NumPy array of this dtype and shape: normal floats, integers from -8 to 7, random bools."""
        shape = tuple(_known(n, self) for n in self.shape)
        if self.dtype.is_float:
            return np.asarray(rng.standard_normal(shape, np.float32)).astype(self.dtype.numpy)
        low, high = (0, 2) if self.dtype.kind == "bool" else (-8, 8)
        return np.asarray(rng.integers(low, high, shape)).astype(self.dtype.numpy)


@dataclass(frozen=True)
class ScalarSpec:
    """A scalar argument's dtype and, where known, its value."""

    dtype: DType
    value: int | float | bool | None = None

    def __str__(self) -> str:
        return self.dtype.name + ("" if self.value is None else f"={self.value}")


def _known(extent: int | None, spec: ArraySpec) -> int:
    if extent is None:
        raise TileValueError(f"{spec} has an unknown extent, data needs all of them", hint="replace each ? by a number")
    return extent


def spec(text: str) -> ArraySpec | ScalarSpec | None:
    """Parse "bf16[512,256]" (an array; `?` for an unknown extent), "i32" or "i32=5" (a scalar), or "none".

    "none" gives None, an absent optional tensor.
    """
    match = _SPEC.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise TileValueError(
            f"cannot read the argument {text!r}", hint='write "bf16[512,256]", "f32[?,64]", "i32=5" or "none"'
        )
    if match["dtype"] == "none":
        return None
    dtype = dtype_named(match["dtype"])
    if match["shape"] is not None:
        return ArraySpec(dtype, tuple(_extent(part, text) for part in match["shape"].split(",") if part.strip()))
    if dtype.name not in SCALAR_DTYPES:
        raise TileTypeError(
            f"{text!r}: a scalar is one of {', '.join(SCALAR_DTYPES)}",
            hint=f'an array needs a shape: "{dtype}[512,256]"',
        )
    return ScalarSpec(dtype, None if match["value"] is None else _number(match["value"], dtype, text))


def dtype_named(name: str) -> DType:
    """The dtype of this name; TileTypeError with the nearest name otherwise."""
    if name in BY_NAME:
        return BY_NAME[name]
    near = difflib.get_close_matches(name, BY_NAME, 1, 0.5)
    known = ", ".join(d.name for d in ALL)
    raise TileTypeError(
        f"there is no dtype {name!r}", hint=f"did you mean {near[0]}?" if near else f"there are {known}"
    )


def _extent(text: str, whole: str) -> int | None:
    if text.strip() == "?":
        return None
    if not text.strip().isdecimal():
        raise TileValueError(f"{whole!r}: the extent {text.strip()!r} is neither a number nor ?")
    return int(text)


def _number(text: str, dtype: DType, whole: str) -> int | float | bool:
    try:
        if dtype.kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return int(text, 0) if dtype.is_int else float(text)
    except (KeyError, ValueError):
        raise TileValueError(f"{whole!r}: {text!r} is not a value of {dtype}") from None
