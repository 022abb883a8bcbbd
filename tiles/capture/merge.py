"""Two values of one variable, from two paths, as one: run-time leaves inside equal Python structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from warpwave.tiles.capture.scope import InterpretedFunction, InterpretedGenerator
from warpwave.tiles.capture.state import Contents, same
from warpwave.tiles.dtypes import DType, bool_, f32
from warpwave.tiles.language.elementwise import cast, constant, is_number, natural_dtype, to_register
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import TileType, scalar


class Mismatch(Exception):
    """The two values cannot be one variable; the text says why."""


# -- structure ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Shape:
    """The structure of a merged value: index of a `leaf`, a `static` value, or a container built by `build`."""

    kind: str
    leaf: int = -1
    static: Any = None
    items: list[Shape] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    build: Callable[[list[Any], list[Any]], Any] | None = None

    def matches(self, other: Shape) -> bool:
        """Whether both have leaves in the same places and equal values everywhere else."""
        if self.kind != other.kind or self.leaf != other.leaf or not same(self.static, other.static):
            return False
        if self.keys != other.keys or len(self.items) != len(other.items):
            return False
        return all(a.matches(b) for a, b in zip(self.items, other.items, strict=True))

    @property
    def is_mutable(self) -> bool:
        """Whether it is a list or dict."""
        return self.kind in ("list", "dict")


def parts(x: Any, contents: Contents = MappingProxyType({})) -> list[tuple[Any, Any]] | None:
    """The items of a tuple, list, dict or dataclass by key, as `contents` has them; None for other values."""
    x = contents.get(id(x), x)
    if isinstance(x, tuple) or type(x) is list:
        return list(enumerate(x))
    if type(x) is dict:
        return list(x.items())
    if dataclasses.is_dataclass(x) and not isinstance(x, type | InterpretedFunction | InterpretedGenerator):
        names = [f.name for f in dataclasses.fields(x)]
        if vars(x).keys() == set(names) if hasattr(x, "__dict__") else True:
            return [(name, getattr(x, name)) for name in names]
    return None


def _builder_of(x: Any) -> Callable[[list[Any], list[Any]], Any]:
    """How to make a value like `x` from keys and items."""
    cls = type(x)
    if cls is list:
        return lambda _, items: items
    if cls is dict:
        return lambda keys, items: dict(zip(keys, items, strict=True))
    if isinstance(x, tuple):
        make: Any = getattr(cls, "_make", cls)
        return lambda _, items: make(items)
    return lambda keys, items: _dataclass(cls, keys, items)


def _dataclass(cls: type, keys: list[str], items: list[Any]) -> Any:
    value: Any = object.__new__(cls)
    for key, item in zip(keys, items, strict=True):
        object.__setattr__(value, key, item)
    return value


def has_tile(x: Any) -> bool:
    """Whether a value is a tile or holds one."""
    return isinstance(x, Tile) or any(has_tile(item) for _, item in parts(x) or ())


# -- merging ------------------------------------------------------------------------------------------


@dataclass
class Merger:
    """Collects the leaves of merged values: pairs of Tile or number, with the type both are brought to.

    The same pair of lists is merged once, so that two names of one list stay two names of one list.
    `in_loop`: every tile in an immutable structure is a leaf, since the next iteration brings another.
    `contents_a` and `contents_b` are what lists and dicts hold on each path, where that differs from now.
    """

    in_loop: bool = False
    contents_a: Contents = field(default_factory=dict)
    contents_b: Contents = field(default_factory=dict)
    types: list[TileType] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    containers: list[tuple[Any, Any, Shape]] = field(default_factory=list)
    _memo: dict[tuple[int, int], Shape] = field(default_factory=dict)

    def merge(self, a: Any, b: Any) -> Shape:
        """The structure of both values; Mismatch if they differ in more than run-time leaves."""
        if isinstance(a, Tile) or isinstance(b, Tile):
            return self._leaf(a, b) if self.in_loop or a is not b else Shape("static", static=a)
        if self._is_static(a, b):
            return Shape("static", static=a)
        if is_number(a) and is_number(b):
            return self._leaf(a, b)
        key = (id(a), id(b))
        if key not in self._memo:
            self._memo[key] = self._container(a, b)
        return self._memo[key]

    def _is_static(self, a: Any, b: Any) -> bool:
        if self.in_loop and not isinstance(a, list | dict) and has_tile(a):
            return False
        return same(a, b)

    def _container(self, a: Any, b: Any) -> Shape:
        items, others = parts(a, self.contents_a), parts(b, self.contents_b)
        if type(a) is not type(b) or items is None or others is None:
            raise Mismatch(f"it is {describe(a)} on one path and {describe(b)} on the other")
        keys = [k for k, _ in items]
        if len(items) != len(others) or not all(same(k, o) for k, (o, _) in zip(keys, others, strict=True)):
            raise Mismatch(f"it is a {type(a).__name__} of {len(items)} on one path and of {len(others)} on the other")
        merged = [self.merge(x, y) for (_, x), (_, y) in zip(items, others, strict=True)]
        shape = Shape(type(a).__name__, items=merged, keys=keys, build=_builder_of(a))
        if shape.is_mutable:
            self.containers.append((a, b, shape))
        return shape

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
    natural = natural_dtype(number)
    if natural == bool_ or dtype == bool_:
        return natural == dtype
    return dtype.is_float or (natural.is_int and dtype.min <= number <= dtype.max)


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


# -- building -----------------------------------------------------------------------------------------


def rebuild(shape: Shape, leaves: Sequence[Tile], memo: dict[int, Any]) -> Any:
    """The Python value of a structure with these leaves; shared containers are built once per `memo`."""
    if shape.kind == "leaf":
        return leaves[shape.leaf]
    if shape.build is None:
        return shape.static
    if id(shape) not in memo:
        memo[id(shape)] = shape.build(shape.keys, [rebuild(s, leaves, memo) for s in shape.items])
    return memo[id(shape)]


def leaves_of(shape: Shape, value: Any) -> Iterator[tuple[int, Any]]:
    """The leaves of a value that has this structure, with their index."""
    if shape.kind == "leaf":
        yield shape.leaf, value
    elif shape.build is not None:
        for item, (_, part) in zip(shape.items, parts(value) or (), strict=True):
            yield from leaves_of(item, part)


def describe(x: Any) -> str:
    """A value as it is shown in messages."""
    if isinstance(x, Tile):
        return f"a run-time {x.type}"
    text = repr(x)
    return text if len(text) <= 40 else f"a {type(x).__name__}"
