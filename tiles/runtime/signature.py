"""A kernel's parameters, read from its `def` line: tensors, run-time scalars and compile-time constants."""

from __future__ import annotations

import inspect
import types
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.capture.source import find_source
from warpwave.tiles.dtypes import DType, bool_, f32, i32, i64
from warpwave.tiles.errors import CaptureError, Loc, TileTypeError, TileValueError
from warpwave.tiles.types import GlobalSpec, TileType

SCALARS = (i32, i64, f32, bool_)
_PYTHON_SCALARS: dict[Any, DType] = {int: i32, float: f32, bool: bool_}
RESERVED = ("target", "options")


class _Required:
    """Marks a parameter or constant without a default."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = _Required()


@dataclass(frozen=True)
class Parameter:
    """One run-time parameter. `dtype` is None for a tensor of any dtype."""

    name: str
    dtype: DType | None
    is_tensor: bool
    optional: bool = False
    default: Any = REQUIRED

    def __str__(self) -> str:
        if self.is_tensor:
            return str(GlobalSpec(self.dtype, self.optional))
        return str(self.dtype)


@dataclass(frozen=True)
class Signature:
    """Run-time parameters in order, and compile-time constants with their defaults (or REQUIRED)."""

    params: tuple[Parameter, ...]
    constants: Mapping[str, Any]


def place(function: types.FunctionType, parameter: str | None = None) -> Loc:
    """Where a function's `def` line, or one of its parameters, stands in the source."""
    code = function.__code__
    source = find_source(code)
    if source is None:
        return Loc(code.co_filename, code.co_firstlineno, function=function.__name__)
    args = source.node.args
    nodes = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]
    for arg in nodes:
        if arg.arg == parameter:
            return Loc(source.file, arg.lineno, arg.col_offset, arg.end_col_offset, source.name)
    start = source.node.col_offset
    return Loc(source.file, source.node.lineno, start, start + len(f"def {source.name}"), source.name)


def read_signature(function: types.FunctionType, local_names: Mapping[str, Any]) -> Signature:
    """The signature of a kernel; errors point at the parameter at fault.

    `local_names` are the variables around the definition, for annotations that name them.
    """
    params: list[Parameter] = []
    constants: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        try:
            _refuse_names(parameter)
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                constants[parameter.name] = _default(parameter)
            else:
                params.append(_parameter(parameter, _annotation(parameter, function, local_names)))
        except (CaptureError, TileTypeError, TileValueError) as error:
            error.loc = error.loc or place(function, parameter.name)
            raise
    return Signature(tuple(params), constants)


def _refuse_names(parameter: inspect.Parameter) -> None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise CaptureError(f"a kernel cannot take {star}{parameter.name}", hint="name each parameter")
    if parameter.name in RESERVED:
        raise CaptureError(f"{parameter.name!r} is a keyword of every launch, not a name for a kernel's parameter")


def _default(parameter: inspect.Parameter) -> Any:
    return REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default


def _annotation(parameter: inspect.Parameter, function: types.FunctionType, local_names: Mapping[str, Any]) -> Any:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        raise CaptureError(
            f"parameter {parameter.name!r} has no annotation",
            hint="gl[bf16] or gl for a tensor, i32 or f32 for a scalar; compile-time constants come after a *",
        )
    if not isinstance(annotation, str):
        return annotation
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = ChainMap({n: c.cell_contents for n, c in cells if _is_filled(c)}, dict(local_names))
    try:
        return eval(annotation, function.__globals__, names)
    except (CaptureError, TileTypeError, TileValueError):
        raise
    except Exception as error:
        raise CaptureError(
            f"the annotation {annotation!r} of parameter {parameter.name!r} cannot be evaluated: {error}"
        ) from error


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    name, default = parameter.name, _default(parameter)
    if isinstance(annotation, GlobalSpec):
        spec = annotation
        if default is not REQUIRED and not (default is None and spec.optional):
            raise CaptureError(
                f"the tensor parameter {name!r} cannot have the default {default!r}",
                hint=f"an optional tensor is written {name}: gl[...] | None = None",
            )
        return Parameter(name, spec.dtype, True, spec.optional, default)
    dtype = _PYTHON_SCALARS.get(annotation) if isinstance(annotation, type) else annotation
    if not isinstance(dtype, DType):
        raise CaptureError(f"parameter {name!r} has the annotation {_text(annotation)}, {_reason(annotation)}")
    if dtype not in SCALARS:
        raise CaptureError(
            f"parameter {name!r}: a scalar is one of {', '.join(d.name for d in SCALARS)}, got {dtype}",
            hint=f"a tensor of this dtype is gl[{dtype}]",
        )
    return Parameter(name, dtype, False, False, default)


def _reason(annotation: Any) -> str:
    if isinstance(annotation, TileType):
        return "but a kernel's parameters are global tensors (gl) and scalars; tiles are loaded inside"
    return "expected gl, gl[dtype], gl[dtype] | None, a scalar dtype, int, float or bool"


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
