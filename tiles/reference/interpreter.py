"""Walks a kernel's IR block by block: control flow, coordinates and memory, the same for every domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import i32
from warpwave.tiles.errors import CheckFailed, InternalError, TileError, TileTypeError, TileValueError
from warpwave.tiles.ir import OPS, Block, Kernel, Op, Value
from warpwave.tiles.reference.domain import Domain, Storage, V
from warpwave.tiles.reference.memory import Window, buffer_window, window
from warpwave.tiles.types import TensorType

Array = npt.NDArray[Any]
Coordinates = tuple[int, ...]
BlockOrder = Callable[[list[Coordinates]], Iterable[Sequence[int]]]


@dataclass(frozen=True)
class Extents:
    """A tensor of which only the extents are known: enough for what runs before the grid."""

    shape: tuple[int, ...]


Argument = Array | bool | int | float | Extents


@dataclass
class Buffer(Generic[V]):
    """A shared buffer of one block, and which of its elements have been written."""

    storage: Storage[V]
    written: Array


class Interpreter(Generic[V]):
    """Executes one launch of a kernel in a domain."""

    def __init__(self, kernel: Kernel, domain: Domain[V], arguments: Mapping[str, Argument]) -> None:
        self.kernel = kernel
        self.domain = domain
        self.tensors: dict[str, Storage[V]] = {}
        self.parameters = {value: self._bind(name, value, arguments) for name, value in _params(kernel, arguments)}
        self.env: dict[Value, Any] = {}
        self.launched = dict(self.parameters)  # what is known when the blocks start
        self.per_block: Sequence[Op] = kernel.body.ops
        self.constants: dict[Op, V] = {}
        self.block: Coordinates | None = None  # None before the launch

    def _bind(self, name: str, value: Value, arguments: Mapping[str, Argument]) -> Any:
        argument = arguments[name]
        if not isinstance(value.type, TensorType):
            return self.domain.scalar(np.asarray(argument).item(), value.tile.dtype)
        if isinstance(argument, Extents):
            return argument
        array = _tensor_argument(name, argument, value.type, written=name in self.kernel.outputs)
        self.tensors[name] = self.domain.tensor(array, value.type.dtype)
        return self.tensors[name]

    # -- launch ---------------------------------------------------------------------------------------

    def run(self, block_order: BlockOrder | None = None) -> None:
        """Execute all blocks, by default in row-major order of the grid."""
        with np.errstate(all="ignore"):
            sizes = self.launch_grid()
            blocks: Iterable[Sequence[int]] = np.ndindex(*sizes)
            if block_order is not None:
                blocks = block_order(list(np.ndindex(*sizes)))
            for block in blocks:
                self._run_block(tuple(int(i) for i in block))

    def launch_grid(self) -> Coordinates:
        """The grid, from the ops before it; () for a kernel of one block.

        Those are arithmetic on arguments, and checks: the launch conditions, which hold for all blocks at once.
        """
        grid = next((op for op in self.kernel.body.ops if op.name == "grid"), None)
        if grid is None:
            return ()
        self.env = dict(self.parameters)
        done: set[Op] = set()
        for op in self.kernel.body.ops[: self.kernel.body.ops.index(grid)]:
            if all(v in self.env for v in op.operands) and (OPS[op.name].effect == "none" or op.name == "check"):
                self._op(op)
                done.add(op)
        self.launched, self.per_block = self.env, [op for op in self.kernel.body.ops if op not in done]
        sizes = tuple(self.domain.integer(self.env[v], grid) for v in grid.operands)
        if min(sizes) < 0:
            raise TileValueError(f"a grid of {' x '.join(map(str, sizes))} blocks", loc=grid.loc)
        return sizes

    def _run_block(self, block: Coordinates) -> None:
        self.block = block
        self.env = dict(self.launched)
        self._ops(self.per_block)

    # -- ops ------------------------------------------------------------------------------------------

    def _ops(self, ops: Sequence[Op]) -> None:
        for op in ops:
            self._op(op)

    def _op(self, op: Op) -> None:
        """Execute one op; an error that leaves it carries the user's location."""
        operands = [self.env[v] for v in op.operands]
        try:
            handler = _HANDLERS.get(op.name)
            results = handler(self, op, operands) if handler else self.domain.compute(op, operands)
        except TileError as error:
            if error.loc is None:
                error.loc = op.loc
            raise
        except Exception as error:
            raise InternalError(f"`{op.name}` failed: {type(error).__name__}: {error}", loc=op.loc) from error
        self.env.update(zip(op.results, results, strict=True))

    def _region(self, region: Block, arguments: Sequence[Any]) -> list[Any]:
        """Execute a region; the values of its terminator."""
        self.env.update(zip(region.args, arguments, strict=True))
        self._ops(region.ops[:-1])
        return [self.env[v] for v in region.terminator.operands]

    def _constant(self, op: Op, _: list[Any]) -> list[Any]:
        if op not in self.constants:
            self.constants[op] = self.domain.scalar(op.attrs["value"], op.attrs["dtype"])
        return [self.constants[op]]

    def _grid(self, op: Op, _: list[Any]) -> list[Any]:
        return [self.domain.scalar(i, i32) for i in self.block or ()]

    def _dim(self, op: Op, operands: list[Any]) -> list[Any]:
        return [self.domain.scalar(operands[0].shape[op.attrs["axis"]], i32)]

    def _nothing(self, op: Op, _: list[Any]) -> list[Any]:
        """A barrier: the statements of a block take effect one after the other anyway."""
        return []

    # -- control flow ---------------------------------------------------------------------------------

    def _for(self, op: Op, operands: list[Any]) -> list[Any]:
        start, stop, step = (self.domain.integer(v, op) for v in operands[:3])
        carried = operands[3:]
        for i in range(start, stop, step):
            carried = self._region(op.regions[0], [self.domain.scalar(i, i32), *carried])
        return carried

    def _if(self, op: Op, operands: list[Any]) -> list[Any]:
        return self._region(op.regions[0 if self.domain.truth(operands[0], op) else 1], [])

    def _while(self, op: Op, carried: list[Any]) -> list[Any]:
        before, after = op.regions
        while True:
            condition, *carried = self._region(before, carried)
            if not self.domain.truth(condition, op):
                return carried
            carried = self._region(after, carried)

    # -- memory ---------------------------------------------------------------------------------------

    def _window(self, op: Op, storage: Storage[V], tile: tuple[int, ...], coords: list[Any]) -> Window:
        return window(storage.shape, tile, [self.domain.integer(c, op) for c in coords], op.attrs)

    def _load(self, op: Op, operands: list[Any]) -> list[Any]:
        storage, fill, *coords = operands
        return [storage.read(self._window(op, storage, op.result.tile.shape, coords), fill)]

    def _store(self, op: Op, operands: list[Any]) -> list[Any]:
        storage, tile, *coords = operands
        storage.write(self._window(op, storage, op.operands[1].tile.shape, coords), tile)
        return []

    def _atomic_add(self, op: Op, operands: list[Any]) -> list[Any]:
        storage, tile, *coords = operands
        storage.add(self._window(op, storage, op.operands[1].tile.shape, coords), tile)
        return []

    def _shared_alloc(self, op: Op, _: list[Any]) -> list[Any]:
        type_ = op.attrs["type"]
        storage = self.domain.buffer(type_.shape, type_.dtype)
        return [Buffer(storage, np.zeros(type_.shape, np.bool_))]

    def _shared_read(self, op: Op, operands: list[Any]) -> list[Any]:
        buffer, *offsets = operands
        part = self._buffer_window(op, buffer, op.result.tile.shape, offsets)
        if not part.read(buffer.written, False).all():
            missing = np.argwhere(~part.read(buffer.written, False))[0]
            raise TileValueError(
                f"reads element {missing.tolist()} of a window of a shared tile that was never written",
                hint="write all of it with ww.store first",
            )
        return [buffer.storage.read(part, self.domain.scalar(0, op.result.tile.dtype))]

    def _shared_write(self, op: Op, operands: list[Any]) -> list[Any]:
        buffer, tile, *offsets = operands
        part = self._buffer_window(op, buffer, op.operands[1].tile.shape, offsets)
        buffer.storage.write(part, tile)
        part.write(buffer.written, np.ones(part.shape, np.bool_))
        return []

    def _buffer_window(self, op: Op, buffer: Buffer[V], tile: tuple[int, ...], offsets: list[Any]) -> Window:
        return buffer_window(buffer.storage.shape, tile, [self.domain.integer(o, op) for o in offsets])

    # -- debugging ------------------------------------------------------------------------------------

    def _print(self, op: Op, operands: list[Any]) -> list[Any]:
        self.domain.show(f"{self._place()} {op.attrs['message']}", operands)
        return []

    def _check(self, op: Op, operands: list[Any]) -> list[Any]:
        if not self.domain.truth(operands[0], op):
            message = f": {op.attrs['message']}" if op.attrs["message"] else ""
            place = f"check failed in {self._place()}" if self.block is not None else "a condition of the launch failed"
            raise CheckFailed(f"{place}{message}", loc=op.loc)
        return []

    def _place(self) -> str:
        return f"block ({', '.join(map(str, self.block or ()))})"


_HANDLERS: dict[str, Callable[[Interpreter[Any], Op, list[Any]], list[Any]]] = {
    "constant": Interpreter._constant,
    "grid": Interpreter._grid,
    "dim": Interpreter._dim,
    "barrier": Interpreter._nothing,
    "for": Interpreter._for,
    "if": Interpreter._if,
    "while": Interpreter._while,
    "load": Interpreter._load,
    "store": Interpreter._store,
    "atomic_add": Interpreter._atomic_add,
    "shared_alloc": Interpreter._shared_alloc,
    "shared_read": Interpreter._shared_read,
    "shared_write": Interpreter._shared_write,
    "print": Interpreter._print,
    "check": Interpreter._check,
}


def _params(kernel: Kernel, arguments: Mapping[str, Argument]) -> Iterator[tuple[str, Value]]:
    if set(arguments) != set(kernel.param_names):
        takes, got = ", ".join(kernel.param_names), ", ".join(arguments)
        raise TileTypeError(f"kernel {kernel.name} takes ({takes}), got ({got})", loc=kernel.loc)
    return zip(kernel.param_names, kernel.params, strict=True)


def _tensor_argument(name: str, argument: Argument, expected: TensorType, *, written: bool) -> Array:
    if not isinstance(argument, np.ndarray):
        raise TileTypeError(f"argument {name} must be a NumPy array, got {type(argument).__name__}")
    if argument.dtype != expected.dtype.numpy or argument.ndim != expected.rank:
        raise TileTypeError(f"argument {name} must be {expected}, got {argument.dtype}, {argument.ndim}d")
    if written and not argument.flags.writeable:
        raise TileValueError(f"argument {name} is written by the kernel but is read-only")
    return argument
