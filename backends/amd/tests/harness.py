"""Builds kernels for both targets, runs them on the simulator in strict mode, and compares with the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.compilation import chosen
from warpwave.backends.amd.program import AmdProgram
from warpwave.tiles.dtypes import BY_NUMPY, DType
from warpwave.tiles.ir import Block, Builder, Kernel, Value, verify
from warpwave.tiles.language import context, control, memory
from warpwave.tiles.language.handles import Tensor, Tile
from warpwave.tiles.reference import execute, oracle
from warpwave.tiles.runtime.arrays import borrow
from warpwave.tiles.types import TensorType, TileType

BOTH = tuple(TARGETS)
Arguments = Mapping[str, Any]


def program(kernel: Kernel, target: str, **options: Any) -> AmdProgram:
    """The kernel built for one target."""
    return AmdProgram(kernel, TARGETS[target], chosen(kernel, TARGETS[target], options))


def launch(built: AmdProgram, arguments: Arguments, **simulation: Any) -> dict[str, np.ndarray]:
    """Outputs of a run on copies of the arguments, which keep their strides."""
    copies = {n: duplicate(a) for n, a in arguments.items()}
    wrapped = {n: borrow(a) if isinstance(a, np.ndarray) else a for n, a in copies.items()}
    built.simulate(wrapped, **simulation)
    return {n: copies[n] for n in built.kernel.outputs}


def duplicate(argument: Any) -> Any:
    """A copy of an array with the same strides and alignment, or the number itself."""
    if not isinstance(argument, np.ndarray) or 0 in argument.shape:
        return argument.copy() if isinstance(argument, np.ndarray) else argument
    low, high = np.lib.array_utils.byte_bounds(argument)
    origin = argument.__array_interface__["data"][0] - low
    raw = np.zeros(high - low + 15, np.uint8)
    start = (low - raw.ctypes.data) % 16
    view = np.ndarray(argument.shape, argument.dtype, raw, start + origin, argument.strides)
    view[...] = argument
    return view


def agree(
    kernel: Kernel, arguments: Arguments, targets: Sequence[str] = BOTH, relax: Sequence[str] = (), **options: Any
) -> None:
    """Every output on every target is within the oracle's bound; integers and bools are the reference's."""
    allowed = oracle(kernel, arguments)
    expected = {n: duplicate(a) for n, a in arguments.items()}
    execute(kernel, expected)
    for target in targets:
        for name, got in launch(program(kernel, target, **options), arguments, relax=relax).items():
            where = f"{name} on {target}"
            if got.dtype.kind in "ib":
                np.testing.assert_array_equal(got, expected[name], err_msg=where)
            else:
                assert_allowed(got, allowed[name], where)


def assert_allowed(got: np.ndarray, estimate: Any, where: str) -> None:
    """Within the bound."""
    bad = np.argwhere(~estimate.agrees(got))
    with np.errstate(invalid="ignore"):  # a signalling NaN
        value = got.astype(np.float64)
    assert not len(bad), f"{where}: {len(bad)} of {got.size} wrong, first at {_describe(bad[0], value, estimate)}"


def _describe(index: np.ndarray, value: np.ndarray, estimate: Any) -> str:
    at = tuple(int(i) for i in index)
    return f"{at}: got {value[at]!r}, expected {estimate.value[at]!r} within {estimate.bound[at]!r}"


# -- many ops in one kernel ----------------------------------------------------------------------------

Case = tuple[str, Callable[..., Tile]]


def ops_kernel(cases: Sequence[Case], dtypes: Sequence[DType], block: int) -> tuple[Kernel, dict[str, tuple[str, int]]]:
    """A kernel that applies each op to vectors of `block` elements of the arrays a0, a1, ...

    Results go to the rows of one output per dtype; also returned is the output and row of each case.
    """
    args = [Value(TensorType(dtype, 1), f"a{i}") for i, dtype in enumerate(dtypes)]
    body = Block(list(args))
    outputs: dict[DType, tuple[Value, int]] = {}
    places: dict[str, tuple[str, int]] = {}
    with context.capturing(Builder(body)):
        tensors = [Tensor(value, value.name or "") for value in args]
        i = control.grid(control.cdiv(tensors[0].shape[0], block))
        tiles = [memory.load(t, (i,), TileType(t.dtype, (block,))) for t in tensors]
        for name, op in cases:
            result = op(*tiles)
            out, row = outputs.get(result.dtype, (None, 0))
            if out is None:
                out = Value(TensorType(result.dtype, 2), f"r_{result.dtype.name}")
                body.args.append(out)
            memory.store(Tensor(out, out.name or ""), (row, i), result, axes=(1,))
            outputs[result.dtype] = out, row + 1
            places[name] = out.name or "", row
    kernel = Kernel("ops", [v.name or "" for v in body.args], {}, body, None)
    verify(kernel)
    return kernel, places


def agree_ops(
    cases: Sequence[Case], arrays: Sequence[np.ndarray], targets: Sequence[str] = BOTH, block: int = 64
) -> None:
    """Every op is as the contract allows on every element of the arrays, on every target."""
    kernel, places = ops_kernel(cases, [BY_NUMPY[a.dtype] for a in arrays], block)
    rows: dict[str, int] = {}
    for out, row in places.values():
        rows[out] = max(rows.get(out, 0), row + 1)
    arguments: dict[str, Any] = {f"a{i}": a for i, a in enumerate(arrays)}
    for value, name in zip(kernel.params, kernel.param_names, strict=True):
        if name in rows:
            arguments[name] = np.zeros((rows[name], arrays[0].size), value.tensor.dtype.numpy)
    agree_named(kernel, arguments, places, targets)


def agree_named(
    kernel: Kernel, arguments: Arguments, places: dict[str, tuple[str, int]], targets: Sequence[str]
) -> None:
    """As `agree`, with the name of the op that is wrong."""
    allowed = oracle(kernel, arguments)
    expected = {n: duplicate(a) for n, a in arguments.items()}
    execute(kernel, expected)
    for target in targets:
        got = launch(program(kernel, target), arguments)
        wrong = []
        for name, (out, row) in places.items():
            try:
                _compare_row(got[out][row], expected[out][row], allowed[out], row)
            except AssertionError as error:
                index = _first_difference(got[out][row], expected[out][row])
                inputs = [arguments[n][index] for n in arguments if n.startswith("a")]
                wrong.append(f"{name}{tuple(inputs)}: {str(error)[:200]}")
        assert not wrong, f"{target}: {len(wrong)} of {len(places)} ops are wrong\n" + "\n".join(wrong)


def _first_difference(got: np.ndarray, expected: np.ndarray) -> int:
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), expected.astype(np.float64)
        scale = np.abs(np.where(np.isfinite(a - b), a - b, np.inf))
    scale[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    return int(scale.argmax())


def _compare_row(got: np.ndarray, expected: np.ndarray, estimate: Any, row: int) -> None:
    if got.dtype.kind in "ib":
        np.testing.assert_array_equal(got, expected)
        return
    part = type(estimate)(estimate.value[row], estimate.bound[row])
    assert_allowed(got, part, "result")
    zero = (part.value == 0) & (part.bound == 0)
    with np.errstate(invalid="ignore"):
        signs = np.signbit(got.astype(np.float64)) == np.signbit(expected.astype(np.float64))
    assert signs[zero].all(), f"{np.count_nonzero(~signs & zero)} zeros have the wrong sign"
