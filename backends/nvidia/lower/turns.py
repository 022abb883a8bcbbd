"""How computing warpgroups stand to each other in time.

Turns: one's products run while the others do the arithmetic between theirs. Each warpgroup has a named barrier that
all others arrive at when they have issued their products (FlashAttention-3, arXiv 2407.08608, section 3.1).

Lag: the second of two warpgroups begins its first block some steps after the first one, and stays behind: the last
products of one run while the other stores its part of the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.nvidia.lower.context import COMPUTE_BARRIER, NvidiaLowering
from warpwave.backends.nvidia.lower.rings import Ring, pipelines
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.assign import is_laid_out
from warpwave.tiles.simt.pipeline import staged_loads

FIRST_BARRIER = COMPUTE_BARRIER + 1


def can_take_turns(lw: NvidiaLowering) -> bool:
    """Whether there are several warpgroups, and a named barrier for each."""
    return 2 <= _groups(lw) <= 8


def begin_turns(lw: NvidiaLowering) -> None:
    """The first turn is the first warpgroup's, as if all others had just had theirs."""
    for group in range(1, _groups(lw)):
        for earlier in range(group):
            lw.body.line(f"if (warp_id / 4 == {group}) group<{lw.waves}>::arrive({FIRST_BARRIER + earlier});")


def await_turn(lw: NvidiaLowering) -> None:
    """Until all other warpgroups have issued their products."""
    lw.body.line(f"group<{lw.waves}>::sync({FIRST_BARRIER} + warp_id / 4);")


def pass_turn(lw: NvidiaLowering) -> None:
    """This warpgroup has issued its products."""
    groups = _groups(lw)
    for ahead in range(1, groups):
        other = f"(warp_id / 4 + {ahead}) % {groups}"
        lw.body.line(f"group<{lw.waves}>::arrive({FIRST_BARRIER} + {other});")


def _groups(lw: NvidiaLowering) -> int:
    return lw.waves // 4


def can_lag(lw: NvidiaLowering, ring: Ring) -> bool:
    """Whether there are two warpgroups, one loop, and stages enough that the first does not wait for the second."""
    found = list(pipelines(lw.kernel.body))
    alone = len(found) == 1 and _only_multiplies(found[0])
    return _groups(lw) == 2 and lw.plan.persistent and alone and ring.stages > lw.plan.lag


def _only_multiplies(loop: Op) -> bool:
    """Whether the body is products of tiles that it loads, and scalars: nothing for which warps wait for each other."""
    body = loop.regions[0]
    loaded = {load.result for load in staged_loads(body)}
    for op in body.ops[:-1]:
        if op.name == "mma" and loaded.issuperset(op.operands[1:]):
            continue
        if op.name == "load" and op.result in loaded:
            continue
        if op.name == "barrier" or op.regions or any(is_laid_out(v) for v in (*op.operands, *op.results)):
            return False
    return True


@dataclass(frozen=True)
class Lag:
    """The first block's loop: the second warpgroup waits before it until the first one is some steps ahead."""

    lw: NvidiaLowering
    trips: str

    def before_loop(self) -> None:
        """The second warpgroup waits, once."""
        body, begun = self.lw.body, "lag_begun"
        self.lw.prologue.line(f"bool {begun} = false;")
        body.line(f"const int signal_at = warp_id < 4 && !{begun} ? min({self.lw.plan.lag}, {self.trips}) : -1;")
        body.line(f"if (warp_id >= 4 && !{begun}) group<{self.lw.waves}>::sync({FIRST_BARRIER});")
        body.line(f"{begun} = true;")

    def in_loop(self, iteration: str) -> None:
        """The first warpgroup says that it is ahead."""
        self._signal(f"{iteration} == signal_at")

    def after_loop(self) -> None:
        """Or that its loop was shorter than that."""
        self._signal(f"signal_at == {self.trips}")

    def _signal(self, condition: str) -> None:
        self.lw.body.line(f"if ({condition}) group<{self.lw.waves}>::arrive({FIRST_BARRIER});")
