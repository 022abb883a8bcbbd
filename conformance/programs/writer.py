"""Builds a program statement by statement; every statement is of right type by construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warpwave.conformance.programs.choose import Chooser, chance, pick
from warpwave.conformance.programs.memory import LAYOUTS
from warpwave.conformance.programs.model import Buffer, Do, Helper, Let, Statement, Tensor, Var, tile_type
from warpwave.conformance.programs.values import COMMON, RARE
from warpwave.tiles.dtypes import DType, bf16, bool_, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32, i64

FLOATS = (f32, bf16, f16)
FP8 = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)
MAX_TILE = 1024
SMALL_EXTENTS = (8, 4, 16, 1, 2, 3, 5, 7)
EXTENTS = (16, 8, 32, 1, 2, 3, 5, 7, 13, 24, 31, 33, 64)
LENGTHS = (16, 8, 1, 3, 7, 13, 17, 29, 32, 37, 40, 48)
VALUES = {"int": ("normal", "whole range", "edges"), "bool": ("normal",)}


class Writer:
    """What is written so far, and which variables can be read now."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.tensors: list[Tensor] = []
        self.helpers: list[Helper] = []
        self.scope: list[Var] = []
        self.frames: list[list[Statement]] = [[]]
        self.read: set[str] = set()
        self.features: set[str] = set()
        self.grid: tuple[str, ...] = ()
        self._count = 0

    # -- choices --------------------------------------------------------------------------------------

    def pick(self, *options: str) -> str:
        """One of the texts; the first is the simplest."""
        return pick(self.chooser, options)

    def chance(self, percent: int) -> bool:
        """True in `percent` of the cases."""
        return chance(self.chooser, percent)

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return self.chooser.integer(low, high)

    def shape(self, rank: int = 2) -> tuple[int, ...]:
        """The shape of a new tile, of at most MAX_TILE elements."""
        extents = SMALL_EXTENTS if self.chance(65) else EXTENTS  # large ones cost most of the time
        first = pick(self.chooser, extents)
        if rank == 1:
            return (first,)
        return (first, pick(self.chooser, [e for e in extents if e * first <= MAX_TILE]))

    # -- statements -----------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def let(self, text: str, reads: Sequence[Var], dtype: DType, shape: tuple[int, ...]) -> Var:
        """A new variable."""
        var = Var(self.fresh("x"), dtype, shape)
        self.frames[-1].append(Let(var, text, self._reading(reads)))
        self.scope.append(var)
        return var

    def rebind(self, var: Var, text: str, reads: Sequence[Var]) -> None:
        """A new value for an old name."""
        self.frames[-1].append(Let(var, text, self._reading(reads)))

    def do(self, text: str, reads: Sequence[Var] = (), tensor: str = "") -> None:
        """A statement for its effect."""
        self.frames[-1].append(Do(text, self._reading(reads), tensor))

    def append(self, statement: Statement) -> None:
        """A finished statement."""
        self.frames[-1].append(statement)

    def buffer(self, fill: Var) -> str:
        """A shared buffer that holds `fill`."""
        self._reading((fill,))
        name = self.fresh("s")
        self.frames[-1].append(Buffer(name, tile_type(fill.dtype, fill.shape, "s"), fill))
        return name

    def _reading(self, reads: Sequence[Var]) -> tuple[Var, ...]:
        self.read.update(v.name for v in reads)
        return tuple(reads)

    @contextmanager
    def inner(self) -> Iterator[list[Statement]]:
        """A body of its own: what is defined there is not visible afterwards."""
        visible, body = list(self.scope), []  # type: tuple[list[Var], list[Statement]]
        self.frames.append(body)
        yield body
        self.frames.pop()
        self.scope = visible

    # -- operands -------------------------------------------------------------------------------------

    def having(
        self, dtypes: Sequence[DType] | None = None, shape: tuple[int, ...] | None = None, rank: int | None = None
    ) -> list[Var]:
        """The variables of these types, newest first."""
        return [
            v
            for v in reversed(self.scope)
            if (dtypes is None or v.dtype in dtypes)
            and (shape is None or v.shape == shape)
            and (rank is None or len(v.shape) == rank)
        ]

    def some(self, dtypes: Sequence[DType], rank: int | None = None) -> Var:
        """A variable of one of these dtypes, a new one if there is none; newer ones are likelier."""
        found = self.having(dtypes, rank=rank)
        if rank is None:
            found = [v for v in found if v.shape]
        if found and not self.chance(10):
            return found[min(self.integer(0, len(found) - 1), self.integer(0, len(found) - 1))]
        return self.load(pick(self.chooser, dtypes), self.shape(rank or self.integer(1, 2)))

    def like(self, dtype: DType, shape: tuple[int, ...]) -> Var:
        """A variable of exactly this type."""
        found = self.having((dtype,), shape)
        if found and not self.chance(25):
            return pick(self.chooser, found)
        return self.load(dtype, shape)

    def load(self, dtype: DType, shape: tuple[int, ...]) -> Var:
        """A new tile from a tensor, which may be a new one, hold another dtype, and end within the tile."""
        if not shape:
            return self._load_scalar(dtype)
        stored = self._stored(dtype)
        tensor = self.tensor(stored, len(shape), shape)
        coordinates, options = self._coordinates(tensor, shape)
        fill = self.pick("", "", ", fill=1", ", fill=-math.inf" if stored.has_inf else ", fill=-2")
        if dtype.kind == "bool":
            fill = ""
        return self.let(
            f"ww.load({tensor.name}, {coordinates}, {tile_type(dtype, shape)}{options}{fill})", (), dtype, shape
        )

    def _load_scalar(self, dtype: DType) -> Var:
        tensor = self.tensor(dtype, 1, (16,))
        return self.let(f"ww.load({tensor.name}, {self.pick('0', '1', *self.grid)})", (), dtype, ())

    def _stored(self, dtype: DType) -> DType:
        if dtype in FLOATS and self.chance(15):
            return pick(self.chooser, (*FLOATS, *FP8))
        return dtype

    def tensor(self, dtype: DType, rank: int, shape: tuple[int, ...]) -> Tensor:
        """An input tensor for tiles of this shape: an old one of the dtype, or a new one."""
        found = [t for t in self.tensors if t.dtype == dtype and len(t.shape) == rank and not t.output]
        if found and self.chance(60):
            return pick(self.chooser, found)
        return self.new_tensor(dtype, tuple(self._extent(n) for n in shape))

    def _extent(self, tile: int) -> int:
        """Whole tiles, or a length that ends within one."""
        return tile * self.integer(1, 2) if self.chance(50) else pick(self.chooser, LENGTHS)

    def new_tensor(self, dtype: DType, shape: tuple[int, ...], values: str = "") -> Tensor:
        """Another input."""
        layout = pick(self.chooser, LAYOUTS) if self.chance(30) else "rows"
        tensor = Tensor(self.fresh("t"), dtype, shape, layout, values or self._values(dtype))
        self.tensors.append(tensor)
        return tensor

    def _values(self, dtype: DType) -> str:
        if not dtype.is_float:
            return pick(self.chooser, VALUES[dtype.kind])
        return pick(self.chooser, RARE) if self.chance(25) else pick(self.chooser, COMMON)

    def _coordinates(self, tensor: Tensor, shape: tuple[int, ...]) -> tuple[str, str]:
        options = ", unit='element'" if self.chance(15) else ""
        items = [self.coordinate(bool(options)) for _ in shape]
        return f"({', '.join(items)},)", options

    def coordinate(self, elements: bool = False) -> str:
        """A place that may lie outside the tensor."""
        index = self.pick(*(self.grid or ("0",)), "0")
        if elements:
            return self.pick(f"{index} * 5", "3", f"{index} * 7 - 2", f"-{index}")
        return index if self.chance(85) else self.pick("1", f"{index} + 1", f"{index} - 1")

    # -- results --------------------------------------------------------------------------------------

    def store(self, var: Var) -> None:
        """Write a variable to an output of its own, at this block's place."""
        name = self.fresh("o")
        dtype = self._output_dtype(var.dtype)
        shape, coordinates, options = self._place(var.shape)
        layout = pick(self.chooser, LAYOUTS) if self.chance(30) else "rows"
        self.tensors.append(Tensor(name, dtype, shape, layout, "normal", output=True))
        rounding = ""
        if dtype != var.dtype and dtype in (bf16, f16) and self.chance(40):
            rounding = f", rounding='{self.pick('rtz', 'rta', 'rtp', 'rtn')}'"
        self.do(f"ww.store({name}, {coordinates}, {{0}}{options}{rounding})", (var,), name)

    def _output_dtype(self, dtype: DType) -> DType:
        if dtype == f32 and self.chance(25):
            return pick(self.chooser, (bf16, f16, *FP8))
        return dtype

    def _place(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str, str]:
        """Extent of an output, coordinates of this block's part, options of the store."""
        blocks = self.blocks
        total = blocks[0] * blocks[-1] if len(blocks) == 2 else blocks[0]
        flat = f"{self.grid[0]} * {blocks[1]} + {self.grid[1]}" if len(blocks) == 2 else self.grid[0]
        if not shape:
            return (total,), f"({flat},)", ""
        cut = self.integer(0, min(3, shape[-1] - 1)) if self.chance(40) else 0
        if len(shape) == 1:
            return (total, shape[0] - cut), f"({flat}, 0)", ", axes=(1,)"
        rows, cols = blocks if len(blocks) == 2 else (blocks[0], 1)
        column = self.grid[1] if len(blocks) == 2 else "0"
        return (rows * shape[0], cols * shape[1] - cut), f"({self.grid[0]}, {column})", ""

    blocks: tuple[int, ...] = (1,)


INTEGERS = (i32, i8, i64)
SMALL = (*FLOATS, i32)
BOOL = (bool_,)
