"""`python -m warpwave.tiles.op_tables` prints docs/ops.md: what a kernel can call, and the IR that comes of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType

from warpwave.tiles.ir.opdefs import OPS, OpDef
from warpwave.tiles.language import control, creation, elementwise, memory, random, reduce

FAMILIES = {
    "Control": control,
    "Making and rearranging tiles": creation,
    "Memory": memory,
    "Elementwise": elementwise,
    "Reductions and matrix products": reduce,
    "Random numbers": random,
}
EFFECTS = {"none": "", "read": "reads", "write": "kept in order"}

HEAD = """# Ops

Generated from the docstrings in `tiles/language/` and the table in `tiles/ir/opdefs.py` by
`python -m warpwave.tiles.op_tables > docs/ops.md`; a test keeps it fresh. Types, coordinates and the
rules for numbers are in [language.md](language.md).

## What a kernel calls

All are attributes of `warpwave`. Python's operators on tiles are `add`, `sub`, `mul`, `div`, `floordiv`,
`mod`, `neg`, the comparisons and the bit operations.
"""
IR_HEAD = """
## Ops of the IR

What a backend sees. An op without effect may be moved, merged or dropped; one that reads may be dropped;
all others stay in order.

| op | attributes | effect | regions | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    families = "".join(_family(title, list(public_functions(module))) for title, module in FAMILIES.items())
    return HEAD + families + IR_HEAD + "".join(map(_op_row, OPS.values()))


def public_functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions of a module of the language that kernels may call."""
    from warpwave import tiles

    for name, value in vars(module).items():
        if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
            continue
        exported: object = getattr(tiles, name, None)
        if exported is value:
            yield value


def _family(title: str, functions: list[FunctionType]) -> str:
    rows = "".join(f"| `{f.__name__}{_signature(f)}` | {_meaning(f)} |\n" for f in functions)
    return f"\n### {title}\n\n| call | meaning |\n|---|---|\n{rows}"


def _signature(function: FunctionType) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


def _meaning(function: FunctionType) -> str:
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return " ".join(" ".join(paragraphs).split()).replace("|", "\\|")


def _op_row(op: OpDef) -> str:
    attributes = " ".join(f"`{a}`" for a in op.attrs)
    meaning = op.summary.replace("|", "\\|")
    return f"| `{op.name}` | {attributes} | {EFFECTS[op.effect]} | {op.regions or ''} | {meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
