"""State of one lowering for an NVIDIA target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from warpwave.backends.nvidia.arch import WARP, Target
from warpwave.backends.nvidia.lower.place import place_shared
from warpwave.backends.nvidia.lower.readable import (
    CompactWriter,
    closed_form,
    described,
    place_of,
    register_type,
    source_comment,
    without_ones,
)
from warpwave.backends.nvidia.lowered import TensorMap
from warpwave.backends.nvidia.plan import Plan
from warpwave.tiles.dtypes import DType
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
        self.body = CompactWriter()
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
        self.shown: tuple[str, int] | None = None  # the user's line that the last comment names
        self._own_names: Counter[str] = Counter()
        self.groups = 0  # wgmma groups committed so far

    def rows(self, tensor: Value) -> str:
        """C condition, known when compiling, that a tensor's rows are contiguous, wherever they begin."""
        return self.wide(tensor).replace("wide", "rows", 1)

    def lower_op(self, op: Op) -> None:
        """Emit one op, after a comment with the user's line if it is another one than the last."""
        from warpwave.backends.nvidia.lower.lower import lower_op

        start, known = len(self.body.lines), self.shown
        self.shown = place_of(op.loc) or known
        lower_op(self, op)
        if len(self.body.lines) == start:
            self.shown = known
        elif op.loc is not None and place_of(op.loc) != known:
            self.body.lines.insert(start, "  " * self.body.depth + source_comment(op.loc))
            self.body.locs.insert(start, None)

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

    def define(self, value: Value, hint: str | None = None) -> str:
        """Name a value that is about to be declared: values without a name are called after their op."""
        return super().define(value, hint or value.name or described(self.definitions.get(value)))

    def tile_type(self, dtype: DType, layout: Layout) -> str:
        """The C type of a tile in registers: ThunderKittens' name if it has the layout of its row_l tiles."""
        return register_type(dtype, layout) or super().tile_type(dtype, layout)

    def table(self, numbers: Sequence[int]) -> str:
        """The name of a compile-time table of integers, which is an expression if it can be."""
        key = tuple(numbers)
        formula = closed_form(key)
        if formula is None:
            return super().table(numbers)
        if key not in self._tables:
            self._tables[key] = f"place_{len(self._tables)}"
            self.tables.line(f"PLACES({self._tables[key]}, {len(key)}, {formula})")
        return self._tables[key]

    def _base(self, layout: Layout, axis: int) -> str:
        name = super()._base(layout, axis)
        head, _, text = self.prologue.lines[-1].partition(" = ")
        self.prologue.lines[-1] = f"{head} = {without_ones(text.removesuffix(';'))};"
        return name

    def own_name(self, wanted: str) -> str:
        """A C name for a whole kernel's object: as wanted, or with a number if that is taken."""
        number = self._own_names[wanted] = self._own_names[wanted] + 1
        return wanted if number == 1 else f"{wanted}{number}"

    def comment(self, op: Op) -> None:
        """The user's line of what follows, if it is another one than the last."""
        if op.loc is not None and place_of(op.loc) != self.shown:
            self.shown = place_of(op.loc)
            self.body.line(source_comment(op.loc))

    def wait_for(self, name: str) -> None:
        """Wait until the wgmma groups that write a variable, and all before them, are done."""
        newer = self.groups - self.pending[name]
        self.body.line(f"warpgroup::mma_async_wait<{newer}>();")
        last = self.pending[name]
        self._complete([n for n, group in self.pending.items() if group <= last])

    def drain(self) -> None:
        """Wait for all products."""
        if self.pending:
            self.body.line("warpgroup::mma_async_wait();")
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
            self.body.line("fence_async_shared();")
        if self.plan.producer or self.plan.idle:
            self.body.line(f"group<{self.waves}>::sync({COMPUTE_BARRIER});")
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
