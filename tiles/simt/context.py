"""State of one lowering: the source being written, names and layouts of values, shared memory."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import Loc, UnsupportedError
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.simt.layout import Coord, Layout
from warpwave.tiles.simt.writer import Writer, ctype


@dataclass(frozen=True)
class Coordinates:
    """C names of a layout's coordinates: for each axis, the lane's part and the table over items."""

    bases: tuple[str, ...]
    tables: tuple[str, ...]

    def at(self, axis: int, item: str = "i") -> str:
        """The coordinate of an item along an axis."""
        return f"({self.bases[axis]} + {self.tables[axis]}[{item}])"


@dataclass(frozen=True)
class Machine:
    """What the text of the code depends on: the target's name, the lanes of a wave, and two C names.

    `wave` is the C name of the wave's number in its workgroup, `memory` of the workgroup's shared memory.
    """

    name: str
    lanes: int
    wave: str
    memory: str


class Lowering(ABC):
    """Everything that the functions which lower single ops share; a backend adds its choices and its ops."""

    sums_at_once = 2  # running sums in f32 of one reduction: pairs of them may be packed
    packs = True  # whether operations on f32 are written on whole vectors, for packed instructions
    numbers: Mapping[Value, float | None] = MappingProxyType({})  # see zeros.py; for compilers that need it

    def __init__(
        self,
        kernel: Kernel,
        machine: Machine,
        waves: int,
        layouts: dict[Value, Layout],
        definitions: dict[Value, Op],
    ) -> None:
        self.kernel = kernel
        self.machine = machine
        self.waves = waves
        self.layouts = layouts
        self.body = Writer()
        self.tables = Writer()
        self.tables.depth = 0
        self.prologue = Writer()
        self.names: dict[Value, str] = {}
        self.definitions = definitions
        self.checks: list[Op] = []
        self.prints: list[Op] = []
        self.scratch_bytes = 0
        self.shared_bytes = 0
        self.peak_shared_bytes = 0
        self.shared: dict[Value, SharedTile] = {}
        self.moves: list[Move] = []
        self._lane_addresses: dict[tuple[str, int], str] = {}
        self.unseen_writes: set[str] = set()
        self.unfinished_reads = False
        self._coordinates: dict[Layout, Coordinates] = {}
        self._tables: dict[tuple[int, ...], str] = {}
        self._counter = itertools.count()

    @abstractmethod
    def lower_op(self, op: Op) -> None:
        """Emit one op."""

    @abstractmethod
    def place_shared(self, value: Value) -> SharedTile:
        """Reserve shared memory for a tile, arranged for what reads it, and remember it in `shared`."""

    @abstractmethod
    def lower_pipeline(self, op: Op) -> bool:
        """Emit a pipeline whose loads run ahead; False, and nothing, if none of them can."""

    def emit_barrier(self) -> None:
        """The text of a barrier of all waves."""
        self.body.line("workgroup_barrier();")

    def each_item(self, count: int) -> AbstractContextManager[None]:
        """A loop over the items of an elementwise result, or over the portion that a backend computes here."""
        return self.body.each(count)

    is_first_portion = is_last_portion = True  # of the op that is being lowered

    def once(self, op: Op, hint: str) -> str:
        """A fresh name, the same for all portions of an op."""
        return self.fresh(hint)

    def undivided(self) -> AbstractContextManager[None]:
        """What is lowered inside concerns the whole op, after its last portion."""
        return nullcontext()

    def set_item(self, name: str, text: str, value: Value) -> None:
        """The text that computes item i of a tile; a backend may say how items of long tiles are scheduled."""
        self.body.line(f"{name}.set(i, {text});")

    def hidden(self, text: str) -> str:
        """A value of which the compiler shall not know where it comes from."""
        raise NotImplementedError(text)

    @property
    def threads(self) -> int:
        """Work-items of a workgroup."""
        return self.machine.lanes * self.waves

    # -- names ----------------------------------------------------------------------------------------

    def fresh(self, hint: str = "t") -> str:
        """A C name that is not in use; user's names are kept readable and made unique by a number."""
        return f"{hint}_{next(self._counter)}"

    def name(self, value: Value) -> str:
        """The C name or expression of a value."""
        return self.names[value]

    def define(self, value: Value, hint: str | None = None) -> str:
        """Name a value that is about to be declared."""
        name = self.fresh(hint or value.name or "t")
        self.names[value] = name
        return name

    def layout(self, value: Value) -> Layout:
        """The layout of a register tile."""
        return self.layouts[value]

    def wide(self, tensor: Value) -> str:
        """C condition, known when compiling, that a tensor's rows can be moved 16 bytes at a time."""
        return f"wide_{self.kernel.param_names[self.kernel.params.index(tensor)]}"

    def with_partner(self, bit: int, x: str, combine: Callable[[str, str], str]) -> str:
        """C expression of what `combine`, which is commutative, makes of x and the x of lane l ^ (1 << bit)."""
        return combine(x, f"shuffle_xor<{1 << bit}>({x})")

    # -- types ----------------------------------------------------------------------------------------

    def tile_type(self, dtype: DType, layout: Layout) -> str:
        """The C type of a tile in registers."""
        width = vector_width(dtype, layout)
        return f"tile<{ctype(dtype)}, {len(layout.items)}, {width}>"

    def value_type(self, value: Value) -> str:
        """The C type of a register value."""
        tile = value.tile
        return ctype(tile.dtype) if tile.is_scalar else self.tile_type(tile.dtype, self.layout(value))

    def declare(self, value: Value, hint: str | None = None) -> str:
        """Declare an uninitialised register value; returns its name."""
        name = self.define(value, hint)
        self.body.line(f"{self.value_type(value)} {name};")
        return name

    # -- coordinates ----------------------------------------------------------------------------------

    def table(self, numbers: Sequence[int]) -> str:
        """The name of a compile-time table of integers."""
        key = tuple(numbers)
        if key not in self._tables:
            name = f"table_{len(self._tables)}"
            self._tables[key] = name
            self.tables.line(f"TABLE int {name}[] = {{{', '.join(map(str, key))}}};")
        return self._tables[key]

    def coordinates(self, layout: Layout) -> Coordinates:
        """Names of the coordinates of a layout's elements, declared at the kernel's start."""
        plain = Layout(layout.lanes, layout.waves, layout.items)
        if plain not in self._coordinates:
            bases = tuple(self._base(layout, axis) for axis in range(layout.rank))
            tables = tuple(self.table([i[axis] for i in layout.items]) for axis in range(layout.rank))
            self._coordinates[plain] = Coordinates(bases, tables)
        return self._coordinates[plain]

    def _base(self, layout: Layout, axis: int) -> str:
        terms = lane_terms([p[axis] for p in layout.lanes])
        terms += [f"{digit} * {p[axis]}" for digit, p in self.wave_digits(layout.waves) if p[axis]]
        name = self.fresh("at")
        self.prologue.line(f"const int {name} = {' + '.join(terms) or '0'};")
        return name

    def wave_digits(self, waves: Sequence[tuple[int, Coord]]) -> list[tuple[str, Coord]]:
        """Each digit of the wave number as a C expression, with its part."""
        digits, stride = [], 1
        for count, part in waves:
            upper = f"({self.machine.wave} / {stride})" if stride > 1 else self.machine.wave
            digits.append((f"({upper} % {count})", part))
            stride *= count
        return digits

    def lane_addresses(self, text: str, count: int) -> str:
        """The name of `count` byte offsets of this lane, computed once; READ in `text` is the index.

        They are hidden from the optimiser, which would otherwise compute them again at each use instead of
        keeping them in registers and putting the rest into the instruction's offset.
        """
        key = (text, count)
        if key not in self._lane_addresses:
            name = self.fresh("lane_at")
            self._lane_addresses[key] = name
            self.prologue.line(f"int {name}[{count}];")
            self.prologue.line(f"EACH(i, {count}) {name}[i] = in_register({text.replace('READ', 'i')});")
        return self._lane_addresses[key]

    def primary(self, layout: Layout, waves: Layout | None = None) -> str:
        """Condition that this lane holds the first copy of its elements; "true" if there are no copies.

        `waves` is the layout that says which waves hold copies, if another one does.
        """
        by_wave = waves or layout
        terms = [f"(lane & {layout.lane_copies}) == 0"] if layout.lane_copies else []
        digits = self.wave_digits(by_wave.waves)
        terms += [f"{digits[i][0]} == 0" for i in by_wave.wave_copies]
        return " && ".join(terms) or "true"

    # -- shared memory --------------------------------------------------------------------------------

    def scratch(self, nbytes: int) -> None:
        """Make the scratch area, which every user guards by barriers, at least this large."""
        self.scratch_bytes = max(self.scratch_bytes, nbytes)

    def allocate(self, nbytes: int, align: int = 128) -> int:
        """Reserve shared memory; returns its byte offset, aligned for every access."""
        offset = -(-self.shared_bytes // align) * align
        self.shared_bytes = offset + -(-nbytes // 128) * 128
        self.peak_shared_bytes = max(self.peak_shared_bytes, self.shared_bytes)
        return offset

    @contextmanager
    def shared_scope(self) -> Iterator[None]:
        """What is reserved inside is free afterwards; the next write there is ordered after its reads."""
        before = self.shared_bytes
        yield
        self.shared_bytes = before
        self.unfinished_reads = True

    def barrier(self) -> None:
        """All waves meet; what was written to shared memory is visible, what was read may be overwritten."""
        self.emit_barrier()
        self.passed_barrier()

    def passed_barrier(self) -> None:
        """A barrier was emitted in another form."""
        self.unseen_writes.clear()
        self.unfinished_reads = False

    def before_shared_read(self, region: str) -> None:
        """Order a read of a shared region after the writes to it."""
        if region in self.unseen_writes:
            self.barrier()
        self.unfinished_reads = True

    def before_shared_write(self, region: str) -> None:
        """Order a write of a shared region after earlier reads of any, and after earlier writes of it."""
        if self.unfinished_reads or region in self.unseen_writes:
            self.barrier()
        self.unseen_writes.add(region)

    def enter_region(self) -> None:
        """At the borders of loops and branches nothing is known: order everything."""
        if self.unseen_writes:
            self.barrier()
        self.unfinished_reads = True

    def by_offsets(self, layout: Layout) -> bool:
        """Whether wide accesses to a tile are made of an address that a wave's lanes share, and of offsets of 32 bits.

        These are `load_at_if` and `store_at_if` instead of `load_vector_if` and `store_vector`.
        """
        return False

    def unsupported(self, op: Op, what: str, hint: str) -> UnsupportedError:
        """An error at the user's line."""
        return UnsupportedError(f"{what} ({self.machine.name})", loc=op.loc, hint=hint)


@dataclass(frozen=True)
class SharedTile:
    """A tile in shared memory: where, row pitch in bytes, and xor masks per row bit.

    With `block`, rows are the tile's columns and the other way round; lanes write blocks of this many elements.

    With `panels`, columns lie in panels of `pitch` bytes, one after the other, `panels` bytes apart.

    `base` is the byte offset of the tile, or of the ring that it is a stage of; `shift` is a C expression of
    the bytes from there to the tile.
    """

    base: int
    pitch: int
    masks: tuple[int, ...]
    dtype: DType
    shape: tuple[int, ...]
    shift: str = "0"
    panels: int = 0
    block: Coord | None = None
    multiple: int = 1 << 30  # of the first column's place in the rows, as far as is known

    @property
    def region(self) -> str:
        """What accesses are ordered by: all stages and windows of one reservation."""
        return str(self.base)

    @property
    def offset(self) -> str:
        """C expression of the tile's byte offset."""
        return f"{self.base} + {self.shift}"

    def address(self, row: str, col: str) -> str:
        """C expression of an element's byte offset in shared memory."""
        return f"{self.offset} + {self.within(row, col)}"

    def within(self, row: str, col: str) -> str:
        """C expression of an element's byte offset in the tile."""
        if self.block:
            row, col = col, row
        linear = f"({row} * {self.pitch} + {col} * {self.dtype.nbytes})"
        if self.panels:
            columns = self.pitch // self.dtype.nbytes
            inner = f"({col} & {columns - 1}) * {self.dtype.nbytes}"
            linear = f"(({col} / {columns}) * {self.panels} + {row} * {self.pitch} + {inner})"
        terms = [f"(({row} >> {bit} & 1) * {mask})" for bit, mask in enumerate(self.masks) if mask]
        return f"({linear} ^ ({' ^ '.join(terms)}))" if terms else linear


@dataclass(frozen=True)
class Move:
    """A register tile's way into or out of shared memory, `run` elements at a time; `kind` is read or write."""

    kind: str
    shared: SharedTile
    layout: Layout
    run: int
    loc: Loc | None


def both(*conditions: str) -> str:
    """C condition that all hold."""
    return " && ".join(c for c in conditions if c != "true") or "true"


def declare_place(lw: Lowering, layout: Layout, item: str) -> tuple[str, ...]:
    """Declare `row` and `col` of an item of a tile, `col` of a vector's, in the loop over items."""
    at, names = lw.coordinates(layout), ("row", "col")[-layout.rank :]
    lw.body.line("const int " + ", ".join(f"{n} = {at.at(axis, item)}" for axis, n in enumerate(names)) + ";")
    return names


def vector_width(dtype: DType, layout: Layout) -> int:
    """Items of one hardware vector: bools are masks and have none."""
    return 1 if dtype.name == "bool" or len(layout.items) % layout.width else layout.width


def lane_terms(parts: Sequence[int]) -> list[str]:
    """The lane's contribution to a coordinate: runs of bits whose parts double become one term."""
    terms: list[str] = []
    bit = 0
    while bit < len(parts):
        if not parts[bit]:
            bit += 1
            continue
        end = bit + 1
        while end < len(parts) and parts[end] == 2 * parts[end - 1]:
            end += 1
        whole = end == len(parts)
        field = f"(lane >> {bit})" if bit else "lane"
        masked = field if whole else f"({field} & {(1 << (end - bit)) - 1})"
        terms.append(f"{masked} * {parts[bit]}")
        bit = end
    return terms
