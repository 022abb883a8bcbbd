"""What a kernel holds in its variables: tiles (and scalars), global tensors, shared buffers.

Handles wrap IR values and give them Python's operators. Whatever would need a run-time value at capture
time (truth, iteration, indexing a list) is refused here, so that plain Python code that is run natively
during capture can never silently take one branch.
"""

from __future__ import annotations

from typing import Any, NoReturn

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import CaptureError, TileTypeError, TileValueError
from warpwave.tiles.ir import Value
from warpwave.tiles.language import context
from warpwave.tiles.types import TensorType, TileType


def _op(name: str, *operands: Any) -> Tile:
    from warpwave.tiles.language import elementwise  # which is built on this module

    result: Tile = getattr(elementwise, name)(*operands)
    return result


class Tile:
    """A run-time tile, vector or scalar of the whole workgroup. Immutable: every op gives a new one."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy scalars on the left leave the operator to us
    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> TileType:
        """Dtype, shape and space."""
        return self.value.tile

    @property
    def dtype(self) -> DType:
        """Element type (static)."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents (static): () for a scalar."""
        return self.type.shape

    @property
    def T(self) -> Tile:
        """The transposed tile."""
        return Tile(context.builder().emit1("transpose", [self.value]))

    def __repr__(self) -> str:
        return f"<runtime {self.type}>"

    def __copy__(self) -> Tile:
        return self

    def __deepcopy__(self, _: Any) -> Tile:
        return self  # immutable, as a number is

    def __str__(self) -> str:
        raise self._refusal("the text of", "use ww.print(text, x) to see it at run time")

    def __getitem__(self, index: Any) -> Tile:
        """`v[:, None]`, `v[None, :]` make a vector a column or row; static ranges slice a tile."""
        return _index(self, index)

    def __add__(self, other: Any) -> Tile:
        return _op("add", self, other)

    def __radd__(self, other: Any) -> Tile:
        return _op("add", other, self)

    def __sub__(self, other: Any) -> Tile:
        return _op("sub", self, other)

    def __rsub__(self, other: Any) -> Tile:
        return _op("sub", other, self)

    def __mul__(self, other: Any) -> Tile:
        return _op("mul", self, other)

    def __rmul__(self, other: Any) -> Tile:
        return _op("mul", other, self)

    def __truediv__(self, other: Any) -> Tile:
        return _op("div", self, other)

    def __rtruediv__(self, other: Any) -> Tile:
        return _op("div", other, self)

    def __floordiv__(self, other: Any) -> Tile:
        return _op("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tile:
        return _op("floordiv", other, self)

    def __mod__(self, other: Any) -> Tile:
        return _op("mod", self, other)

    def __rmod__(self, other: Any) -> Tile:
        return _op("mod", other, self)

    def __pow__(self, exponent: Any) -> Tile:
        if not isinstance(exponent, int) or exponent != 2:
            raise CaptureError(
                f"** {exponent!r} is not an op of the language", hint="only ** 2; else write products, exp2 or log2"
            )
        return self * self

    def __rpow__(self, base: Any) -> Tile:
        raise CaptureError(f"{base!r} ** a run-time value is not an op", hint="use ww.exp2(x), or ww.exp(x * log(b))")

    def __and__(self, other: Any) -> Tile:
        return _op("bit_and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Tile:
        return _op("bit_or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Tile:
        return _op("bit_xor", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Tile:
        return _op("shl", self, other)

    def __rlshift__(self, other: Any) -> Tile:
        return _op("shl", other, self)

    def __rshift__(self, other: Any) -> Tile:
        return _op("shr", self, other)

    def __rrshift__(self, other: Any) -> Tile:
        return _op("shr", other, self)

    def __invert__(self) -> Tile:
        return _op("invert", self)

    def __neg__(self) -> Tile:
        return _op("neg", self)

    def __pos__(self) -> Tile:
        return self

    def __abs__(self) -> Tile:
        return _op("abs", self)

    def __eq__(self, other: Any) -> Any:
        return NotImplemented if other is None else _op("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return NotImplemented if other is None else _op("ne", self, other)

    def __lt__(self, other: Any) -> Tile:
        return _op("lt", self, other)

    def __le__(self, other: Any) -> Tile:
        return _op("le", self, other)

    def __gt__(self, other: Any) -> Tile:
        return _op("gt", self, other)

    def __ge__(self, other: Any) -> Tile:
        return _op("ge", self, other)

    def __bool__(self) -> bool:
        raise self._refusal("the truth of", "use `if`/`while` directly in kernel code, or ww.where for tiles")

    def __int__(self) -> int:
        raise self._refusal("int() of", "use .to or ww.cast(x, i32) to convert at run time")

    def __float__(self) -> float:
        raise self._refusal("float() of", "use ww.cast(x, f32) to convert at run time")

    def __index__(self) -> int:
        raise self._refusal("indexing or counting with", "only compile-time integers can index Python objects")

    def __iter__(self) -> Any:
        raise CaptureError(f"cannot iterate over {self.type}", hint="a tile is one value; range(n) is a run-time loop")

    def __len__(self) -> int:
        raise self._refusal("len() of", "use .shape, which is static")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise CaptureError(
            f"cannot assign to elements of {self.type}",
            hint="tiles are immutable: use ww.where, or ww.shared and ww.store",
        )

    def __contains__(self, item: Any) -> bool:
        raise self._refusal("`in` on", "compare and reduce instead")

    def _refusal(self, what: str, hint: str) -> CaptureError:
        return CaptureError(
            f"{what} a run-time value ({self.type}) is not known when the kernel is captured", hint=hint
        )


class Tensor:
    """A global tensor argument. Rank and dtype are static, extents are run-time i32 scalars."""

    __slots__ = ("name", "value")

    def __init__(self, value: Value, name: str) -> None:
        self.value = value
        self.name = name

    @property
    def type(self) -> TensorType:
        """Dtype and rank."""
        return self.value.tensor

    @property
    def dtype(self) -> DType:
        """Element type (static)."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions (static)."""
        return self.type.rank

    @property
    def shape(self) -> tuple[Tile, ...]:
        """Extents in elements."""
        return tuple(self._dim(axis) for axis in range(self.ndim))

    @property
    def cols(self) -> Any:
        """Extent of the last dimension."""
        return self._from_end(1)

    @property
    def rows(self) -> Any:
        """Extent of the last but one dimension (1 if there is none)."""
        return self._from_end(2)

    @property
    def depth(self) -> Any:
        """Extent of the third dimension from the end (1 if there is none)."""
        return self._from_end(3)

    @property
    def batch(self) -> Any:
        """Extent of the fourth dimension from the end (1 if there is none)."""
        return self._from_end(4)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type}>"

    def __getitem__(self, index: Any) -> NoReturn:
        raise CaptureError(
            f"{self.name}[...] does not read a global tensor", hint=f"use ww.load({self.name}, coordinates, type)"
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise CaptureError(
            f"{self.name}[...] = does not write a global tensor", hint=f"use ww.store({self.name}, coordinates, tile)"
        )

    def _from_end(self, position: int) -> Any:
        return self._dim(self.ndim - position) if position <= self.ndim else 1

    def _dim(self, axis: int) -> Tile:
        return Tile(context.builder().emit1("dim", [self.value], axis=axis))


class Buffer:
    """A mutable shared tile made by `ww.shared`; read it with `ww.load`, write it with `ww.store`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> TileType:
        """Dtype and shape."""
        return self.value.tile

    @property
    def dtype(self) -> DType:
        """Element type (static)."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents (static)."""
        return self.type.shape

    def __repr__(self) -> str:
        return f"<{self.type}>"


Handle = Tile | Tensor | Buffer


def _index(tile: Tile, index: Any) -> Tile:
    items = index if isinstance(index, tuple) else (index,)
    if any(item is None for item in items):
        return _expand(tile, items)
    if len(items) > len(tile.shape) or not items:
        raise TileTypeError(f"{len(items)} indices for {tile.type}")
    items = items + (slice(None),) * (len(tile.shape) - len(items))
    ranges = [_range(item, extent, tile) for item, extent in zip(items, tile.shape, strict=True)]
    offsets, sizes = tuple(r[0] for r in ranges), tuple(r[1] for r in ranges)
    if sizes == tile.shape:
        return tile
    return Tile(context.builder().emit1("slice", [tile.value], offsets=offsets, shape=sizes))


def _expand(tile: Tile, items: tuple[Any, ...]) -> Tile:
    is_full = [item == slice(None) if isinstance(item, slice) else False for item in items]
    if len(items) != 2 or is_full.count(True) != 1 or len(tile.shape) != 1:
        raise TileTypeError(
            f"None in an index makes a vector a column or a row, got {tile.type}", hint="write v[:, None] or v[None, :]"
        )
    value = tile.value if tile.type.space == "register" else _op("to_register", tile).value
    return Tile(context.builder().emit1("expand_dims", [value], axis=is_full.index(False)))


def _range(item: Any, extent: int, tile: Tile) -> tuple[int, int]:
    if not isinstance(item, slice):
        raise TileTypeError(
            f"a tile is sliced by static ranges, got {item!r} for {tile.type}",
            hint="a single row is t[i:i+1]; a run-time position needs ww.shared or a load from global memory",
        )
    if any(isinstance(bound, Tile) for bound in (item.start, item.stop, item.step)):
        raise CaptureError(
            f"the ranges of a slice of {tile.type} must be compile-time integers",
            hint="a run-time window needs ww.shared, or a load from global memory with unit='element'",
        )
    start, stop, step = item.indices(extent)
    if step != 1 or stop <= start:
        raise TileValueError(f"slice {item.start}:{item.stop}:{item.step} of an extent of {extent} is empty or strided")
    wanted = item.stop
    if wanted is not None and wanted > extent:
        raise TileValueError(f"slice {item.start}:{item.stop} is outside an extent of {extent} of {tile.type}")
    return start, stop - start
