"""Two products of which the second multiplies what became of the first: what is kept from step to step.

The second product is that of the step before, and parts of the first are those of the next step, so that vector work
on the first's result runs beside matrix instructions which do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpwave.backends.amd.lower.bursts import Bursts
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.kept import declare, pack
from warpwave.backends.amd.lower.mma import Product, begin
from warpwave.backends.amd.lower.operands import declare_fragments, read_fragments
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.pipeline import Loop
from warpwave.tiles.simt.products import ancestors


@dataclass
class Chain:
    """The names of what is kept: the late product's accumulator and first operand, and the first product's parts."""

    lw: AmdLowering
    loop: Loop
    bursts: Bursts
    kept: str = field(init=False, default="")
    factor: str = field(init=False, default="")
    ahead: str = field(init=False, default="")

    def declare(self, lower: Callable[[Sequence[Op]], None]) -> None:
        """Before the loop: at first the late product adds nothing to the loop's first value."""
        if self.bursts.roles.late:
            self._declare_late()
        if self.bursts.early:
            self._declare_ahead(lower)

    def _declare_late(self) -> None:
        lw, product = self.lw, self.bursts.products[-1]
        yielded = self.loop.body.terminator.operands.index(product.op.result)
        lw.names[product.op.result] = self.loop.names[yielded]
        self.kept, self.factor = lw.fresh("kept"), lw.fresh("factor")
        lw.body.line(f"auto {self.kept} = {self.loop.names[yielded]};")
        declare(lw, product.first, self.factor)
        with lw.body.each(product.steps, "s"):
            lw.body.line(f"EACH(i, {len(product.first.places)}) {self.factor}[s][i] = {{}};")

    def _declare_ahead(self, lower: Callable[[Sequence[Op]], None]) -> None:
        """What the next step's first product is in; what it starts from is the same for all steps."""
        lw, product = self.lw, self.bursts.products[0]
        start = self.bursts.roles.start
        needed = ancestors(product.op.operands, {result: op for op in start for result in op.results})
        lower([op for op in start if not needed.isdisjoint(op.results)])
        self.ahead = lw.fresh("ahead")
        lw.body.line(f"auto {self.ahead} = {convert(lw, product.op.operands[0], lw.layout(product.op.result))};")

    def step(self) -> None:
        """At the start of a step: its first product, if all of that was done ahead."""
        if self.bursts.early == self.bursts.over[1]:
            self._take(self.bursts.products[0])

    def keep(self) -> None:
        """At the end of a step: what the late product goes on with and what it multiplies."""
        lw, product = self.lw, self.bursts.products[-1]
        lw.body.line(f"{self.kept} = {convert(lw, product.op.operands[0], lw.layout(product.op.result))};")
        with lw.body.each(product.steps, "s"):
            declare_fragments(lw, product.first)
            read_fragments(lw, product.first, None)
            pack(lw, product.first, self.factor)
            lw.body.line(f"EACH(i, {len(product.first.places)}) landed({self.factor}[s][i]);")

    def begin(self, number: int, row: int, col: int) -> None:
        """Before a burst: where its product is added up."""
        lw, product = self.lw, self.bursts.products[number]
        result = product.op.result
        if number == 0 and self.bursts.early:
            if col >= self.bursts.early:
                return self._take(product)
            lw.names[result] = self.ahead
            if col == 0:
                lw.body.line(f"{self.ahead} = {convert(lw, product.op.operands[0], lw.layout(result))};")
        elif row == col == 0 and self.is_late(product):
            lw.body.line(f"{lw.name(result)} = {self.kept};")
        elif row == col == 0:
            begin(lw, product)
        return None

    def is_late(self, product: Product) -> bool:
        """Whether a product is that of the step before."""
        return self.bursts.roles.late and product is self.bursts.products[-1]

    def _take(self, product: Product) -> None:
        """The step's own product goes on with what was done ahead, or is that."""
        self.lw.body.line(f"{self.lw.declare(product.op.result)} = {self.ahead};")

    def finish(self, part: Product, row: int, col: int) -> None:
        """After a burst: as far as the compiler knows its result is used here, so no instruction of it moves on."""
        if not self.bursts.roles.late:
            return
        result = part.op.result
        across = len({i[1] // part.mfma.n for i in self.lw.layout(result).items})
        for m in range(row, row + len(part.first.places)):
            for n in range(col, col + len(part.second.places)):
                block = f"{self.lw.name(result)}.v[{m * across + n}]"
                self.lw.body.line(f"{block} = only_here({block});")
