"""What both kinds of pipelines share here: iterations whose stage is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpwave.tiles.simt.pipeline import Loop


class AmdLoop(Loop):
    """A pipeline that is being lowered."""

    @contextmanager
    def remaining(self, counter: str) -> Iterator[None]:
        """One iteration at a time, from `counter` on; `stage` is computed."""
        lw = self.lw
        with lw.body.block(f"for (; {counter} < {self.trips}; ++{counter})"):
            lw.body.line(f"const int stage = {counter} % {self.stages};")
            lw.unfinished_reads = True
            yield
            lw.enter_region()
