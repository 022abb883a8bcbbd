"""State of one lowering for an NVIDIA target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from warpwave.backends.nvidia.arch import WARP, Target
from warpwave.backends.nvidia.lower.place import place_shared
from warpwave.backends.nvidia.lowered import TensorMap
from warpwave.backends.nvidia.plan import Plan
from warpwave.tiles.ir import Block, Kernel, Op, Value, walk
from warpwave.tiles.simt.context import Lowering, Machine, SharedTile
from warpwave.tiles.simt.layout import Layout

if TYPE_CHECKING:
    from warpwave.backends.nvidia.lower.consumer import Late
    from warpwave.backends.nvidia.lower.rings import Ring

COMPUTE_BARRIER = 1  # the named barrier of the computing warps; 0 is __syncthreads's


class NvidiaLowering(Lowering):
    """The shared state, the target's tables and the plan's choices."""

    def __init__(
        self, kernel: Kernel, target: Target, plan: Plan, layouts: dict[Value, Layout], definitions: dict[Value, Op]
    ) -> None:
        self.target = target
        self.plan = plan
        self._reasons = list(plan.reasons)
        self.uses = Counter(v for op in walk(kernel.body) for v in op.operands)
        self.home = dict(_homes(kernel.body))
        self._start = (kernel, Machine(target.full_name, WARP, "warp_id", "smem"), plan.warps, layouts, definitions)
        self.restart()

    def restart(self) -> None:
        """Begin again, with nothing emitted."""
        super().__init__(*self._start)
        self.names.update((v, f"{n}_") for n, v in zip(self.kernel.param_names, self.kernel.params, strict=True))
        self.plan.reasons = list(self._reasons)
        self.maps: list[TensorMap] = []
        self.rings: dict[Op, Ring] = {}
        self.bulk: set[str] = set()  # tensors that the producer reads
        self.posted: set[Op] = set()  # stores by the bulk copy engine, through the buffers at `outbox`
        self.outbox = 0
        self.outbox_in_rings = False
        self.pending: dict[str, int] = {}  # variables that unfinished wgmma groups write: the group's number
        self.flying: set[str] = set()  # accumulators of products that the next iteration adds to without a wait
        self.late: dict[Op, Late] = {}  # what the loop before leaves to each loop
        self.groups = 0  # wgmma groups committed so far
        self.shifts = 0  # pipelines whose unaligned rows are shifted into place

    def lower_op(self, op: Op) -> None:
        """Emit one op."""
        from warpwave.backends.nvidia.lower.lower import lower_op

        lower_op(self, op)

    def place_shared(self, value: Value) -> SharedTile:
        """Reserve shared memory for a tile, in the arrangement of kittens::st if products read it."""
        return place_shared(self, value)

    def lower_pipeline(self, op: Op) -> bool:
        """Emit a pipeline whose loads run ahead, if any can."""
        from warpwave.backends.nvidia.lower.pipeline import lower_pipeline

        return lower_pipeline(self, op)

    def name(self, value: Value) -> str:
        """The C name of a value, which is complete: a wait comes before the first use of a product's result."""
        name = super().name(value)
        if name in self.pending:
            self.wait_for(name)
        return name

    def wait_for(self, name: str) -> None:
        """Wait until the wgmma groups that write a variable, and all before them, are done."""
        newer = self.groups - self.pending[name]
        self.body.line(f"ptx::wgmma_wait<{newer}>();")
        last = self.pending[name]
        self._complete([n for n, group in self.pending.items() if group <= last])

    def drain(self) -> None:
        """Wait for all products."""
        if self.pending:
            self.body.line("ptx::wgmma_wait<0>();")
            self._complete(list(self.pending))

    def _complete(self, names: Sequence[str]) -> None:
        """These variables may be read: but not before here."""
        for name in names:
            del self.pending[name]
            self.body.line(f"pin({name});")

    def enter_region(self) -> None:
        """At the borders of loops and branches nothing is in flight."""
        self.drain()
        super().enter_region()

    def emit_barrier(self) -> None:
        """All warps that compute."""
        self.drain()
        if self.plan.uses_wgmma:  # what this thread wrote is to be seen by the asynchronous readers, too
            self.body.line("ptx::fence_async_shared();")
        if self.plan.producer or self.plan.idle:
            self.body.line(f"ptx::named_barrier_sync({COMPUTE_BARRIER}, {self.threads});")
        else:
            self.body.line("workgroup_barrier();")


def _homes(block: Block) -> Iterator[tuple[Value | Op, Block]]:
    """The block that each op stands in and each value is defined in."""
    for arg in block.args:
        yield arg, block
    for op in block.ops:
        yield op, block
        for result in op.results:
            yield result, block
        for region in op.regions:
            yield from _homes(region)
