"""Launches like an earlier one: what binding and checking found out is kept, only addresses and numbers are new.

Binding PyTorch tensors through DLPack costs tens of microseconds for each launch. What it finds depends on little
that is quick to read; a launch that differs from an earlier one in nothing else takes that one's route.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Number, Start
from warpwave.tiles.runtime.binding import Bound, number
from warpwave.tiles.runtime.compiled import Compiled
from warpwave.tiles.runtime.derived import Derived
from warpwave.tiles.runtime.signature import Signature

REMEMBERED = 512


def _describe_value(value: Any) -> Hashable:
    return type(value), value  # 1, 1.0 and True are equal, but not the same


def _describe_float(value: float) -> Hashable:
    return float, value, math.copysign(1.0, value)


def _describe_array(array: Array) -> Hashable:
    return array.dtype, array.shape, array.strides, array.device, array.writable


def _describe_tensor(tensor: Any) -> Hashable:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.requires_grad


def _refuse(value: Any) -> NoReturn:
    raise NeedsCloserLook


class NeedsCloserLook(Exception):
    """An argument of a kind that is not known here."""


_NUMBERS = (int, float, bool)

# All that a launch depends on but the address, by exact type: subclasses may override anything.
_DESCRIBE: dict[type, Callable[[Any], Hashable]] = {
    **dict.fromkeys((bool, int, str, types.NoneType, types.FunctionType), _describe_value),
    float: _describe_float,
    Array: _describe_array,
}


def _describe(value: Any) -> Hashable:
    kind = type(value)
    found = _DESCRIBE.get(kind)
    if found is None:
        is_tensor = kind.__module__ == "torch" and kind.__name__ == "Tensor"
        found = _DESCRIBE[kind] = _describe_tensor if is_tensor else _refuse
    return found(value)


@dataclass(frozen=True)
class Step:
    """Where a parameter's argument is found in a call, and for an array what its view holds besides the address.

    A number of `dtype` is read anew, or it is `number` if it has no place in the call.
    """

    name: str
    place: int | str | None
    view: dict[str, Any] | None = None
    dtype: DType | None = None
    number: Number = 0


@dataclass(frozen=True)
class Route:
    """An earlier launch's compiled kernel, and how its program's arguments come from a call's."""

    compiled: Compiled
    steps: tuple[Step, ...]
    again: Start | None

    @cached_property
    def _tensors(self) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Sequence[Any]]:
        """What takes the arrays out of a call, in the kernel's order."""
        places: list[Any] = [step.place for step in self.steps if step.view is not None]
        if len(places) > 1 and all(type(place) is int for place in places):
            positional = operator.itemgetter(*places)
            return lambda args, kwargs: positional(args)
        return lambda args, kwargs: [args[place] if type(place) is int else kwargs[place] for place in places]

    @cached_property
    def _numbers(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.view is None)

    def launch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Launch on the call's arguments; False if one does not fit its parameter, which binding explains."""
        tensors = self._tensors(args, kwargs)
        numbers: list[Number] = []
        if self._numbers:
            try:
                numbers = [_number(step, args, kwargs) for step in self._numbers]
            except TileError:
                return False
        if self.again is None or not self.again([tensor.data_ptr() for tensor in tensors], numbers):
            self.compiled.program.run(self._arguments(iter(tensors), iter(numbers)))
        return True

    def _arguments(self, tensors: Iterator[Any], numbers: Iterator[Number]) -> dict[str, Array | Number]:
        arguments: dict[str, Array | Number] = {}
        for step in self.steps:
            arguments[step.name] = next(numbers) if step.view is None else _view(step.view, next(tensors))
        return arguments


def _number(step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Number:
    place = step.place
    if place is None:
        return step.number
    return number(step.dtype, args[place] if type(place) is int else kwargs[place])  # type: ignore[arg-type, index]


def _view(fields: dict[str, Any], tensor: Any) -> Array:
    if type(tensor) is Array:
        return tensor
    array = object.__new__(Array)  # a frozen dataclass sets its fields one by one, in ten times the time
    array.__dict__.update(fields)
    array.__dict__["address"] = tensor.data_ptr()
    array.__dict__["owner"] = tensor
    return array


class Routes:
    """The routes of one kernel. Numbers on which no constant depends may differ between launches of one route."""

    def __init__(self, signature: Signature) -> None:
        self._routes: dict[Hashable, Route] = {}
        self._params = signature.params
        read = {name for c in signature.constants.values() if isinstance(c, Derived) for name in c.reads}
        free = [i for i, p in enumerate(signature.params) if not p.is_tensor and p.name not in read]
        self._free = frozenset([*free, *(signature.params[i].name for i in free)])

    def key(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], target: Hashable, options: Mapping[str, Any] | None
    ) -> Hashable | None:
        """What a launch depends on; None if some argument needs a closer look."""
        try:
            if options:
                target = (target, *[(name, _describe(value)) for name, value in options.items()])
            named = [(name, self._described(name, value)) for name, value in kwargs.items()] if kwargs else ()
            if not self._free:
                return (target, *[(_DESCRIBE.get(type(value)) or _describe)(value) for value in args], *named)
            return (target, *[self._described(i, value) for i, value in enumerate(args)], *named)
        except (NeedsCloserLook, RuntimeError):  # a sparse tensor has no strides
            return None

    def _described(self, place: int | str, value: Any) -> Hashable:
        if place in self._free and type(value) in _NUMBERS:
            return type(value).__name__
        return _describe(value)

    def find(self, key: Hashable) -> Route | None:
        """The route of an earlier launch that is still valid."""
        route = self._routes.get(key)
        return route if route is not None and route.compiled.captured.up_to_date() else None

    def keep(self, key: Hashable, compiled: Compiled, bound: Bound, positional: int, named: Container[str]) -> None:
        """Remember a launch that went well, with the number of its positional arguments and the names of the others.

        Not if an array is in host memory: there the view is more than an address.
        """
        if any(array.host is not None for array in bound.arrays.values()):
            return
        steps = []
        for i, parameter in enumerate(self._params):
            place = i if i < positional else parameter.name if parameter.name in named else None
            argument = bound.arguments[parameter.name]
            if isinstance(argument, Array):
                view = {k: v for k, v in vars(argument).items() if k not in ("address", "owner")}
                steps.append(Step(parameter.name, place, view))
            elif isinstance(argument, int | float):
                steps.append(Step(parameter.name, place, dtype=parameter.dtype, number=argument))
        if len(self._routes) >= REMEMBERED:
            self._routes.clear()
        self._routes[key] = Route(compiled, tuple(steps), _again(compiled, bound))


def _again(compiled: Compiled, bound: Bound) -> Start | None:
    """The program's shorter way, see backend.LaunchesAgain, if all arrays are PyTorch's."""
    again: Any = getattr(compiled.program, "again", None)
    arguments = {n: a for n, a in bound.arguments.items() if a is not None}
    owners = [a.owner[1] if type(a.owner) is tuple else None for a in bound.arrays.values()]
    if again is None or not all(_DESCRIBE.get(type(owner)) is _describe_tensor for owner in owners):
        return None
    found: Start | None = again(arguments)
    return found
