"""What makes the generated text readable: the user's lines, names after ops, ThunderKittens' types, closed forms."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from warpwave.backends.nvidia.layout import COLS, LANES, ROWS, accumulator_items, wgmma_columns
from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.context import vector_width
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.writer import Writer, ctype, literal

WIDTH = 120  # characters of a line
LONGEST = 90  # characters of the user's line in a comment
ALIASES = {"f32": "rt_fl", "bf16": "rt_bf", "f16": "rt_hf"}


class CompactWriter(Writer):
    """A loop over items with a single statement stands on one line."""

    @contextmanager
    def each(self, count: int, name: str = "i") -> Iterator[None]:
        """A loop over items that the compiler unrolls."""
        start = len(self.lines)
        with super().each(count, name):
            yield
        if len(self.lines) != start + 3:
            return
        line = f"{self.lines[start].removesuffix('{')}{self.lines[start + 1].strip()}"
        if line.endswith(";") and len(line) <= WIDTH:
            self.lines[start:] = [line]
            self.locs[start:] = [self.locs[start + 1]]


def place_of(loc: Loc | None) -> tuple[str, int] | None:
    """What tells a line from others."""
    return (loc.file, loc.line) if loc else None


def source_comment(loc: Loc) -> str:
    """The user's file, line and text."""
    text = linecache.getline(loc.file, loc.line).strip().rstrip("\\")
    shown = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return f"// {Path(loc.file).name}:{loc.line}  {shown}".rstrip()


def described(made: Op | None) -> str | None:
    """What a value without a name is called: after the value that it is another format of, else after its op."""
    if made is None or made.name in ("mma", "for", "while", "if"):
        return None
    if made.name == "cast":
        source, kind = made.operands[0], made.results[0].tile.dtype.name
        return f"{source.name}_{kind}" if source.name else kind
    return made.name


def register_type(dtype: DType, layout: Layout) -> str | None:
    """The C type of a warp's part of a product's rows and columns; None for other layouts."""
    blocks = sorted({i[0] // ROWS * ROWS for i in layout.items}) if layout.rank == 2 else []
    if layout.lanes != LANES or not blocks or 2 * len(layout.items) % (len(blocks) * COLS):
        return None
    step, cols = (blocks[1] - blocks[0] if len(blocks) > 1 else ROWS), 2 * len(layout.items) // len(blocks)
    if layout.items != accumulator_items(len(blocks), step, cols // COLS):
        return None
    width = vector_width(dtype, layout)
    sizes = f"{ROWS * len(blocks)}, {cols}" + (f", {width}" if width != wgmma_columns(cols) // 2 else "")
    alias = ALIASES.get(dtype.name)
    return f"{alias}<{sizes}>" if alias else f"rt<{ctype(dtype)}, {sizes}>"


def constant(value: bool | int | float, dtype: DType) -> str:
    """A constant in the generated source, exactly: with decimals if these are few."""
    text = literal(value, dtype)
    number = text[text.rfind("(") + 1 :].rstrip(")").removesuffix("f")
    if "0x" not in number or "p" not in number:
        return text
    decimal = repr(float.fromhex(number))
    exact = len(decimal) <= 12 and Decimal(decimal) == Decimal(float.fromhex(number))
    return text.replace(number, decimal) if exact else text


def closed_form(numbers: Sequence[int], item: str = "i") -> str | None:
    """A table of integers as a C expression of the index, if each bit of that adds something of its own; else None."""
    steps = [numbers[1 << bit] - numbers[0] for bit in range((len(numbers) - 1).bit_length())]
    for place, number in enumerate(numbers):
        if number != numbers[0] + sum(step for bit, step in enumerate(steps) if place >> bit & 1):
            return None
    terms, bit = [str(numbers[0])] if numbers[0] else [], 0
    while bit < len(steps):
        end = bit + 1
        while end < len(steps) and steps[end] == 2 * steps[end - 1]:
            end += 1
        if steps[bit]:
            terms.append(_scaled(_field(item, bit, end, len(steps)), steps[bit]))
        bit = end
    return " + ".join(terms) or "0"


def _field(item: str, first: int, end: int, bits: int) -> str:
    """Bits of a number, from `first` to before `end`."""
    shifted = f"{item} >> {first}" if first else item
    whole = end == bits
    return f"({shifted})" if whole and first else shifted if whole else f"({shifted} & {(1 << (end - first)) - 1})"


def _scaled(text: str, factor: int) -> str:
    return text if factor == 1 else f"{text} * {factor}"


def without_ones(text: str) -> str:
    """A sum of products without the factors that are 1."""
    return " + ".join(term.removesuffix(" * 1") for term in text.split(" + "))
