"""Text of the generated source, C names of values, and how dtypes are spelt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import Loc
from warpwave.tiles.reference.formats import narrow

CTYPES = {
    "f32": "float",
    "f16": "f16",
    "bf16": "bf16",
    "fp8e4m3": "fp8e4m3",
    "fp8e5m2": "fp8e5m2",
    "fp8e4m3fnuz": "fp8e4m3fnuz",
    "fp8e5m2fnuz": "fp8e5m2fnuz",
    "i64": "long",
    "i32": "int",
    "i8": "signed char",
    "bool": "bool",
}


def ctype(dtype: DType) -> str:
    """The element type in the generated source."""
    return CTYPES[dtype.name]


class Writer:
    """Indented lines. `loc` is the user's line that the next ones are made from."""

    def __init__(self, depth: int = 1) -> None:
        self.lines: list[str] = []
        self.locs: list[Loc | None] = []
        self.loc: Loc | None = None
        self.depth = depth

    def line(self, text: str = "") -> None:
        """Append one line."""
        self.lines.append("  " * self.depth + text if text else "")
        self.locs.append(self.loc)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Append a braced block."""
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    @contextmanager
    def each(self, count: int, name: str = "i") -> Iterator[None]:
        """A loop over items that the compiler unrolls."""
        with self.block(f"EACH({name}, {count})"):
            yield

    @contextmanager
    def each_from(self, start: int, count: int, name: str = "i") -> Iterator[None]:
        """The same from item `start` on."""
        with self.block(f"EACH_FROM({name}, {start}, {count})"):
            yield

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def located_text(self) -> str:
        """All lines, each after a directive that makes the compiler's line table name the user's line."""
        parts = []
        for line, loc in zip(self.lines, self.locs, strict=True):
            if loc is not None:
                file = loc.file.replace("\\", "\\\\").replace('"', '\\"')
                parts.append(f'#line {loc.line} "{file}"')
            parts.append(line)
        return "\n".join([*parts, '#line 1 "generated"'])  # what follows is not the user's


def literal(value: bool | int | float, dtype: DType) -> str:
    """A constant in the generated source, exactly."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if dtype.is_int:
        suffix = "L" if dtype.bits == 64 else ""
        return f"({int(value) + 1}{suffix} - 1)" if value == dtype.min and dtype.bits >= 32 else f"{int(value)}{suffix}"
    return _float_literal(float(narrow(np.asarray(value, np.float64), dtype)), dtype)


def _float_literal(value: float, dtype: DType) -> str:
    """A value of the format; fp8 has no arithmetic in C and is written as its code."""
    if dtype.is_fp8:
        return f"bits<{ctype(dtype)}>((u8){np.asarray(value).astype(dtype.numpy).view(np.uint8)})"
    if value != value:
        text = "F32_NAN"
    elif value in (float("inf"), float("-inf")):
        text = ("-" if value < 0 else "") + "F32_INF"
    else:
        text = f"{value.hex()}f"
    return text if dtype.name == "f32" else f"({ctype(dtype)})({text})"
