"""What both kinds of pipelines share here: iterations whose stage is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warpwave.tiles.ir import Op
from warpwave.tiles.simt.pipeline import Loop

SMALL_BODY = 4  # ops; a longer body is not repeated for each stage
MOST_COPIES = 2  # of a longer body


def is_small(loop: Op, ahead: Sequence[Op]) -> bool:
    """Whether a loop's body, without the loads that run ahead, may be there once for each stage."""
    return len(loop.regions[0].ops) - len(ahead) <= SMALL_BODY


class AmdLoop(Loop, ABC):
    """A pipeline that is being lowered."""

    @abstractmethod
    def emit(self) -> None:
        """Write the loop."""

    @property
    def has_small_body(self) -> bool:
        """Whether the body may be there once for each stage, besides the one for the last iterations."""
        return is_small(self.op, [load.op for load in self.ring])

    @property
    def repeats_body(self) -> bool:
        """Whether the only loop has a copy of a longer body for each stage."""
        return not self.has_small_body and self.stages <= MOST_COPIES

    @contextmanager
    def remaining(self, counter: str, *, repeated: bool = False) -> Iterator[None]:
        """One iteration at a time, from `counter` on; `stage` is computed.

        With `repeated` the body is there once for each stage, whose place in LDS is then a constant; `counter`
        must be a multiple of the stages.
        """
        lw = self.lw
        if repeated:
            loop = lw.body.block(f"while ({counter} < {self.trips})")
            with loop, lw.body.each(self.stages, "stage"), lw.body.block(f"if ({counter} < {self.trips})"):
                yield from self._body()
                lw.body.line(f"++{counter};")
            return
        with lw.body.block(f"for (; {counter} < {self.trips}; ++{counter})"):
            lw.body.line(f"const int stage = {counter} % {self.stages};")
            yield from self._body()

    def _body(self) -> Iterator[None]:
        self.lw.unfinished_reads = True
        yield
        self.lw.enter_region()
