"""Products whose tiles are loaded by waves of their own: a loop for those waves, and one for those that multiply.

The producers come after the consumers in the workgroup. Outside the loop they repeat what the last consumer does,
which must not be seen by anybody, and they end with the loop.
"""

from __future__ import annotations

from dataclasses import replace

from warpwave.backends.amd.arch import DIRECT
from warpwave.backends.amd.gate import registers_of_a_lane
from warpwave.backends.amd.lower.bursts import Bursts, expect_bursts, refused, too_many_registers
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.scheduled import Emission, emit_default
from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.backends.amd.schedule.check import check_schedule
from warpwave.backends.amd.schedule.pipelined import PipelinedLoop
from warpwave.backends.amd.schedule.producers import CONSUMERS, PRODUCERS, producer_consumer
from warpwave.tiles.ir import OPS

ELSEWHERE = 30  # registers a lane for addresses and what else consumers need


class ProducerLoop(AmdLoop):
    """A pipeline by producers and consumers."""

    lw: AmdLowering

    def emit(self) -> None:
        """Both loops; where a tensor's rows cannot be moved 16 bytes at a time, the default one of the consumers."""
        lw = self.lw
        bursts = self._bursts()
        schedule = producer_consumer(self._pipelined(bursts), lw.plan.producers)
        check_schedule(schedule, lw.target)
        lw.plan.schedules.append(schedule)
        lw.plan.reasons.append(
            f"{self.op.loc}: {lw.plan.producers} waves load, {lw.waves} multiply, one barrier a step; a lane of either "
            f"has {registers_of_a_lane(lw.target, lw.plan.all_waves)} registers"
        )
        both = Emission(self, bursts, schedule)
        both.open()
        with lw.body.block(f"if constexpr ({both.possible})"):
            with lw.body.block(f"if (number >= {lw.waves})"):
                lw.body.line(f"const int wave = number - {lw.waves};")
                replace(both, group=PRODUCERS).emit()
                lw.body.line("return;")
            replace(both, group=CONSUMERS).emit()
        with lw.body.block("else"), lw.with_barriers():
            lw.body.line(f"if (number >= {lw.waves}) return;")
            emit_default(self, bursts)

    def _bursts(self) -> Bursts:
        """The product in one burst; an error that says why where that cannot be."""
        lw, loaders = self.lw, self.lw.plan.producers
        if DIRECT not in lw.target.direct_to_lds_widths:
            why = f"{lw.target.name} cannot load 16 bytes a lane straight to LDS"
            raise refused(lw, self.op, why, "drop schedule=")
        expect_bursts(lw, self.op, self.ring, self.stages, loaders)
        bursts = Bursts(lw, self.op, self.ring, self.stages, loaders=loaders)
        if len(bursts.products) != 1 or bursts.products[0].in_registers:
            raise refused(lw, self.op, "its body is more than one product of two loaded tiles", "drop schedule=")
        if self.op not in lw.kernel.body.ops or lw.plan.schedules:
            raise refused(lw, self.op, "producers end with it, but it is not the kernel's only one", "drop schedule=")
        for op in lw.kernel.body.ops[: lw.kernel.body.ops.index(self.op)]:
            if OPS[op.name].effect == "write" and op.name not in ("grid", "check"):
                raise refused(lw, op, f"`{op.name}` before the loop would happen twice", "drop schedule=")
        return bursts

    def _pipelined(self, bursts: Bursts) -> PipelinedLoop:
        lw = self.lw
        loop = replace(bursts.pipelined(), reserve=ELSEWHERE)
        there = registers_of_a_lane(lw.target, lw.plan.all_waves)
        if loop.registers > there:
            raise too_many_registers(lw, self.op, loop, there)
        return loop
