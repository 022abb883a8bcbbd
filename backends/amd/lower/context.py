"""State of one lowering for an AMD target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from warpwave.backends.amd.arch import WAVE, Target
from warpwave.backends.amd.lower.place import place_shared
from warpwave.backends.amd.plan import INTERLEAVE, Plan
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.simt.context import Lowering, Machine, SharedTile
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.writer import Writer
from warpwave.tiles.simt.zeros import known_numbers

LONG_TILE = 64  # items a lane: half of the registers, so that few temporaries fit beside operand and result
LONGEST_TILE = 256  # of the accumulation registers, which a narrower result is converted from
ROW_BITS = 4  # of a lane's number: the lanes among which DPP moves values
TOGETHER = 8  # items of a long tile that are computed at a time


class AmdLowering(Lowering):
    """The shared state, the target's tables and the plan's choices."""

    def __init__(
        self, kernel: Kernel, target: Target, plan: Plan, layouts: dict[Value, Layout], definitions: dict[Value, Op]
    ) -> None:
        super().__init__(kernel, Machine(target.name, WAVE, "wave", "lds"), plan.waves, layouts, definitions)
        self.target = target
        self.plan = plan
        self.numbers = known_numbers(kernel)  # LLVM's SelectVOP3ModsImpl negates x for +0 - x
        self._refusal: Callable[[], Exception] | None = None
        self._portion: tuple[int, int] | None = None
        self._once: dict[Op, str] = {}
        self.has_padding = False  # whether products read parts of tiles in LDS that nobody writes

    def lower_op(self, op: Op) -> None:
        """Emit one op."""
        from warpwave.backends.amd.lower.lower import lower_op

        lower_op(self, op)

    # -- registers ------------------------------------------------------------------------------------------

    @contextmanager
    def anew(self) -> Iterator[None]:
        """What lanes know of their place is computed again for what is emitted inside: it takes no registers before."""
        outer = self.prologue, self._coordinates, self._lane_addresses
        self.prologue, self._coordinates, self._lane_addresses = Writer(self.body.depth), {}, {}
        place, lane = len(self.body.lines), self.fresh("lane")
        yield
        lines = [re.sub(r"\blane\b", lane, line) for line in self.prologue.lines]
        if lines:
            lines.insert(0, f"{'  ' * self.prologue.depth}const int {lane} = lane_again();")
        self.body.lines[place:place] = lines
        self.body.locs[place:place] = [None] * len(lines)
        self.prologue, self._coordinates, self._lane_addresses = outer

    # -- portions of elementwise ops --------------------------------------------------------------------

    @contextmanager
    def portion(self, number: int, of: int) -> Iterator[None]:
        """Elementwise ops make one of the equal portions of their items; the first one declares the result."""
        self._portion = (number, of)
        self.is_first_portion, self.is_last_portion = number == 0, number == of - 1
        yield
        self._portion = None
        self.is_first_portion = self.is_last_portion = True

    @property
    def sums_at_once(self) -> int:  # type: ignore[override]
        """More in portions, which are packed: a packed addition waits for what the instruction before it made."""
        return 2 if self.is_first_portion and self.is_last_portion else 4

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """What is lowered inside concerns the whole op."""
        portion, self._portion = self._portion, None
        yield
        self._portion = portion

    def once(self, op: Op, hint: str) -> str:
        """A name that later portions of an op find again."""
        if self._portion is None:
            return super().once(op, hint)
        if op not in self._once:
            self._once[op] = self.fresh(hint)
        return self._once[op]

    @contextmanager
    def unpacked(self) -> Iterator[None]:
        """Operations on f32 are written item by item: packed ones do not run beside matrix instructions."""
        outer, self.packs = self.packs, False
        yield
        self.packs = outer

    def declare(self, value: Value, hint: str | None = None) -> str:
        """Declare an uninitialised register value, unless an earlier portion did; returns its name."""
        if self._portion and self._portion[0]:
            return self.name(value)
        return super().declare(value, hint)

    def each_item(self, count: int) -> AbstractContextManager[None]:
        """A loop over the items of an elementwise result, or over this portion of them."""
        if self._portion is None:
            return super().each_item(count)
        number, of = self._portion
        return self.body.each_from(number * (count // of), count // of)

    def hidden(self, text: str) -> str:
        """A value of which the compiler shall not know where it comes from."""
        return f"in_register({text})"

    def set_item(self, name: str, text: str, value: Value) -> None:
        """Items of a long tile in the order written, a few at a time: all at once would not fit the registers."""
        items, words = len(self.layout(value).items), value.tile.dtype.bits == 32
        fills_all = items >= LONGEST_TILE and self.plan.schedule == INTERLEAVE
        if items < LONG_TILE or not (words or fills_all):
            return super().set_item(name, text, value)
        keep = "in_accumulation_register" if fills_all else "in_register"
        self.body.line(f"{name}.set(i, {f'{keep}({text})' if words else text});")
        self.body.line(f"if (i % {TOGETHER} == {TOGETHER - 1}) finish_first();")
        return None

    def with_partner(self, bit: int, x: str, combine: Callable[[str, str], str]) -> str:
        """C expression of what `combine` makes of x and another lane's: across rows of 16 lanes, of swapped ones."""
        if bit < ROW_BITS:
            return super().with_partner(bit, x, combine)
        return f"with_partner<{1 << bit}>({x}, [](auto a, auto b) LAMBDA {{ return {combine('a', 'b')}; }})"

    def by_offsets(self, layout: Layout) -> bool:
        """Buffers leave out lanes without branches; a long tile leaves no registers for its offsets."""
        return len(layout.items) < LONG_TILE

    def emit_barrier(self) -> None:
        """The text of a barrier of all waves; an error where a schedule counts them."""
        if self._refusal is not None:
            raise self._refusal()
        super().emit_barrier()

    @contextmanager
    def without_barriers(self, refusal: Callable[[], Exception]) -> Iterator[None]:
        """What is emitted inside may need no barriers of its own; else the error that `refusal` makes."""
        outer, self._refusal = self._refusal, refusal
        self.unseen_writes.clear()
        self.unfinished_reads = False
        yield
        self._refusal = outer

    @contextmanager
    def with_barriers(self) -> Iterator[None]:
        """What is emitted inside may need barriers, whatever is outside."""
        outer, self._refusal = self._refusal, None
        yield
        self._refusal = outer

    def place_shared(self, value: Value) -> SharedTile:
        """Reserve LDS for a tile, swizzled for the products that read it."""
        return place_shared(self, value)

    def lower_pipeline(self, op: Op) -> bool:
        """Emit a pipeline whose loads run ahead, if any can."""
        from warpwave.backends.amd.lower.pipeline import lower_pipeline
        from warpwave.tiles.simt.pipeline import staged_loads

        if not staged_loads(op.regions[0]):
            return False
        lower_pipeline(self, op)
        return True
