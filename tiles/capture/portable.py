"""Values from outside a kernel as JSON that means the same in another process; `NotPortable` for all others.

What one of these pictures says is all that a capture can see of the value: numbers and texts, containers of them,
modules, public names of the language, functions of C, and helpers by the text that they are captured from.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import linecache
import math
import operator
import sys
import types
from typing import Any

import warpwave.tiles
from warpwave.tiles.capture.source import find_source, is_helper
from warpwave.tiles.types import TensorType, TileType

# What these hold gives the same for the same arguments in every process, the named ones of the built-ins at least.
_KNOWN_MODULES = {"builtins": builtins, "math": math, "cmath": cmath, "_operator": operator}
_KNOWN_BUILTINS = (
    *(
        abs,
        all,
        any,
        ascii,
        bin,
        callable,
        chr,
        divmod,
        format,
        getattr,
        hasattr,
        hex,
        isinstance,
        issubclass,
        iter,
        len,
    ),
    *(max, min, next, oct, ord, pow, round, sorted, sum, enumerate, filter, map, range, reversed, slice, zip, type),
    *(bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
)
_OURS = ("warpwave.tiles.language.", "warpwave.tiles.capture.", "warpwave.tiles.types", "warpwave.tiles.dtypes")


class NotPortable(Exception):
    """A value that another process may not have; a kernel that depends on it is captured in each process."""


def picture(value: Any, helpers: list[types.FunctionType]) -> Any:
    """JSON that is equal for two values only if a capture sees the same in both; `helpers` collects the functions."""
    kind = type(value)
    if value is None or kind is int or kind is str:
        return value
    if kind is bool:  # which JSON tells from 0 and 1, but Python's comparison does not
        return ["bool", value]
    if kind is float:
        return ["float", value.hex() if value == value else "nan"]
    if kind in (tuple, list):
        return [kind.__name__, *[picture(v, helpers) for v in value]]
    if kind is dict:
        return ["dict", *[[picture(k, helpers), picture(v, helpers)] for k, v in value.items()]]
    if kind is TileType or kind is TensorType:
        return [kind.__name__, *[picture(v, helpers) for v in vars(value).values()]]
    if kind is types.ModuleType:
        return _module(value)
    return _named(value) or _helper(value, helpers)


def _module(module: types.ModuleType) -> list[str]:
    if sys.modules.get(module.__name__) is not module:
        raise NotPortable(f"a module that is not imported as {module.__name__}")
    return ["module", module.__name__]


def _named(value: Any) -> list[str] | None:
    """A public name of the language, or of one of Python's own modules."""
    ours = _names_of_the_language().get(id(value))
    if ours is not None:
        return ["language", ours]
    if not isinstance(value, types.BuiltinFunctionType | type):
        return None
    name, module = str(value.__name__), value.__module__ or ""
    if module not in _KNOWN_MODULES or vars(_KNOWN_MODULES[module]).get(name) is not value:
        return None
    return [module, name] if module != "builtins" or value in _KNOWN_BUILTINS else None


@functools.cache
def _names_of_the_language() -> dict[int, str]:
    """Names by identity; of things that are always there, so that no other object can have their identity."""
    public = vars(warpwave.tiles)
    return {id(public[name]): name for name in warpwave.tiles.__all__}


# -- functions with source ----------------------------------------------------------------------------


def _helper(value: Any, helpers: list[types.FunctionType]) -> list[Any]:
    """A function that a capture runs from its source."""
    if not isinstance(value, types.FunctionType) or not is_helper(value) or "__signature__" in vars(value):
        raise NotPortable(f"a {type(value).__name__}")
    helpers.append(value)
    defaults = [picture(part, helpers) for part in (value.__defaults__, value.__kwdefaults__)]
    return [*source_picture(value), *defaults]


def source_picture(function: types.FunctionType) -> list[Any]:
    """What finds the function in its file, and a digest of the file as a capture that starts now would read it."""
    code = function.__code__
    columns = code.co_linetable.hex()  # tells functions of one line apart
    names = [*code.co_varnames, "", *code.co_freevars]
    file = code.co_filename
    linecache.checkcache(file)
    text = digest("".join(linecache.getlines(file)))
    return ["function", function.__module__, file, code.co_firstlineno, code.co_name, names, columns, text]


def was_captured_from(function: types.FunctionType, pictured: list[Any]) -> bool:
    """Whether this process ran the function from the very text that its picture tells of."""
    source = find_source(function.__code__)
    return source is not None and digest(source.text) == pictured[7]


@functools.lru_cache(maxsize=256)
def digest(text: str) -> str:
    """A short name for a text."""
    import hashlib  # importing the language does without

    return hashlib.sha256(text.encode()).hexdigest()


# -- calls --------------------------------------------------------------------------------------------


def is_known_call(function: Any, args: list[Any]) -> bool:
    """Whether a call that Python runs itself depends on nothing but its arguments and the language."""
    return _is_known_function(function) and all(map(_is_known_argument, args))


def _is_known_function(function: Any) -> bool:
    if is_ours(function):
        return True
    if isinstance(function, types.BuiltinFunctionType) and type(function.__self__) in _PLAIN:
        return True  # a method such as list.append or str.join
    return _named(function) is not None


_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range)
_ITERATORS = (type(None), map, filter, zip, enumerate, reversed, slice)


def _is_known_argument(value: Any) -> bool:
    kind = type(value)
    if kind in (tuple, list, set, frozenset):
        return all(map(_is_known_argument, value))
    if kind is dict:
        return all(map(_is_known_argument, [*value, *value.values()]))
    return kind in _PLAIN or kind in _ITERATORS or is_ours(value) or _named(value) is not None


def is_ours(value: Any) -> bool:
    """A function, class or object of the language, whose behaviour its source decides."""
    owner = value if isinstance(value, types.FunctionType | type) else type(value)
    return (owner.__module__ or "").startswith(_OURS)
