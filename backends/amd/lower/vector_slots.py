"""Where a step of a chain of products has time for vector work: beside the other group's bursts, and behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.vector_work import Portion, Slot, cost, portions_of, share_out
from warpwave.backends.amd.rates import CU_RATES, SLOT
from warpwave.backends.amd.schedule.form import Compute
from warpwave.tiles.ir import Op, Value

WITH_ENDS = 4  # memory clusters that packed work needs: sums go to the last two, to the others what they wait for
AMONG = 1 / 8  # of a burst's time, for vector work of the same wave where packed work waits for the burst to end


@dataclass(frozen=True)
class Interval:
    """A memory cluster with its LDS reads, the other group's burst beside it, and the wave's own that follows."""

    memory: str
    reads: int
    beside: Compute
    compute: str
    own: Compute


@dataclass(frozen=True)
class StepSlots:
    """The vector work of a step and the intervals that it may be in; `ahead` is the cluster of a burst before them.

    `earliest` says from which cluster on some values are there.
    """

    lw: AmdLowering
    work: Sequence[Op]
    intervals: Sequence[Interval]
    ahead: str
    earliest: Mapping[Value, str]

    def shared(self) -> dict[str, tuple[Portion, ...]]:
        """The work by cluster, packed work at its end."""
        slots, packed = self._with_ends(), True
        if slots:
            slots = self._less_ends(slots)
        else:
            slots, packed = self._plain(), False
        found: dict[str, tuple[Portion, ...]] = {}
        for slot, work in zip(slots, self._over(slots, packed=packed), strict=True):
            found[slot.cluster] = (*found.get(slot.cluster, ()), *work)
        return found

    def _over(self, slots: Sequence[Slot], *, packed: bool) -> list[list[Portion]]:
        names = [slot.cluster for slot in slots]
        return share_out(
            self.lw,
            self._portions(packed=packed),
            slots,
            {value: names.index(cluster) for value, cluster in self.earliest.items()},
        )

    def _portions(self, *, packed: bool) -> list[Portion]:
        return [portion for op in self.work for portion in portions_of(self.lw, op, packed=packed)]

    def _free(self, interval: Interval) -> float:
        """Clocks that matrix instructions beside a memory cluster leave it, each of which keeps vector work off."""
        hold = CU_RATES[self.lw.target.name].matrix_hold * interval.beside.instructions
        return interval.beside.cycles - SLOT * hold

    def _plain(self) -> list[Slot]:
        """Memory clusters have what the other group's burst and their reads leave; the rest is among the wave's own."""
        total = cost(self.lw, [Portion(op) for op in self.work])[1]
        share = total / len(self.intervals)
        found = [Slot(self.ahead, 0.0, mixed=True)] if self.ahead else []
        for interval in self.intervals:
            found.append(Slot(interval.memory, max(0.0, max(self._free(interval), share) - SLOT * interval.reads)))
            found.append(Slot(interval.compute, 0.0, mixed=True))
        del found[-1]
        left = total - sum(slot.clocks for slot in found)
        mixed = sum(slot.mixed for slot in found)
        return [replace(slot, clocks=max(0.0, left / mixed)) if slot.mixed else slot for slot in found]

    def _with_ends(self) -> list[Slot]:
        """The slots where packed work goes behind the other group's bursts; none where those leave it no time.

        A packed instruction waits for matrix instructions to end, and holds up the next. So it pays where vector work
        takes so much longer than bursts that what is packed fits between the end of one and the beginning of the next.
        """
        portions = self._portions(packed=True)
        packed = [SLOT * portion.items(self.lw) // 2 for portion in portions if portion.packed]
        beside = [max(0.0, self._free(i) - SLOT * i.reads) for i in self.intervals]
        among = [AMONG * i.own.cycles for i in self.intervals[:-1]]
        longer = (cost(self.lw, portions)[1] - sum((*beside, *among))) / len(self.intervals)
        if self.ahead or len(self.intervals) < WITH_ENDS or not packed or longer < max(packed):
            return []
        found = []
        for interval, clocks, own in zip(self.intervals, beside, (*among, 0.0), strict=True):
            found.append(Slot(interval.memory, longer + clocks))
            found.append(Slot(interval.memory, 0.0, packed=True))
            found.append(Slot(interval.compute, own, mixed=True))
        return found[:-1]

    def _less_ends(self, slots: Sequence[Slot]) -> list[Slot]:
        """Memory clusters have less time for other work by what their packed work takes, which a first round says."""
        ends = {
            slot.cluster: cost(self.lw, work)[1]
            for slot, work in zip(slots, self._over(slots, packed=True), strict=True)
            if slot.packed
        }
        return [s if s.packed else replace(s, clocks=max(0.0, s.clocks - ends.get(s.cluster, 0))) for s in slots]
