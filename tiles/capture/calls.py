"""Calls in kernel code: ops and native functions run directly, Python helpers are inlined by the capture."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
import types
from typing import Any

from warpwave.tiles.capture.interpreter import Interpreter
from warpwave.tiles.capture.scope import Frame, InterpretedFunction
from warpwave.tiles.capture.source import FunctionNode, Source, contains, declared_outer, local_names, parse_code
from warpwave.tiles.dtypes import bool_, f32, i32
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.language import control, elementwise
from warpwave.tiles.language.handles import Tile


def call(ip: Interpreter, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    """The result of calling `function`."""
    if isinstance(function, functools.partial):
        merged = {**function.keywords, **kwargs}
        return call(ip, function.func, [*function.args, *args], merged, node)
    if isinstance(function, InterpretedFunction):
        return _enter_nested(ip, function, tuple(args), kwargs, node)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        return call(ip, function.__func__, [function.__self__, *args], kwargs, node)
    if isinstance(function, types.FunctionType):
        source = _inlinable(function)
        if source is not None:
            return _enter(ip, function, source, args, kwargs, node)
    try:
        special = RUNTIME_BUILTINS.get(function)
    except TypeError:
        special = None
    if special is not None and any(isinstance(a, Tile) for a in args):
        return special(ip, *args, **kwargs)
    _refuse_native(function, args, kwargs)
    return function(*args, **kwargs)


def make_function(ip: Interpreter, node: FunctionNode, name: str) -> InterpretedFunction:
    """A function or lambda defined in kernel code, with its defaults evaluated now."""
    outer = ip.frame.source
    source = Source(node, outer.file, name, outer.column)

    def invoke(function: InterpretedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _enter_nested(ip, function, args, kwargs, node)

    return InterpretedFunction(source, _signature(ip, node.args), ip.frame, invoke)


def _signature(ip: Interpreter, args: ast.arguments) -> inspect.Signature:
    kinds = inspect.Parameter
    positional = [*args.posonlyargs, *args.args]
    defaults = [inspect.Parameter.empty] * (len(positional) - len(args.defaults)) + [ip.eval(d) for d in args.defaults]
    parameters = []
    for position, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        kind = kinds.POSITIONAL_ONLY if position < len(args.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        parameters.append(kinds(arg.arg, kind, default=default))
    if args.vararg:
        parameters.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
    for arg, node in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        default = kinds.empty if node is None else ip.eval(node)
        parameters.append(kinds(arg.arg, kinds.KEYWORD_ONLY, default=default))
    if args.kwarg:
        parameters.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _inlinable(function: types.FunctionType) -> Source | None:
    """The source of a user's helper; None for our own ops, the standard library and sourceless functions."""
    module = (function.__module__ or "").split(".")
    if module[:2] == ["warpwave", "tiles"] or module[0] in sys.stdlib_module_names - {"__main__"}:
        return None
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    return parse_code(function.__code__, function.__name__)


def _enter(
    ip: Interpreter,
    function: types.FunctionType,
    source: Source,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.AST,
) -> Any:
    ip.dependencies.attribute(function, "__code__")
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    frame = _frame(source, function.__globals__, cells, None, bound.arguments)
    return _run_function(ip, frame, source, node)


def _enter_nested(
    ip: Interpreter, function: InterpretedFunction, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.AST
) -> Any:
    bound = function.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    frame = _frame(function.source, function.frame.globals, {}, function.frame, bound.arguments)
    return _run_function(ip, frame, function.source, node)


def _frame(
    source: Source, namespace: dict[str, Any], cells: dict[str, Any], parent: Frame | None, variables: dict[str, Any]
) -> Frame:
    body = source.node.body
    outer = declared_outer(body if isinstance(body, list) else [body])
    names = local_names(source.node)
    return Frame(source, names, namespace, cells, parent, frozenset(outer), dict(variables))


def _run_function(ip: Interpreter, frame: Frame, source: Source, node: ast.AST) -> Any:
    frame.call = ip.loc(node)
    body = source.node.body
    if isinstance(body, list) and contains(body, (ast.Yield, ast.YieldFrom)):
        raise CaptureError(f"{source.name} is a generator defined in a kernel", hint="return a list instead")
    with ip.entering(frame):
        if not isinstance(body, list):
            return ip.eval(body)
        return ip.run(body).value


# -- Python's built-ins on run-time values ------------------------------------------------------------


def _range(_: Interpreter, *args: Any) -> Any:
    return control.make_range(args)


def _min(ip: Interpreter, *args: Any) -> Any:
    return _pick(ip, args, "min")


def _max(ip: Interpreter, *args: Any) -> Any:
    return _pick(ip, args, "max")


def _pick(ip: Interpreter, args: tuple[Any, ...], name: str) -> Any:
    """Python's min and max keep the first of equal values, and the first where a comparison is false."""
    if len(args) < 2 or any(isinstance(a, Tile) and a.shape for a in args):
        raise CaptureError(f"{name}() of a tile", hint=f"use ww.{name}(tile, axis=...) or ww.{name}imum(a, b)")
    best = args[0]
    for other in args[1:]:
        better = elementwise.lt(other, best) if name == "min" else elementwise.gt(other, best)
        best = elementwise.where(better, other, best)
    return best


def _int(_: Interpreter, x: Tile) -> Tile:
    return x if x.dtype.is_int else elementwise.cast(x, i32)


def _float(_: Interpreter, x: Tile) -> Tile:
    return x if x.dtype.is_float else elementwise.cast(x, f32)


def _bool(_: Interpreter, x: Tile) -> Tile:
    return x if x.dtype == bool_ else elementwise.ne(x, 0)


def _print(_: Interpreter, *args: Any, **kwargs: Any) -> None:
    raise CaptureError("print() runs once, at capture, and cannot show a run-time value", hint="use ww.print(text, x)")


RUNTIME_BUILTINS: dict[Any, Any] = {
    builtins.range: _range,
    builtins.min: _min,
    builtins.max: _max,
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.print: _print,
}


def _refuse_native(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    if any(function is f for f in (builtins.exec, builtins.eval, builtins.globals, builtins.locals, builtins.vars)):
        raise CaptureError(f"{function.__name__}() is not supported in kernel code")
    if function is builtins.setattr or function is builtins.delattr:
        raise CaptureError(f"{function.__name__}() is not supported in kernel code", hint="return new values instead")
    module = getattr(function, "__module__", None) or ""
    runtime = any(isinstance(v, Tile) for v in (*args, *kwargs.values()))
    if runtime and module.split(".")[0] in ("math", "numpy", "cmath", "torch"):
        raise CaptureError(
            f"{module}.{getattr(function, '__name__', function)} cannot work on a run-time value",
            hint="use the op of the same name in warpwave, e.g. ww.exp",
        )
