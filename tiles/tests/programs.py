"""Programs that run twice: as plain Python on NumPy stand-ins of a few ops, and captured on the reference.

A program's parameters are taken by name: `n` an i32 scalar, `x` an f32 scalar, `a` i32[8], `f` f32[8] and `t`
f32[4, 4] are inputs, `out` f32[32] and `tout` f32[4, 4] are outputs.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.capture import Captured, capture
from warpwave.tiles.dtypes import f32, i32
from warpwave.tiles.errors import CaptureError, TileError
from warpwave.tiles.reference import execute
from warpwave.tiles.types import TensorType, scalar

PARAMETERS = {
    "n": scalar(i32),
    "x": scalar(f32),
    "a": TensorType(i32, 1),
    "f": TensorType(f32, 1),
    "t": TensorType(f32, 2),
    "out": TensorType(f32, 1),
    "tout": TensorType(f32, 2),
}
Program = Callable[..., None]


# -- the stand-ins ------------------------------------------------------------------------------------


class Tile(np.ndarray):
    """An array that, like a tile, is never changed in place: `t += 1` makes a new one."""

    def _not_in_place(self, _: Any) -> Any:
        return NotImplemented

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _not_in_place


def _tile(array: Any) -> Any:
    return np.asarray(array, np.float32).view(Tile) if np.ndim(array) else array


def _load(src: Any, coord: Any, type_: Any = None) -> Any:
    if type_ is not None:
        return _tile(src.copy())
    value = src[coord] if 0 <= coord < len(src) else src.dtype.type(0)
    return int(value) if src.dtype == np.int32 else value


def _store(dst: Any, coord: Any, value: Any) -> None:
    if isinstance(coord, tuple):
        dst[...] = value
    elif 0 <= coord < len(dst):
        dst[coord] = value


def _check(condition: Any, message: str = "") -> None:
    if not condition:
        raise AssertionError(message)


SHADOW = types.SimpleNamespace(
    load=_load,
    store=_store,
    check=_check,
    range=range,
    pipeline=lambda *args, stages=None: range(*args),
    zeros=lambda type_: _tile(np.zeros(type_.shape)),
    full=lambda type_, value: _tile(np.full(type_.shape, value)),
    where=lambda c, a, b: _tile(np.where(c, a, b)) if np.ndim(c) else (a if c else b),
    max=lambda t, axis=None: np.float32(t.max()),
    sum=lambda t, axis=None: np.float32(t.sum()),
    maximum=lambda a, b: _tile(np.maximum(a, b)),
    cast=lambda v, dtype: np.float32(v) if dtype == f32 else int(v),
    cdiv=ww.cdiv,
    barrier=lambda: None,
)


@contextmanager
def _shadowed(program: Program) -> Iterator[None]:
    namespace = program.__globals__
    real, namespace["ww"] = namespace["ww"], SHADOW
    try:
        yield
    finally:
        namespace["ww"] = real


# -- registering and running ------------------------------------------------------------------------


def registry() -> tuple[list[Program], Callable[[Program], Program]]:
    """A list of programs and the decorator that adds to it."""
    programs: list[Program] = []

    def agrees(program: Program) -> Program:
        programs.append(program)
        return program

    return programs, agrees


def refusals() -> tuple[list[Any], Callable[..., Callable[[Program], Program]]]:
    """A list of test cases for `check_refusal` and the decorator that adds to it."""
    cases: list[Any] = []

    def refused(reason: str, hint: str | None = None) -> Callable[[Program], Program]:
        def register(program: Program) -> Program:
            cases.append(pytest.param(program, reason, hint, id=program.__name__))
            return program

        return register

    return cases, refused


def arguments(program: Program, n: int, x: float) -> dict[str, Any]:
    """Fresh arguments for one run."""
    made = {
        "n": n,
        "x": np.float32(x),
        "a": np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int32),
        "f": np.array([0.5, -1.5, 2.0, 0.25, -0.0, 3.0, 1.0, -4.0], np.float32),
        "t": np.arange(16, dtype=np.float32).reshape(4, 4) - 6,
        "out": np.full(32, -99, np.float32),
        "tout": np.full((4, 4), -99, np.float32),
    }
    return {name: made[name] for name in inspect.signature(program).parameters if name in made}


def captured(program: Program, **constants: Any) -> Captured:
    """The program's IR."""
    params = {name: PARAMETERS[name] for name in inspect.signature(program).parameters if name in PARAMETERS}
    return capture(program, params, constants)


def outputs(arguments: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: arguments[name] for name in ("out", "tout") if name in arguments}


def check_agreement(
    program: Program, ns: tuple[int, ...] = (-1, 0, 1, 2, 3, 7), xs: tuple[float, ...] = (1.5, -2.0)
) -> None:
    """The captured program gives Python's answer, bit for bit, for all these arguments."""
    kernel = captured(program).kernel
    for n in ns:
        for x in xs if "x" in inspect.signature(program).parameters else xs[:1]:
            expected, actual = arguments(program, n, x), arguments(program, n, x)
            with _shadowed(program), np.errstate(all="ignore"):
                program(**expected)
            execute(kernel, actual)
            for name, array in outputs(actual).items():
                message = f"{name} for n={n}, x={x}\n{kernel}"
                np.testing.assert_array_equal(array, expected[name], err_msg=message, strict=True)
                np.testing.assert_array_equal(np.signbit(array), np.signbit(expected[name]), err_msg=message)


def check_refusal(program: Program, reason: str, hint: str | None) -> CaptureError:
    """The program is refused at the line marked `# here`, with reason, way out and a caret."""
    lines, first = inspect.getsourcelines(program)
    marked = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
    with pytest.raises(TileError, match=reason) as caught:
        captured(program)
    error = caught.value
    assert isinstance(error, TileError)
    assert error.loc is not None
    assert [error.loc.line] == marked, str(error)
    assert error.loc.file == inspect.getsourcefile(program)
    assert "^" in str(error)
    if hint is not None:
        assert error.hint is not None, str(error)
        assert hint in error.hint
    return error
