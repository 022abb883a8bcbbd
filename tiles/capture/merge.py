"""Two values of one variable, from two paths, as one: run-time leaves inside equal Python structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwave.tiles.capture.state import same
from warpwave.tiles.dtypes import DType, bool_, f32
from warpwave.tiles.language.elementwise import cast, constant, is_number, natural_dtype, to_register
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import TileType, scalar


class Mismatch(Exception):
    """The two values cannot be one variable; the text says why."""


@dataclass(eq=False)
class Shape:
    """The structure of a merged value: `leaf` is an index into the leaves, or there are `items`, or a `static`."""

    kind: str
    leaf: int = -1
    static: Any = None
    items: list[Shape] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)


@dataclass
class Merger:
    """Collects the leaves of merged values: pairs of Tile or number, with the type both are brought to.

    The same pair of lists is merged once, so that two names of one list stay two names of one list.
    """

    types: list[TileType] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    _memo: dict[tuple[int, int], Shape] = field(default_factory=dict)

    def merge(self, a: Any, b: Any) -> Shape:
        """The structure of both values; Mismatch if they differ in more than run-time leaves."""
        if isinstance(a, Tile) or isinstance(b, Tile) or (is_number(a) and is_number(b) and not same(a, b)):
            return self._leaf(a, b)
        if same(a, b):
            return Shape("static", static=a)
        if type(a) is not type(b) or type(a) not in (tuple, list, dict):
            raise Mismatch(f"it is {describe(a)} on one path and {describe(b)} on the other")
        key = (id(a), id(b))
        if key not in self._memo:
            self._memo[key] = self._container(a, b)
        return self._memo[key]

    def _container(self, a: Any, b: Any) -> Shape:
        if len(a) != len(b) or (isinstance(a, dict) and list(a) != list(b)):
            raise Mismatch(f"it is a {type(a).__name__} of {len(a)} on one path and of {len(b)} on the other")
        if isinstance(a, dict):
            items = [self.merge(a[k], b[k]) for k in a]
            return Shape("dict", items=items, keys=list(a))
        return Shape(type(a).__name__, items=[self.merge(x, y) for x, y in zip(a, b, strict=True)])

    def _leaf(self, a: Any, b: Any) -> Shape:
        self.types.append(common_type(a, b))
        self.pairs.append((a, b))
        return Shape("leaf", leaf=len(self.types) - 1)


def common_type(a: Any, b: Any) -> TileType:
    """The type of a value that is `a` on one path and `b` on the other; Mismatch if there is none."""
    if isinstance(a, Tile) and isinstance(b, Tile):
        if a.type == b.type:
            return a.type
        if a.type.with_(space="register") == b.type.with_(space="register"):
            return a.type.with_(space="register")
    elif is_number(a) and is_number(b):
        return scalar(number_dtype(a, b))
    else:
        tile, number = (a, b) if isinstance(a, Tile) else (b, a)
        if is_number(number) and not tile.shape and _fits(number, tile.dtype):
            return tile.type.with_(space="register")
    raise Mismatch(f"it is {describe(a)} on one path and {describe(b)} on the other")


def _fits(number: Any, dtype: DType) -> bool:
    if isinstance(number, bool):
        return dtype == bool_
    return dtype.is_float if isinstance(number, float) else dtype.kind in ("int", "float")


def number_dtype(*numbers: Any) -> DType:
    """The dtype of a run-time scalar that takes these Python numbers."""
    dtypes = [natural_dtype(n) for n in numbers]
    if len(set(dtypes)) == 1:
        return dtypes[0]
    if bool_ in dtypes:
        raise Mismatch("it is a bool on one path and a number on the other")
    return f32 if f32 in dtypes else max(dtypes, key=lambda d: d.bits)


def bring_to(x: Any, type_: TileType) -> Tile:
    """A leaf in its common type; emits at the current place."""
    if is_number(x):
        return constant(x, type_.dtype)
    tile: Tile = to_register(x) if type_.space == "register" else x
    return cast(tile, type_.dtype)


def rebuild(shape: Shape, leaves: Sequence[Tile], memo: dict[int, Any]) -> Any:
    """The Python value of a structure with these leaves; shared lists are built once per `memo`."""
    if shape.kind == "leaf":
        return leaves[shape.leaf]
    if shape.kind == "static":
        return shape.static
    if id(shape) not in memo:
        items = [rebuild(s, leaves, memo) for s in shape.items]
        memo[id(shape)] = dict(zip(shape.keys, items, strict=True)) if shape.kind == "dict" else items
    built = memo[id(shape)]
    return tuple(built) if shape.kind == "tuple" else built


def describe(x: Any) -> str:
    """A value as it is shown in messages."""
    if isinstance(x, Tile):
        return f"a run-time {x.type}"
    text = repr(x)
    return text if len(text) <= 40 else f"a {type(x).__name__}"
