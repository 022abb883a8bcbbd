"""Matches a launch's arguments with a kernel's parameters, and checks all that can be wrong with them."""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.errors import LaunchError, TileError, TileTypeError, TileValueError
from warpwave.tiles.runtime.arrays import Array, borrow, is_array, may_overlap_itself
from warpwave.tiles.runtime.signature import REQUIRED, Parameter, Signature, place
from warpwave.tiles.runtime.spec import ArraySpec, ScalarSpec
from warpwave.tiles.types import TensorType, Type, scalar

MAX_RANK = 4
MAX_EXTENT = 2**31 - 1  # extents are i32 in a kernel; strides and offsets are 64-bit

Argument = Array | ArraySpec | ScalarSpec | int | float | bool | None


@dataclass(frozen=True)
class Bound:
    """Arguments by parameter name in parameter order, their types (None: absent), explicit constants."""

    arguments: dict[str, Argument]
    types: dict[str, Type | None]
    constants: dict[str, Any]

    @property
    def tensors(self) -> dict[str, Argument]:
        """The arguments that are no numbers."""
        return {n: a for n, a in self.arguments.items() if not isinstance(a, int | float)}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arguments that are arrays with data."""
        return {n: a for n, a in self.arguments.items() if isinstance(a, Array)}


class Binder:
    """Binds arguments for one kernel; all errors name the kernel and point at its parameter."""

    def __init__(self, function: types.FunctionType, signature: Signature) -> None:
        self.function = function
        self.signature = signature

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """Arguments given as arrays, specs, numbers or None; everything else by keyword is a constant."""
        given, constants = self._match(args, kwargs)
        arguments: dict[str, Argument] = {}
        found: dict[str, Type | None] = {}
        for parameter in self.signature.params:
            try:
                value = given.get(parameter.name, parameter.default)
                arguments[parameter.name], found[parameter.name] = _argument(parameter, value)
            except TileError as error:
                self._stamp(error, parameter.name)
                raise
        return Bound(arguments, found, constants)

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        params, constants = self.signature.params, self.signature.constants
        if len(args) > len(params):
            self._fail(
                TileTypeError,
                f" takes {len(params)} argument(s), got {len(args)}",
                hint=f"constants are given by name: {', '.join(f'{c}=...' for c in constants)}" if constants else None,
            )
        given = {p.name: a for p, a in zip(params, args, strict=False)}
        chosen: dict[str, Any] = {}
        names = {p.name for p in params}
        for name, value in kwargs.items():
            if name in given:
                self._fail(TileTypeError, f": got argument {name!r} twice", name)
            if name not in names and name not in constants:
                near = difflib.get_close_matches(name, [*names, *constants], 1)
                hint = f"did you mean {near[0]}?" if near else f"its constants are {', '.join(constants) or 'none'}"
                self._fail(TileTypeError, f" has no parameter or constant {name!r}", hint=hint)
            (given if name in names else chosen)[name] = value
        missing = [p for p in params if p.name not in given and p.default is REQUIRED]
        if missing:
            names_of = ", ".join(f"{p.name}: {p}" for p in missing)
            self._fail(TileTypeError, f" is missing the argument(s) {names_of}", missing[0].name)
        return given, chosen

    def device(self, bound: Bound) -> str | None:
        """The device that all arrays are on, None if there are none; LaunchError if they differ."""
        devices = {name: array.device for name, array in bound.arrays.items()}
        if len(set(devices.values())) > 1:
            where = ", ".join(f"{name} on {device}" for name, device in devices.items())
            self._fail(LaunchError, f": its arrays are on different devices: {where}", hint="move them to one device")
        return next(iter(devices.values()), None)

    def launchable(self, bound: Bound, outputs: list[str]) -> dict[str, Array | int | float | bool]:
        """The arguments of a launch, checked: all with data, outputs writable and without self-overlap."""
        self.device(bound)
        ready: dict[str, Array | int | float | bool] = {}
        for name, value in bound.arguments.items():
            if isinstance(value, ArraySpec | ScalarSpec):
                self._fail(
                    TileTypeError,
                    f": argument {name!r} is {value}, a description without data",
                    name,
                    "run with arrays",
                )
            if value is not None:
                ready[name] = value
        for name in outputs:
            self._check_output(name, ready[name])
        return ready

    def _check_output(self, name: str, array: Any) -> None:
        if not array.writable:
            self._fail(
                TileValueError,
                f": argument {name!r} is written by the kernel, but this array is read-only",
                name,
                "pass a writable array, for instance a copy",
            )
        if may_overlap_itself(array.shape, array.strides):
            self._fail(
                TileValueError,
                f": argument {name!r} is written by the kernel, but elements of {array} with strides "
                f"{list(array.strides)} share memory",
                name,
                "pass an array without broadcast or overlapping dimensions",
            )

    def _fail(
        self, kind: type[TileError], message: str, parameter: str | None = None, hint: str | None = None
    ) -> NoReturn:
        raise kind(f"{self._name}{message}", loc=place(self.function, parameter), hint=hint)

    @property
    def _name(self) -> str:
        return f"kernel {self.function.__name__}"

    def _stamp(self, error: TileError, parameter: str) -> None:
        error.message = f"{self._name}: argument {parameter!r}: {error.message}"
        error.loc = error.loc or place(self.function, parameter)


def _argument(parameter: Parameter, value: Any) -> tuple[Argument, Type | None]:
    if value is None:
        if not parameter.optional:
            raise TileTypeError(
                f"expected {parameter}, got None", hint="only `gl[...] | None` parameters may be absent"
            )
        return None, None
    if parameter.is_tensor:
        return _tensor(parameter, value)
    return _scalar(parameter, value)


def _tensor(parameter: Parameter, value: Any) -> tuple[Argument, Type]:
    if isinstance(value, str):
        raise TileTypeError(
            f"expected {parameter}, got the text {value!r}", hint=f"describe data with ww.spec({value!r})"
        )
    if not is_array(value) and not isinstance(value, ArraySpec):
        raise TileTypeError(f"expected {parameter}, got {type(value).__name__}", hint="pass an array or ww.spec(...)")
    array = value if isinstance(value, ArraySpec) else borrow(value)
    if parameter.dtype is not None and array.dtype != parameter.dtype:
        raise TileTypeError(
            f"expected {parameter}, got {array}",
            hint=f"convert it to {parameter.dtype}, or annotate {parameter.name}: gl to take any dtype",
        )
    rank = len(array.shape)
    if not 1 <= rank <= MAX_RANK:
        raise TileTypeError(f"expected 1 to {MAX_RANK} dimensions, got {rank}: {array}", hint="reshape it")
    for extent in array.shape:
        if extent is not None and extent > MAX_EXTENT:
            raise TileValueError(
                f"an extent of {extent} is beyond {MAX_EXTENT}",
                hint="reshape it: offsets may pass 2^31, extents not",
            )
    return array, TensorType(array.dtype, rank)


def _scalar(parameter: Parameter, value: Any) -> tuple[Argument, Type]:
    dtype = parameter.dtype
    assert dtype is not None
    if isinstance(value, ScalarSpec):
        if value.dtype != dtype:
            raise TileTypeError(f"expected {dtype}, got {value}")
        return (value if value.value is None else value.value), scalar(dtype)
    return number(dtype, value), scalar(dtype)


_F32_MAX = float(f32.max)
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (int, float, np.integer, np.floating),
}


def number(dtype: DType, value: Any) -> int | float | bool:
    """A scalar argument as the parameter's dtype holds it; an error if it does not."""
    if dtype is f32 and type(value) is float and -_F32_MAX <= value <= _F32_MAX:  # the common case, in half the time
        return float(np.float32(value))
    wrong = not isinstance(value, _ACCEPTED[dtype.kind]) or (
        dtype.kind != "bool" and isinstance(value, bool | np.bool_)
    )
    if wrong:
        raise TileTypeError(f"expected a number of {dtype}, got {type(value).__name__} {value!r}")
    if dtype.is_int and not dtype.min <= value <= dtype.max:
        raise TileValueError(f"{value} does not fit {dtype} ({dtype.min} to {dtype.max})")
    if dtype == f32:
        if math.isfinite(value) and abs(value) > f32.max:
            raise TileValueError(f"{value} does not fit {dtype}")
        return float(np.float32(value))  # rounded here, so that every backend sees the same number
    return bool(value) if dtype.kind == "bool" else int(value)


def describe(found: Mapping[str, Type | None]) -> str:
    """Argument types as text, e.g. "a: gl<bf16, 2d>, bias: None"."""
    return ", ".join(f"{name}: {type_}" for name, type_ in found.items())
