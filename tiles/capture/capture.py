"""Captures one kernel for given argument types and constants."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.capture.dependencies import Dependency, all_same
from warpwave.tiles.capture.expressions import EXPRESSIONS
from warpwave.tiles.capture.interpreter import Interpreter
from warpwave.tiles.capture.scope import Frame
from warpwave.tiles.capture.source import names_of, parse
from warpwave.tiles.capture.statements import STATEMENTS
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.ir import Block, Builder, Kernel, Value, verify
from warpwave.tiles.language import context
from warpwave.tiles.language.handles import Tensor, Tile
from warpwave.tiles.passes import canonicalise
from warpwave.tiles.types import TensorType, Type


@dataclass(frozen=True)
class Captured:
    """A captured kernel and the outside values that it was captured with.

    `closed`: nothing but these, the kernel's source, its arguments and the language decided what it became.
    """

    kernel: Kernel
    dependencies: tuple[Dependency, ...]
    closed: bool = False

    def up_to_date(self) -> bool:
        """Whether capturing again would see the same outside values."""
        try:
            return self._all_same() or all([d.unchanged() for d in self.dependencies])
        except Exception:  # a variable is gone, or reading ran a property's code, as in Dependency.unchanged
            return False

    @functools.cached_property
    def _all_same(self) -> Callable[[], bool]:
        return all_same(self.dependencies)


def capture(function: types.FunctionType, params: Mapping[str, Type | None], constants: Mapping[str, Any]) -> Captured:
    """The kernel's IR, verified and canonicalised.

    `params` gives the type of each run-time parameter in order, None for an optional tensor that is absent.
    """
    captured = trace(function, params, constants)
    verify(captured.kernel)
    canonicalise(captured.kernel)
    verify(captured.kernel)
    return captured


def trace(function: types.FunctionType, params: Mapping[str, Type | None], constants: Mapping[str, Any]) -> Captured:
    """The kernel's IR as its Python code made it."""
    source = parse(function)
    arguments = {n: Value(t, n) for n, t in params.items() if t is not None}
    body = Block(list(arguments.values()))
    interpreter = Interpreter(Builder(body), STATEMENTS, EXPRESSIONS)
    for name, value in constants.items():
        interpreter.dependencies.constant(name, value)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    variables = {**constants, **{n: _handle(n, arguments.get(n)) for n in params}}
    frame = Frame(source, names_of(source.node), function.__globals__, cells, vars=variables)
    with context.capturing(interpreter.builder), interpreter.entering(frame):
        flow = interpreter.run(source.body)
        loc = interpreter.loc(source.node)
    if flow.value is not None:
        raise CaptureError(
            f"kernel {function.__name__} returns a value", loc=loc, hint="a kernel writes its results with ww.store"
        )
    kernel = Kernel(function.__name__, list(arguments), dict(constants), body, loc)
    return Captured(kernel, tuple(interpreter.dependencies.all()), interpreter.dependencies.closed)


def _handle(name: str, value: Value | None) -> Any:
    if value is None:
        return None
    return Tensor(value, name) if isinstance(value.type, TensorType) else Tile(value)
