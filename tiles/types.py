"""Types of the values in a kernel: register and shared tiles, vectors, scalars and global tensors.

`rt[f32, 64, 128]`, `st[bf16, 64, 64]`, `rv[f32, 128]`, `sv[f32, 128]` and `gl[bf16]` are how a kernel
writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import TileTypeError, TileValueError

Space = Literal["register", "shared", "buffer"]


@dataclass(frozen=True)
class TileType:
    """A tile of the whole workgroup: dtype, static shape (rank 0 scalar, 1 vector, 2 tile) and space.

    `register` and `shared` tiles are values; a `buffer` is the mutable shared tile that `ww.shared`
    allocates.
    """

    dtype: DType
    shape: tuple[int, ...]
    space: Space = "register"

    def __post_init__(self) -> None:
        if len(self.shape) > 2:
            raise TileTypeError(f"a tile has at most 2 dimensions, got shape {list(self.shape)}")
        for extent in self.shape:
            if extent < 1:
                raise TileValueError(f"a tile extent must be at least 1, got shape {list(self.shape)}")

    @property
    def rank(self) -> int:
        """Number of dimensions: 0, 1 or 2."""
        return len(self.shape)

    @property
    def is_scalar(self) -> bool:
        """Whether this is a run-time scalar (uniform over the workgroup)."""
        return not self.shape

    @property
    def nbytes(self) -> int:
        """Size in bytes of the whole tile."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count * self.dtype.nbytes

    def with_(self, **changes: Any) -> TileType:
        """A copy with some of `dtype`, `shape`, `space` replaced."""
        return TileType(
            changes.get("dtype", self.dtype), changes.get("shape", self.shape), changes.get("space", self.space)
        )

    def __str__(self) -> str:
        if not self.shape:
            return self.dtype.name
        prefix = {"register": "r", "shared": "s", "buffer": "buf_s"}[self.space]
        suffix = "t" if self.rank == 2 else "v"
        return f"{prefix}{suffix}<{self.dtype.name}, {'x'.join(map(str, self.shape))}>"


@dataclass(frozen=True)
class TensorType:
    """A global tensor argument: dtype and rank are static, shape and strides are known at launch."""

    dtype: DType
    rank: int

    def __str__(self) -> str:
        return f"gl<{self.dtype.name}, {self.rank}d>"


Type = TileType | TensorType


def scalar(dtype: DType) -> TileType:
    """The type of a run-time scalar."""
    return TileType(dtype, ())


@dataclass(frozen=True)
class GlobalSpec:
    """The annotation of a global tensor: `gl[dtype]`, or bare `gl` for any dtype (then `a.dtype` is static).

    `gl[dtype] | None` lets the tensor be absent.
    """

    dtype: DType | None = None
    optional: bool = False

    def __getitem__(self, dtype: DType) -> GlobalSpec:
        if not isinstance(dtype, DType):
            raise TileTypeError(f"gl[...] takes one dtype, got {dtype!r}")
        return GlobalSpec(dtype)

    def __or__(self, other: object) -> GlobalSpec:
        if other is not None:
            return NotImplemented
        return GlobalSpec(self.dtype, True)

    __ror__ = __or__

    def __str__(self) -> str:
        return (f"gl[{self.dtype.name}]" if self.dtype else "gl") + " | None" * self.optional


@dataclass(frozen=True)
class TileFamily:
    """What makes tile types of one space and rank: `rt[dtype, rows, cols]`, `rv[dtype, length]`.

    `v[:, None]` makes a vector a column, `v[None, :]` a row.
    """

    name: str
    space: Space
    rank: int

    def __getitem__(self, params: Any) -> TileType:
        params = params if isinstance(params, tuple) else (params,)
        if not params or not isinstance(params[0], DType):
            example = ", ".join(["f32"] + ["64"] * self.rank)
            raise TileTypeError(f"{self}[...] starts with a dtype, e.g. {self}[{example}]")
        extents = params[1:]
        if len(extents) != self.rank:
            raise TileTypeError(f"{self}[...] takes a dtype and {self.rank} extent(s), got {len(extents)}")
        for extent in extents:
            if isinstance(extent, bool) or not isinstance(extent, int):
                raise TileTypeError(
                    f"the extents of {self}[...] are compile-time integers, got {extent!r}",
                    hint="make it a keyword-only constant of the kernel, or a module constant",
                )
        return TileType(params[0], tuple(extents), self.space)

    def __str__(self) -> str:
        return self.name


gl = GlobalSpec()
rt = TileFamily("rt", "register", 2)
st = TileFamily("st", "shared", 2)
rv = TileFamily("rv", "register", 1)
sv = TileFamily("sv", "shared", 1)
