"""Native functions in kernel code: Python's built-ins on run-time values, and what would silently run only once."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from warpwave.tiles.dtypes import f32, i32, i64
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.language import control, elementwise
from warpwave.tiles.language.handles import Tile

HIGHER_ORDER = (map, filter, sorted, min, max, functools.reduce)
_WITHOUT_RUNTIME = ("math", "cmath", "numpy", "torch", "statistics")
_CHANGING_STATE = ("random", "time", "secrets", "uuid", "numpy.random")
_REFUSED = (exec, eval, globals, locals, vars, setattr, delattr, open, input, id, __import__)


def runtime_builtin(function: Any, args: list[Any], kwargs: dict[str, Any], in_region: bool) -> Any:
    """The result of a Python built-in that means something else with run-time values, or NotImplemented."""
    if function is print and in_region:
        raise CaptureError(
            "print() in a run-time loop or branch would print once, at capture", hint="use ww.print(text, values...)"
        )
    handler = _HANDLERS.get(id(function))
    if handler is None or not any(_has_tile(a) for a in [*args, *kwargs.values()]):
        return NotImplemented
    if kwargs:
        raise CaptureError(f"{function.__name__}() of run-time values takes no keyword arguments")
    return handler(*args)


def _has_tile(x: Any) -> bool:
    return isinstance(x, Tile) or (isinstance(x, list | tuple) and any(isinstance(item, Tile) for item in x))


def refuse(function: Any, args: list[Any]) -> None:
    """CaptureError for a native call that cannot have its meaning in a kernel."""
    name = getattr(function, "__name__", str(function))
    if any(function is f for f in _REFUSED):
        raise CaptureError(f"{name}() is not supported in kernel code")
    origin = _origin(function)
    if any(origin == m or origin.startswith(m + ".") for m in _CHANGING_STATE):
        raise CaptureError(
            f"{origin}.{name}() would run once, at capture, and never again",
            hint="pass its result as an argument; for random numbers in the kernel use ww.random_uniform",
        )
    if origin.split(".")[0] in _WITHOUT_RUNTIME and any(isinstance(a, Tile) for a in args):
        raise CaptureError(
            f"{origin}.{name} cannot work on a run-time value",
            hint="use the op of the same name in warpwave, e.g. ww.exp",
        )


def _origin(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(type(owner), "__module__", None)
    return module if isinstance(module, str) else ""


# -- built-ins ----------------------------------------------------------------------------------------


def _range(*args: Any) -> Any:
    return control.make_range(args)


def _min(*args: Any) -> Any:
    return _pick(args, "min", elementwise.lt)


def _max(*args: Any) -> Any:
    return _pick(args, "max", elementwise.gt)


def _pick(args: tuple[Any, ...], name: str, is_better: Callable[[Any, Any], Tile]) -> Any:
    """Python's min and max keep the first of equal values, and the first where a comparison is false."""
    items = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    if len(items) < 2 or any(_is_shaped(a) for a in items):
        raise CaptureError(f"{name}() of a tile", hint=f"use ww.{name}(tile, axis=...) or ww.{name}imum(a, b)")
    best = items[0]
    for other in items[1:]:
        best = elementwise.where(is_better(other, best), other, best)
    return best


def _is_shaped(x: Any) -> bool:
    return isinstance(x, Tile) and bool(x.shape)


def _scalar(x: Any, name: str) -> Tile:
    if not isinstance(x, Tile) or x.shape:
        raise CaptureError(f"{name}() takes one number, got {x!r}", hint="convert a tile with ww.cast(x, dtype)")
    return x


def _int(x: Any) -> Tile:
    tile = _scalar(x, "int")
    return tile if tile.dtype in (i32, i64) else elementwise.cast(tile, i32)


def _float(x: Any) -> Tile:
    return elementwise.cast(_scalar(x, "float"), f32)


def _bool(x: Any) -> Tile:
    tile = _scalar(x, "bool")
    return tile if tile.dtype.kind == "bool" else elementwise.ne(tile, 0)


def _round(x: Any) -> Tile:
    tile = _scalar(x, "round")
    return tile if tile.dtype.is_int else elementwise.cast(elementwise.round(tile), i32)


def _divmod(a: Any, b: Any) -> tuple[Tile, Tile]:
    return elementwise.floordiv(a, b), elementwise.mod(a, b)


def _print(*_: Any) -> None:
    raise CaptureError("print() runs once, at capture, and cannot show a run-time value", hint="use ww.print(text, x)")


def _text(*_: Any) -> None:
    raise CaptureError("a run-time value has no text at capture", hint="use ww.print(text, x)")


def _isinstance(x: Any, classes: Any) -> bool:
    if isinstance(x, Tile) and any(c in (int, float, bool, complex) for c in _flat(classes)):
        raise CaptureError(
            "isinstance() cannot tell a run-time value from a Python number without changing the meaning",
            hint="ask for its dtype, e.g. x.dtype == i32, or pass a compile-time flag",
        )
    return isinstance(x, classes)


def _flat(classes: Any) -> list[Any]:
    if isinstance(classes, tuple):
        return [c for part in classes for c in _flat(part)]
    return list(getattr(classes, "__args__", (classes,)))


def _type(*args: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Tile):
        raise CaptureError("type() of a run-time value is not a Python number's", hint="ask for its dtype: x.dtype")
    return type(*args)


_HANDLERS: dict[int, Callable[..., Any]] = {
    id(builtins.range): _range,
    id(builtins.min): _min,
    id(builtins.max): _max,
    id(builtins.int): _int,
    id(builtins.float): _float,
    id(builtins.bool): _bool,
    id(builtins.round): _round,
    id(builtins.divmod): _divmod,
    id(builtins.print): _print,
    id(builtins.str): _text,
    id(builtins.repr): _text,
    id(builtins.isinstance): _isinstance,
    id(builtins.type): _type,
}
