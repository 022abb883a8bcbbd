"""Kernel arguments written as text: `c:f32[256,256]=zeros`, `bf16[64]=randn:1`, `i32=256`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
}

_FORM = re.compile(r"(?:(?P<name>\w+):)?(?P<dtype>\w+)(?:\[(?P<shape>[\d,\s]*)\])?=(?P<value>.+)")

GRAMMAR = (
    "[NAME:]TYPE[SHAPE]=FILL is a device buffer, TYPE=VALUE a value. TYPE is one of "
    + ", ".join(DTYPES)
    + ". FILL is zeros, ones, arange, nan, randn:SEED, rand:SEED, a number, or @FILE.npy."
)


class ArgumentError(ValueError):
    """The text is not an argument; the message says what was expected."""


@dataclass(frozen=True)
class Argument:
    """One kernel argument: a device buffer (an array) or a value (a NumPy scalar)."""

    name: str
    value: np.ndarray | np.generic

    @property
    def is_buffer(self) -> bool:
        """Whether the kernel gets a pointer to it."""
        return isinstance(self.value, np.ndarray)


def parse(text: str, index: int) -> Argument:
    """The argument that `text` describes; unnamed ones are called arg0, arg1, ..."""
    match = _FORM.fullmatch(text)
    if not match:
        raise ArgumentError(f"cannot read the argument {text!r}: {GRAMMAR}")
    name, dtype_name, shape, value = match.group("name", "dtype", "shape", "value")
    dtype = DTYPES.get(dtype_name)
    if dtype is None:
        raise ArgumentError(f"unknown type {dtype_name!r} in {text!r}; known: {', '.join(DTYPES)}")
    name = name or f"arg{index}"
    if shape is None:
        return Argument(name, _scalar(value, dtype))
    return Argument(name, _array(value, _dimensions(shape), dtype))


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _number(text: str) -> float | int:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is neither a number nor a known fill: {GRAMMAR}") from None


def _scalar(text: str, dtype: np.dtype) -> np.generic:
    number = _number(text)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max or number != int(number):
            raise ArgumentError(f"{text} is no {dtype}: a whole number from {limits.min} to {limits.max}")
        number = int(number)
    scalar: np.generic = dtype.type(number)
    return scalar


_FILLS: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
    "zeros": np.zeros,
    "ones": np.ones,
    "arange": lambda shape: np.arange(int(np.prod(shape))).reshape(shape),
    "nan": lambda shape: np.full(shape, np.nan),
}


def _array(text: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if text.startswith("@"):
        return _from_file(Path(text[1:]), shape, dtype)
    kind, _, seed = text.partition(":")
    if kind in ("randn", "rand"):
        if seed and not seed.isdecimal():
            raise ArgumentError(f"{text!r}: the seed of {kind} is a whole number, such as {kind}:1")
        rng = np.random.default_rng(int(seed or 0))
        values = rng.standard_normal(shape) if kind == "randn" else rng.random(shape)
    elif kind in _FILLS:
        values = _FILLS[kind](shape)
    else:
        values = np.full(shape, _scalar(text, dtype))
    return np.ascontiguousarray(values.astype(dtype))


def _from_file(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        raise ArgumentError(f"{path} is no .npy file of numbers") from None
    if values.shape != shape:
        raise ArgumentError(f"{path} has shape {values.shape}, the argument {shape}")
    # NumPy files hold the small float formats as raw bytes of the same width.
    same_bits = values.dtype.kind == "V" and values.dtype.itemsize == dtype.itemsize
    return np.ascontiguousarray(values.view(dtype) if same_bits else values.astype(dtype))
