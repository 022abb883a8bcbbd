"""Builds one-op kernels and small kernels for the reference's tests, and runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpwave.tiles.capture import capture
from warpwave.tiles.dtypes import BY_NUMPY, bool_, f32, i32, i64
from warpwave.tiles.ir import Block, Builder, Kernel, Value, verify
from warpwave.tiles.language import context, memory
from warpwave.tiles.language.handles import Tensor, Tile
from warpwave.tiles.reference import Estimate, execute, oracle
from warpwave.tiles.reference.formats import format_of
from warpwave.tiles.reference.running_error import Approx
from warpwave.tiles.types import TensorType, TileType, scalar


def op_kernel(op: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> tuple[Kernel, list[TileType]]:
    """A kernel that loads each array whole, applies `op`, and stores its result(s) to r0, r1, ..."""
    args = [Value(TensorType(BY_NUMPY[a.dtype], a.ndim), f"a{i}") for i, a in enumerate(arrays)]
    body = Block(list(args))
    builder = Builder(body)
    with context.capturing(builder):
        tiles = [_loaded(value, array) for value, array in zip(args, arrays, strict=True)]
        results = op(*tiles)
        results = results if isinstance(results, tuple) else (results,)
        for index, tile in enumerate(results):
            rank = max(tile.type.rank, 1)
            target = Value(TensorType(tile.dtype, rank), f"r{index}")
            body.args.append(target)
            memory.store(Tensor(target, f"r{index}"), (0,) * rank, tile, axes=tuple(range(tile.type.rank)))
    kernel = Kernel("op", [v.name for v in body.args], {}, body, None)
    verify(kernel)
    return kernel, [t.type for t in results]


def _loaded(value: Value, array: np.ndarray) -> Tile:
    type_ = TileType(BY_NUMPY[array.dtype], array.shape)
    return memory.load(Tensor(value, value.name or ""), (0,) * array.ndim, type_)


def _arguments(arrays: tuple[np.ndarray, ...], results: list[TileType]) -> dict[str, Any]:
    arguments: dict[str, Any] = {f"a{i}": a for i, a in enumerate(arrays)}
    for index, type_ in enumerate(results):
        arguments[f"r{index}"] = np.zeros(type_.shape or (1,), type_.dtype.numpy)
    return arguments


def evaluate(op: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """The result(s) of `op` on whole arrays as tiles, from the interpreter."""
    kernel, results = op_kernel(op, arrays)
    arguments = _arguments(arrays, results)
    execute(kernel, arguments)
    outputs = tuple(arguments[f"r{i}"].reshape(t.shape) for i, t in enumerate(results))
    return outputs if len(outputs) > 1 else outputs[0]


def judge(op: Callable[..., Any], *arrays: np.ndarray) -> tuple[Estimate, np.ndarray]:
    """The oracle's estimate of an op with one result, and the interpreter's result."""
    kernel, results = op_kernel(op, arrays)
    arguments = _arguments(arrays, results)
    estimate = oracle(kernel, arguments)["r0"]
    execute(kernel, arguments)
    return estimate, arguments["r0"]


def captured(function: Any, arguments: dict[str, Any], **constants: Any) -> Kernel:
    """The kernel for these arguments."""
    constants = {**(function.__kwdefaults__ or {}), **constants}
    return capture(function, {n: _type(a) for n, a in arguments.items()}, constants).kernel


def run(function: Any, arguments: dict[str, Any], **constants: Any) -> None:
    """Capture `function` and run it on `arguments`, outputs in place."""
    execute(captured(function, arguments, **constants), arguments)


def run_within(function: Any, arguments: dict[str, Any], exact: dict[str, np.ndarray], **constants: Any) -> None:
    """Run, and compare outputs with values computed apart, in float64, within the bounds of the contract."""
    kernel = captured(function, arguments, **constants)
    allowed = oracle(kernel, arguments)
    execute(kernel, arguments)
    for name, expected in exact.items():
        assert_within(arguments[name], expected, allowed[name].bound)


def assert_within(got: np.ndarray, exact: np.ndarray, bound: np.ndarray) -> None:
    """|got - exact| is within the oracle's bound, which does not count that `exact` is not rounded to the dtype."""
    rounding = np.abs(exact) * format_of(BY_NUMPY[got.dtype]).unit_roundoff
    error = np.abs(got.astype(np.float64) - exact)
    wrong = error > bound + rounding
    assert not wrong.any(), f"{wrong.sum()} of {got.size} beyond the bound"


def assert_softmax(got: np.ndarray, x: np.ndarray) -> None:
    """Rows of `got` are the softmax of rows of `x`, a sum's terms being added one by one."""
    powers = (Approx.of(x) - x.max(axis=1, keepdims=True)).exp()
    expected = powers / powers.sum(1, x.shape[1], keepdims=True)
    assert_within(got, expected.value, expected.error)


def _type(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return TensorType(BY_NUMPY[argument.dtype], argument.ndim)
    if isinstance(argument, bool):
        return scalar(bool_)
    if isinstance(argument, int):
        return scalar(i32 if i32.min <= argument <= i32.max else i64)
    return scalar(f32)


def bits(x: np.ndarray) -> np.ndarray:
    """The raw bits, with one code for every NaN."""
    raw = np.ascontiguousarray(x).view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])
    with np.errstate(invalid="ignore"):
        nan = np.isnan(x.astype(np.float64)) if x.dtype.kind not in "iub" else np.zeros(x.shape, bool)
    return np.where(nan, np.iinfo(raw.dtype).max, raw).reshape(x.shape)


def same_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    """Assert equality bit for bit, all NaN being one."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(bits(actual), bits(expected))
