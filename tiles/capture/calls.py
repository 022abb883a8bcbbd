"""Calls in kernel code: Python helpers are inlined by the capture, ops and native functions run directly."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from typing import Any

from warpwave.tiles.capture import native
from warpwave.tiles.capture.interpreter import Interpreter
from warpwave.tiles.capture.portable import is_known_call
from warpwave.tiles.capture.scope import Frame, InterpretedFunction
from warpwave.tiles.capture.source import FunctionNode, Source, contains, find_source, is_helper, names_of
from warpwave.tiles.errors import CaptureError

_CACHED = type(functools.lru_cache(maxsize=0)(len))


def call(ip: Interpreter, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    """The result of calling `function`."""
    if isinstance(function, functools.partial):
        return call(ip, function.func, [*function.args, *args], {**function.keywords, **kwargs}, node)
    if isinstance(function, InterpretedFunction):
        return _enter_nested(ip, function, tuple(args), kwargs, node)
    if isinstance(function, types.MethodType):
        return call(ip, function.__func__, [function.__self__, *args], kwargs, node)
    if isinstance(function, _CACHED):  # functools.cache: a cached run-time value would belong to another capture
        return call(ip, function.__wrapped__, args, kwargs, node)
    source = _inlinable(function)
    if source is not None:
        return _enter(ip, function, source, args, kwargs, node)
    method = inspect.getattr_static(type(function), "__call__", None)
    if _inlinable(method) is not None:  # an object of a user's class
        return call(ip, method, [function, *args], kwargs, node)
    return _call_native(ip, function, args, kwargs, node)


def _inlinable(function: Any) -> Source | None:
    """The source of a user's helper; None for our own ops, the standard library and sourceless functions."""
    if not isinstance(function, types.FunctionType) or not is_helper(function):
        return None
    return find_source(function.__code__)


def _call_native(ip: Interpreter, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
    special = native.runtime_builtin(function, args, kwargs, bool(ip.regions))
    if special is not NotImplemented:
        return special
    native.refuse(function, [*args, *kwargs.values()])
    if function is getattr and len(args) == 2:
        return ip.dependencies.attribute(*args)
    if any(function is f for f in native.HIGHER_ORDER):
        args = [_callback(ip, a, node) for a in args]
        kwargs = {k: _callback(ip, a, node) for k, a in kwargs.items()}
    if not is_known_call(function, [*args, *kwargs.values()]):
        ip.dependencies.closed = False
    return function(*args, **kwargs)


def _callback(ip: Interpreter, value: Any, node: ast.AST) -> Any:
    """A user's function that native code will call, made to run in the capture."""
    if _inlinable(value) is None:
        return value
    return lambda *args, **kwargs: call(ip, value, list(args), kwargs, node)


# -- entering functions -------------------------------------------------------------------------------


def make_function(ip: Interpreter, node: FunctionNode, name: str) -> InterpretedFunction:
    """A function or lambda defined in kernel code, with its defaults evaluated now."""
    source = Source(node, ip.frame.source.file, name)

    def invoke(function: InterpretedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _enter_nested(ip, function, args, kwargs, node)

    return InterpretedFunction(source, _signature(ip, node.args), ip.frame, invoke)


def _signature(ip: Interpreter, args: ast.arguments) -> inspect.Signature:
    kinds = inspect.Parameter
    positional = [*args.posonlyargs, *args.args]
    defaults = [kinds.empty] * (len(positional) - len(args.defaults)) + [ip.eval(d) for d in args.defaults]
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


def _bind(function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _enter(
    ip: Interpreter,
    function: types.FunctionType,
    source: Source,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.AST,
) -> Any:
    ip.dependencies.function(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    frame = Frame(source, names_of(source.node), function.__globals__, cells, vars=_bind(function, args, kwargs))
    return _run_function(ip, frame, node)


def _enter_nested(
    ip: Interpreter, function: InterpretedFunction, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.AST
) -> Any:
    bound = function.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    source, outer = function.source, function.frame
    frame = Frame(source, names_of(source.node), outer.globals, parent=outer, vars=dict(bound.arguments))
    return _run_function(ip, frame, node)


def _run_function(ip: Interpreter, frame: Frame, node: ast.AST) -> Any:
    frame.call = ip.loc(node)
    source = frame.source
    if contains(source.body, (ast.Yield, ast.YieldFrom)):
        raise CaptureError(f"{source.name} is a generator defined in a kernel", hint="return a list instead")
    with ip.entering(frame):
        return ip.run(source.body).value
