"""What generated programs contain, counted without running them: `python -m warpwave.conformance.programs.coverage`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warpwave.conformance.programs.generate import program_of_seed
from warpwave.conformance.programs.memory import LAYOUTS
from warpwave.conformance.programs.model import Block, Buffer, Let, Program, Statement, reads_of, walk
from warpwave.conformance.programs.render import render
from warpwave.conformance.programs.values import RARE
from warpwave.tiles.dtypes import ALL

PROGRAMS = 2000
PRIMES = {2, 3, 5, 7, 13, 17, 29, 31, 37}


class Contents:
    """What a program consists of, gathered once for all questions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.statements = [s for body in (program.body, *(h.body for h in program.helpers)) for s in walk(body)]
        self.text = "\n".join(filter(None, map(_text, self.statements)))
        self.heads = [s.head for s in self.statements if isinstance(s, Block)]
        self.values = [s.target for s in self.statements if isinstance(s, Let)]
        self.tiles = {v.shape for v in self.values if v.shape}
        self.inputs = [t for t in program.tensors if not t.output]

    def ends_within_a_tile(self) -> bool:
        """Whether there is a tensor that no tile of its rank divides."""
        for tensor in self.inputs:
            shapes = [s for s in self.tiles if len(s) == len(tensor.shape)]
            if shapes and all(any(n % t for n, t in zip(tensor.shape, s, strict=True)) for s in shapes):
                return True
        return False

    def chain(self) -> int:
        """The longest way from a load to a value, in statements."""
        depth: dict[str, int] = {}
        for statement in walk(self.program.body):
            if isinstance(statement, Let):
                depth[statement.target.name] = 1 + max((depth.get(v.name, 0) for v in reads_of(statement)), default=0)
        return max(depth.values(), default=0)


Holds = Callable[[Contents], bool]


def _text(statement: Statement) -> str:
    if isinstance(statement, Buffer):
        return f"{statement.name} = ww.shared({statement.type})"
    return statement.head if isinstance(statement, Block) else statement.text


@dataclass(frozen=True)
class Feature:
    """Something that a program has or has not."""

    group: str
    name: str
    holds: Holds


def _writes(pattern: str) -> Holds:
    found = re.compile(pattern)
    return lambda c: bool(found.search(c.text))


def _head(pattern: str) -> Holds:
    found = re.compile(pattern)
    return lambda c: any(map(found.match, c.heads))


def _held(values: str) -> Holds:
    return lambda c: any(t.values == values for t in c.inputs)


def _typed(dtype: str) -> Holds:
    return lambda c: dtype in {v.dtype.name for v in c.values} | {t.dtype.name for t in c.program.tensors}


def _laid(layout: str) -> Holds:
    return lambda c: any(t.layout == layout for t in c.program.tensors)


def _features() -> Iterator[tuple[str, str, Holds]]:
    yield "shapes", "small: an extent of at most 3", lambda c: any(min(s) <= 3 for s in c.tiles)
    yield "shapes", "prime extents", lambda c: any(set(s) & PRIMES for s in c.tiles)
    yield "shapes", "off-tile: a tensor that no tile divides", Contents.ends_within_a_tile
    yield "shapes", "a grid of two dimensions", lambda c: "m, n = " in c.program.prologue[0]
    yield "shapes", "loads at elements, in part outside", _writes(r"unit='element'")
    for dtype in ALL:
        yield "dtypes", f"`{dtype.name}`", _typed(dtype.name)
    for layout in LAYOUTS[1:]:
        yield "strides", layout, _laid(layout)
    yield "chains", "at least 5 statements one after the other", lambda c: c.chain() >= 5
    yield "chains", "at least 8", lambda c: c.chain() >= 8
    yield "loops", "`for k in ww.range(...)`", _head(r"for \w+ in ww\.range\(")
    yield "loops", "`for k in range(...)`", _head(r"for \w+ in range\(")
    yield "loops", "`while`", _head("while ")
    yield "loops", "a count that depends on the block", _head(r"for .*\([mn]( \+ 1)?\)")
    yield "pipelines", "`for k in ww.pipeline(...)`", _head(r"for \w+ in ww\.pipeline\(")
    yield "pipelines", "with a number of stages", _head("for .*stages=")
    yield "conditionals", "`if`", _head("if ")
    yield "conditionals", "with `else`", lambda c: any(isinstance(s, Block) and bool(s.orelse) for s in c.statements)
    yield "masks", "comparisons", _typed("bool")
    yield "masks", "`ww.where`", _writes(r"ww\.where\(")
    yield "masks", "causal", _writes(r"causal_mask|>= \{1\}, \{2\}, -math\.inf")
    yield "masks", "a fill of loads", _writes(r"fill=")
    for name in ("sum", "max", "min", "prod"):
        yield "reductions", f"`ww.{name}`", _writes(rf"ww\.{name}\(\{{0\}}[,)]")
    yield "reductions", "running sums", _writes(r"cumsum")
    yield "reductions", "softmax in one pass", _writes(r"ww\.exp\(\{0\} - \{1\}\[:, None\]\)")
    yield "reductions", "softmax in several passes", _writes(r"ww\.exp2\(\{0\} - \{1\}\[:, None\]\)")
    yield "products", "in a loop over the depth", _writes(r"ww\.mma_At?Bt?\(\{0\}, \{1\}, \{2\}")
    yield "products", "of tiles that were computed", _writes(r"ww\.mma_AB\(ww\.zeros")
    yield "shared tiles", "buffers, written and read in windows", _writes(r"ww\.shared\(")
    yield "shared tiles", "operands of products", _writes(r"s[tv]\[")
    yield "helper calls", "a function with a branch of its own", lambda c: bool(c.program.helpers)
    yield "global memory", "atomic additions", _writes(r"atomic_add")
    yield "global memory", "read back after a barrier", _writes(r"ww\.barrier")
    yield "adversarial values", "late maxima", _held("late maximum")
    for values in RARE:
        yield "adversarial values", VALUES.get(values, values), _held(values)
    yield "adversarial values", "integers at the ends of their range", _held("edges")


VALUES = {
    "cancelling": "cancellation between neighbours",
    "mixed": "huge beside tiny",
    "special": "NaN, infinities, zeros of both signs, the largest and smallest numbers",
    "denormal": "denormals",
    "masked rows": "all-masked rows",
    "ties": "halfway cases",
    "zeros": "nothing but zeros",
    "ones": "nothing but ones",
}
FEATURES = tuple(Feature(*parts) for parts in _features())
HEAD = """# What generated programs contain

Of the programs {first} to {last} (`program:N`), counted on their data without running them by
`python -m warpwave.conformance.programs.coverage > docs/generated_programs.md`. Not generated: blocks in blocks,
tensors of more than two dimensions or with a stride of 0; the library's kernels and their tests have them.

| of the list | what | programs | of all | for example |
|---|---|---|---|---|
"""


def count(programs: int = PROGRAMS) -> dict[Feature, list[int]]:
    """The seeds of the programs that have each feature."""
    found: dict[Feature, list[int]] = {feature: [] for feature in FEATURES}
    for seed in range(programs):
        contents = Contents(program_of_seed(seed))
        for feature, seeds in found.items():
            if feature.holds(contents):
                seeds.append(seed)
    return found


@functools.cache
def _length(seed: int) -> int:
    return len(render(program_of_seed(seed)))


def page(programs: int = PROGRAMS) -> str:
    """The table."""
    rows = []
    for feature, seeds in count(programs).items():
        shortest = min(seeds, key=_length) if seeds else None
        share = f"{100 * len(seeds) / programs:.1f} %"
        rows.append(f"| {feature.group} | {feature.name} | {len(seeds)} | {share} | `program:{shortest}` |\n")
    return HEAD.format(first=0, last=programs - 1) + "".join(rows)


if __name__ == "__main__":
    print(page(), end="")
