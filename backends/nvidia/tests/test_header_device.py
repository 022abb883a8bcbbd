"""The headers on a GPU against numpy: `pytest -m gpu backends/nvidia/tests/test_header_device.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from warpwave.backends.nvidia.tests.device_driver import At, Map
from warpwave.backends.nvidia.tests.device_kernels import SOURCES, needs_device, run_kernel
from warpwave.tiles.reference import Estimate
from warpwave.tiles.reference.accumulation import addition_loss
from warpwave.tiles.reference.accuracy import ACCURACY

pytestmark = [pytest.mark.gpu, needs_device]
Array = npt.NDArray[Any]
RNG = np.random.default_rng(5)


def launch(source: str, kernel: str, shape: tuple[int, ...], *inputs: Array, threads: int, grid: int = 1) -> Array:
    out = np.full(shape, np.nan, np.float32)
    return run_kernel(source, kernel, [out, *inputs], threads=threads, grid=grid)[0]


def rounded(x: Array, dtype: Any) -> Array:
    return np.asarray(x, np.float64).astype(dtype).astype(np.float64)


# -- registers ---------------------------------------------------------------------------------------------

A, B = RNG.standard_normal((64, 32)).astype(np.float32), RNG.standard_normal((64, 32)).astype(np.float32)
R, C = np.indices((64, 32))
BLOCKS = A.astype(np.float64).reshape(4, 16, 32)
V, H = B.max(1, keepdims=True).astype(np.float64), 1.0 + np.arange(32.0)[None]


def _by_block(values: Array) -> Array:
    """One row for each warp's 16 rows."""
    return np.repeat(values.reshape(4, -1), 16, axis=0) * np.ones((1, 32))


def maps() -> dict[str, Any]:
    a, b = A.astype(np.float64), B.astype(np.float64)
    ones = np.ones_like(a)
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "div": a / b, "max": np.maximum(a, b), "min": np.minimum(a, b),
        "add_scalar": a + 2.5, "abs": abs(a), "relu": np.maximum(a, 0), "exp": np.exp(a), "exp2": np.exp2(a),
        "log": np.log(abs(a)), "log2": np.log2(abs(a)), "zero": 0 * ones, "one": ones, "neg_infty": -np.inf * ones,
        "pos_infty": np.inf * ones, "row_max": V * ones, "add_row": a + V, "sub_row": a - V, "mul_row": a * V,
        "div_row": a / V, "broadcast_col": H * ones, "add_col": a + H, "sub_col": a - H, "mul_col": a * H,
        "div_col": a / H, "fma_row": a * V + b, "row_min": a.min(1, keepdims=True) * ones,
        "row_sum": a.sum(1, keepdims=True) * ones, "row_sum_more": (a + b).sum(1, keepdims=True) * ones,
        "row_prod": a.prod(1, keepdims=True) * ones, "axis_max": a.max(1, keepdims=True) * ones,
        "col_sum": _by_block(BLOCKS.sum(1)), "col_max": _by_block(BLOCKS.max(1)),
        "tril": np.where(C <= R + 3, a, -1), "triu": np.where(C >= R - 5, a, 0), "apply": a + 100 * R + C,
        "right_fill": np.where(C < 21, a, 9), "left_fill": np.where(C >= 9, a, 9),
        "upper_fill": np.where(R >= 19, a, 9), "lower_fill": np.where(R < 50, a, 9),
        "upper_right_fill": np.where((R < 30) & (C >= 20), 9, a), "make_causal": np.where(C <= R, a, -7),
        "make_causal_t": np.where(C >= R, a, -7), "total": _by_block(BLOCKS.sum((1, 2))),
        "largest": _by_block(BLOCKS.max((1, 2))),
    }  # fmt: skip


# Sums and products: how many operations, and the size of the terms, of which each operation may lose two roundoffs.
PARTS = {
    "row_sum": (31, abs(A).sum(1, keepdims=True)), "row_sum_more": (63, (abs(A) + abs(B)).sum(1, keepdims=True)),
    "col_sum": (15, _by_block(abs(BLOCKS).sum(1))), "total": (511, _by_block(abs(BLOCKS).sum((1, 2)))),
    "row_prod": (31, abs(A.astype(np.float64)).prod(1, keepdims=True)), "apply": (2, abs(A) + 100 * R + C),
}  # fmt: skip


def bound(name: str, want: Array, parts: dict[str, tuple[int, Array]]) -> Array:
    """What the contract allows around a result: nothing where the operation is rounded once."""
    if name in ("log", "log2"):  # lg2.approx as in ThunderKittens, with the error that the PTX ISA states
        return 2.0**-22 * np.maximum(1, abs(want)) + np.spacing(abs(want).astype(np.float32))
    if name in ACCURACY:
        return ACCURACY[name].ulps * np.spacing(abs(want).astype(np.float32)).astype(np.float64)
    operations, size = parts.get(name, (0, np.zeros(1)))
    return np.broadcast_to(operations * addition_loss() * size, want.shape)


def check(
    source: str, kernel: str, got: Array, want: dict[str, Any], parts: dict[str, tuple[int, Array]] | None = None
) -> None:
    cases = SOURCES[source].cases(kernel)
    assert sorted(cases) == sorted(want)
    wrong = []
    for name, plane in zip(cases, got, strict=True):
        exact = np.broadcast_to(np.asarray(want[name], np.float64), plane.shape)
        expected = exact.astype(np.float32)
        estimate = Estimate(expected.astype(np.float64), bound(name, exact, parts or {}))
        bad = ~estimate.agrees(plane)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            wrong.append(f"{name}: {bad.sum()} of {bad.size}, first at {at}: {plane[at]} for {expected[at]}")
    assert not wrong, "\n".join(wrong)


def test_maps_and_reductions() -> None:
    count = len(SOURCES["registers"].cases("maps"))
    got = launch("registers", "maps", (count, 64, 32), A, B, threads=128)
    check("registers", "maps", got, maps(), PARTS)


def test_maps_of_16_bit_tiles_round_once() -> None:
    want: dict[str, Any] = {}
    parts: dict[str, tuple[int, Array]] = {}
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("half", np.float16)):
        a, b = rounded(A, dtype), rounded(B, dtype)
        values = {"copy": a, "add": a + b, "mul": a * b, "div": (a / b).astype(np.float32), "max": np.maximum(a, b)}
        want.update({f"{name}_{op}": rounded(x, dtype) for op, x in values.items()})
        want[f"{name}_row_sum"] = total = a.sum(1, keepdims=True)
        unit = float(ml_dtypes.finfo(dtype).eps)  # an f32 sum, then rounded: half a unit, and what the sum lost
        lost = 31 * addition_loss() * abs(a).sum(1, keepdims=True)
        parts[f"{name}_row_sum"] = 1, (unit / 2 * (abs(total) + lost) + lost) / addition_loss()
    got = launch("registers", "small", (12, 64, 32), A, B, threads=128)
    check("registers", "small", got, want, parts)


def test_tiles_through_shared_and_global_memory() -> None:
    a = A.astype(np.float64)
    bf, half = rounded(A, ml_dtypes.bfloat16), rounded(A, np.float16)
    part = np.where((R < 50) & (C < 28), A.reshape(-1)[np.minimum(R * 28 + C, 2047)], 0)
    want = {
        "st_fl": a, "st_plain": a, "st_bf": bf, "st_hf": half, "columns_bf": bf, "columns_bf_doubled": 2 * bf,
        "columns_fl": a, "columns_fl_doubled": 2 * a, "copied": a, "copied_async": part, "explicit_swizzle": bf,
        "registers_of_global": a,
    }  # fmt: skip
    got = launch("registers", "shared_tiles", (len(want), 64, 32), A, threads=128)
    check("registers", "shared_tiles", got, want)


def test_layouts_and_conversions() -> None:
    x = (A[:32] * 100).astype(np.float32)
    bf = rounded(x, ml_dtypes.bfloat16)

    def saturated(values: Array, dtype: Any) -> Array:
        largest = float(ml_dtypes.finfo(dtype).max)
        return rounded(np.clip(values, -largest, largest), dtype)

    e4, e5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    want = {
        "swap_layout": bf, "swap_back": bf, "transpose": bf.T, "transpose_inplace": bf, "lower_half": None,
        "e4m3": saturated(x, e4), "e5m2": saturated(x, e5), "e4m3_direct": saturated(x, e4),
        "e4m3_of_bf16": saturated(bf, e4), "col_layout_row_sum": x.astype(np.float64).sum(1, keepdims=True),
        "col_layout_col_max": x.max(0, keepdims=True),
    }  # fmt: skip
    got = launch("registers", "layouts", (len(want), 32, 32), x, threads=32)
    half = SOURCES["registers"].cases("layouts").index("lower_half")
    np.testing.assert_array_equal(got[half][:16], bf[16:])
    want["lower_half"] = got[half]
    check("registers", "layouts", got, want, {"col_layout_row_sum": (31, abs(x).sum(1, keepdims=True))})


def test_vectors() -> None:
    v = A.reshape(-1)[:48]
    got = launch("registers", "vectors", (9, 64), v, threads=32)
    for plane in got:
        np.testing.assert_array_equal(plane[:48], v)
        assert abs(plane[48] - v.sum(dtype=np.float64)) <= 47 * addition_loss() * abs(v).sum()
        assert plane[49] == v.max()
        assert plane[50] == rounded(v, ml_dtypes.bfloat16).min()


# -- products ------------------------------------------------------------------------------------------------


def operands(form: str, a: Array, b: Array) -> Array:
    left = a.T if form.startswith("At") else a
    right = b.T if form.endswith("Bt") else b
    return left @ right


def test_warp_products() -> None:
    a, b = RNG.integers(-4, 5, (32, 32)).astype(np.float32), RNG.integers(-4, 5, (32, 32)).astype(np.float32)
    cases = SOURCES["registers"].cases("warp_products")
    got = launch("registers", "warp_products", (len(cases), 32, 32), a, b, threads=32)
    for name, plane in zip(cases, got, strict=True):
        form = name.rsplit("_", 1)[1]
        right = b[:16] if form.endswith("Bt") else b[:, :16]
        want = operands(form, a, right) + b[:, :16]
        np.testing.assert_array_equal(plane[:, :16], want, err_msg=name)


def warpgroup_kernels() -> list[str]:
    """Names that the macros of products.cu make: format, form, N, K."""
    names = []
    for line in SOURCES["products"].text().splitlines():
        macro, _, rest = line.partition("(")
        words = rest.rstrip(")").split(", ")
        if macro == "ALL_FORMS":
            names += [f"{words[0]}_{form}_{words[2]}_{words[3]}" for form in ("AB", "ABt", "AtB", "AtBt")]
        elif macro == "REGISTER_FORMS":
            names += [f"r_{words[0]}_{form}_{words[2]}_{words[3]}" for form in ("AB", "ABt")]
        elif macro == "PRODUCT":
            names.append("_".join((words[0], words[4], words[7], words[8])))
    return [*names, "windows_AB_64_64"]


@pytest.mark.parametrize("name", warpgroup_kernels())
def test_warpgroup_products(name: str) -> None:
    form, n, k = name.split("_")[-3], *map(int, name.split("_")[-2:])
    reach = 100 if "s8" in name else 4
    a = RNG.integers(-reach, reach + 1, (k, 64) if form.startswith("At") else (64, k)).astype(np.float32)
    b = RNG.integers(-reach, reach + 1, (n, k) if form.endswith("Bt") else (k, n)).astype(np.float32)
    got = launch("products", name, (64, n), a, b, threads=128)
    np.testing.assert_array_equal(got, 2 * operands(form, a, b))


def test_every_n() -> None:
    a, b = RNG.integers(-4, 5, (64, 64)).astype(np.float32), RNG.integers(-4, 5, (256, 64)).astype(np.float32)
    got = launch("products", "every_n", (32, 64, 256), a, b, threads=128, grid=32)
    for i, plane in enumerate(got):
        np.testing.assert_array_equal(plane[:, : 8 * i + 8], (a @ b.T)[:, : 8 * i + 8], err_msg=f"N = {8 * i + 8}")


# -- transfers -----------------------------------------------------------------------------------------------


def bf16_bits(x: Array) -> Array:
    return np.asarray(x, ml_dtypes.bfloat16).view(np.uint16)


def window(x: Array, row: int, col: int, rows: int, cols: int) -> Array:
    padded = np.zeros((row + rows, col + cols), x.dtype)
    clipped = x[: row + rows, : col + cols]
    padded[: clipped.shape[0], : clipped.shape[1]] = clipped
    return padded[row:, col:]


def run_transfer(
    kernel: str, out: tuple[int, ...], arrays: Sequence[Array], *parameters: Any, threads: int = 128, grid: int = 1
) -> list[Array]:
    """The result, then the arrays; the parameters follow the result's address, and arrays count from 1."""
    result = np.full(out, np.nan, np.float32)
    return run_kernel("transfers", kernel, [result, *arrays], At(0), *parameters, threads=threads, grid=grid)


def test_panels_are_bounded_on_all_sides() -> None:
    x = RNG.integers(-100, 100, (100, 200)).astype(np.float32)
    maps = [Map(i, "bf16", (200, 100), (400,), (64, 64), 128) for i in (1, 2)]
    got, _, target = run_transfer("panels", (64, 128), [bf16_bits(x), np.zeros((100, 200), np.uint16)], *maps)
    np.testing.assert_array_equal(got, window(x, 70, 160, 64, 128))
    want = np.zeros((100, 200), np.uint16)
    want[70:, 160:] = bf16_bits(x)[70:, 160:]
    np.testing.assert_array_equal(target, want)


def test_maps_of_five_axes() -> None:
    x = RNG.integers(-100, 100, (3, 128, 256)).astype(np.float32)
    dims, strides = (64, 128, 4, 3, 1), (512, 128, 512 * 128, 512 * 128 * 3)
    maps = [Map(i, "bf16", dims, strides, (64, 64, 2, 1, 1), 128) for i in (1, 2)]
    got, _, target = run_transfer("five_axes", (64, 128), [bf16_bits(x), np.zeros(x.shape, np.uint16)], *maps)
    np.testing.assert_array_equal(got, x[2, 64:, 128:])
    np.testing.assert_array_equal(target[0, 64:, 128:], bf16_bits(x)[2, 64:, 128:])


def test_additions() -> None:
    tensor = Map(1, "f32", (48, 80), (192,), (32, 64), 128)
    _, target = run_transfer("additions", (1,), [np.zeros((80, 48), np.float32)], tensor, tensor, grid=7)
    want = np.zeros((80, 48))
    want[8:72, 16:] = sum(range(1, 8))
    np.testing.assert_array_equal(target, want)


def test_a_ring_of_stages() -> None:
    x = RNG.integers(-100, 100, (512, 64)).astype(np.float32)
    tensor = Map(1, "bf16", (64, 512), (128,), (64, 64), 128)
    got = run_transfer("ring", (64, 64), [bf16_bits(x)], tensor, tensor, threads=160)[0]
    np.testing.assert_array_equal(got, x.reshape(8, 64, 64).sum(0))


def test_multicast_in_a_cluster() -> None:
    x = RNG.integers(-100, 100, (64, 128)).astype(np.float32)
    tensor = Map(1, "bf16", (128, 64), (256,), (64, 64), 128)
    got = run_transfer("multicast", (2, 2, 64, 64), [bf16_bits(x)], tensor, tensor, grid=2)[0]
    for block in got:
        np.testing.assert_array_equal(np.concatenate(list(block), axis=1), x)


def test_bytes_barriers_and_register_budgets() -> None:
    x = RNG.standard_normal(256).astype(np.float32)
    got = run_transfer("bytes", (256,), [x], At(1), At(1), threads=256)[0]
    np.testing.assert_array_equal(got[:128], 2 * x[:128])
    np.testing.assert_array_equal(got[128:], 2 * x[:128] + x[128:])
