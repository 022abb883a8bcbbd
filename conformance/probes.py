"""Small inputs on which targets are known, or feared, to differ; each runs on every side that needs no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import warpwave as ww
from warpwave.conformance import probe_kernels
from warpwave.conformance.contract import TARGETS, execute_as
from warpwave.conformance.instructions import run_instruction
from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.reference import execute
from warpwave.tiles.runtime.kernel import Kernel

Array = npt.NDArray[Any]
Bits = tuple[int, ...]

AMD = ("amd:gfx942", "amd:gfx950")
NVIDIA = ("nvidia:sm80", "nvidia:sm89", "nvidia:sm90a")
SIDES = ("reference", *AMD, *NVIDIA)


@dataclass(frozen=True)
class InstructionProbe:
    """One instruction on given register bits. `texts`: by target; those of NVIDIA are PTX, which a device must run.

    `agreed` are the bits that every side must give, if the ledger has no entry that says otherwise.
    """

    name: str
    op: str
    operands: tuple[tuple[int, ...], ...]
    texts: Mapping[str, str]
    agreed: Bits = ()

    def evaluate(self, side: str) -> Bits | None:
        """The result bits; None where this machine cannot know them."""
        if side not in AMD or side not in self.texts:
            return None
        return tuple(run_instruction(side.removeprefix("amd:"), self.texts[side], [list(o) for o in self.operands]))


@dataclass(frozen=True)
class KernelProbe:
    """One op as a kernel on given values; its result is the argument `out`.

    `modelled`: of a target without a simulator the bits are still known, as the op is exact or has a model.
    """

    name: str
    op: str
    dtype: DType
    kernel: Kernel
    arguments: Callable[[], dict[str, Any]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    modelled: bool = True

    def evaluate(self, side: str) -> Bits | None:
        """The result bits; None where this machine cannot know them, or the target refuses the op."""
        arguments = self.arguments()
        if side == "reference":
            execute(self._ir(arguments), arguments)
        elif side in AMD:
            if not self._ran(f"{side}:sim", arguments):
                return None
        elif self._is_modelled(side):
            execute_as(self._ir(arguments), arguments, side)
        else:
            return None
        return bits_of(arguments["out"])

    def _is_modelled(self, side: str) -> bool:
        operands = "tf32" if self.constants.get("precision") == "tf32" else self.dtype.name
        return self.modelled and (self.op != "mma" or operands in TARGETS[side].products)

    def _ir(self, arguments: dict[str, Any]) -> Any:
        return self.kernel.compile(**arguments, **self.constants, target="reference").ir

    def _ran(self, target: str, arguments: dict[str, Any]) -> bool:
        try:
            self.kernel.compile(**arguments, **self.constants, target=target).run(**arguments)
        except UnsupportedError:
            return False
        return True


Probe = InstructionProbe | KernelProbe


def bits_of(result: Array) -> Bits:
    """Raw bits, with the canonical NaN for every NaN: the contract does not define its bits."""
    flat = np.ascontiguousarray(result).reshape(-1)
    if flat.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            flat = np.where(np.isnan(flat.astype(np.float64)), np.array(np.nan, flat.dtype), flat)
    return tuple(int(x) for x in flat.view(f"u{flat.itemsize}"))


# -- kernels ------------------------------------------------------------------------------------------


def _products(name: str, dtype: DType, cases: list[tuple[list[float], list[float], float]], **constants: Any) -> Probe:
    """out[i] = c[i] + a[i] . b[i] for each case, by a matrix product."""

    def arguments() -> dict[str, Any]:
        depth = max(len(a) for a, _, _ in cases)
        a, b = np.zeros((2, len(cases), depth))
        for row, (left, right, _) in enumerate(cases):
            a[row, : len(left)], b[row, : len(right)] = left, right
        c = np.array([c for _, _, c in cases], np.float32)
        return {"a": a.astype(dtype.numpy), "b": b.astype(dtype.numpy), "c": c, "out": np.zeros_like(c)}

    return KernelProbe(name, "mma", dtype, probe_kernels.dot, arguments, constants)


def _elementwise(
    name: str, op: str, dtype: DType, *inputs: list[float], modelled: bool = True, **constants: Any
) -> Probe:
    """out = function(x, y, ...) elementwise; `result` is the dtype of the result."""
    result: DType = constants.pop("result", dtype)

    def arguments() -> dict[str, Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            given = [np.array(x).astype(dtype.numpy) for x in inputs]
        out = np.zeros(given[0].shape, result.numpy)
        return {**dict(zip("xyz", given, strict=False)), "out": out}

    kernel = (probe_kernels.unary, probe_kernels.binary)[len(inputs) - 1]
    return KernelProbe(name, op, dtype, kernel, arguments, {"op": constants.pop("function"), **constants}, modelled)


def _atomic_sums(name: str, dtype: DType, added: list[float], start: list[float], *, modelled: bool) -> Probe:
    """out = start + added + added by atomic additions."""

    def arguments() -> dict[str, Any]:
        return {"x": np.array(added).astype(dtype.numpy), "out": np.array(start).astype(dtype.numpy)}

    return KernelProbe(name, "atomic_add", dtype, probe_kernels.atomic_add, arguments, modelled=modelled)


INF, NAN, U = np.inf, np.nan, 2.0**-24
ROUNDINGS = [1.01953125, 1.00390625, 1.01171875, 3.4e38, 1e-40, -0.0, INF, NAN]
SPECIALS = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0**-149]
FP8_OVERFLOW = [1000.0, 448.0, 464.0, 465.0, -1000.0, INF, -INF, NAN, 1e6, 2.0**-12]
FNUZ = (ww.fp8e4m3fnuz, ww.fp8e5m2fnuz)
PAIRS = [(x, y) for x in SPECIALS for y in SPECIALS]
LEFT, RIGHT = [x for x, _ in PAIRS], [y for _, y in PAIRS]

KERNELS: tuple[Probe, ...] = (
    _products("mma-bf16-sum-cut", ww.bf16, [([1.5 * U], [1.0], 1.0), ([-1.5 * U], [1.0], -1.0), ([U], [1.0], 1.0)]),
    _products("mma-bf16-accumulator-rounded-down", ww.bf16, [([1.0], [1.0], -(2.0**-60))]),
    _products("mma-bf16-products-beyond-f32", ww.bf16, [([2.0**127, -(2.0**127)], [2.0, 2.0], 0.0)]),
    _products("mma-bf16-zero-beside-huge", ww.bf16, [([0.0, 1.0078125], [2.0**127, 1.0], 0.0)]),
    _products("mma-f16-sum-cut", ww.f16, [([1.5 * 2**-12], [2.0**-12], 1.0)]),
    _products("mma-f16-subnormal-hides", ww.f16, [([U, 1.5 * 2.0**-13], [2.0**15, 2.0**-11], 0.0)]),
    _products("mma-f16-groups", ww.f16, [([1.0] + [2.0**-12] * 15, [1.0] + [2.0**-13] * 15, 0.0)]),
    _products("mma-fp8-terms-cut", ww.fp8e4m3, [([1, 2**-6, 2**-6], [1, 2**-7, 2**-8], 0.0)]),
    _products("mma-fp8-accumulator-cut", ww.fp8e4m3, [([0.0], [0.0], 1 + 2.0**-20), ([1.0], [1.0], 1 + 2.0**-20)]),
    _products("mma-fp8-fnuz-groups", ww.fp8e4m3fnuz, [([1, 2**-6, 2**-6], [1, 2**-7, 2**-8], 2.0**-30)]),
    _products("mma-f32-exact", ww.f32, [([1 + 2.0**-12], [1 + 2.0**-12], -1.0)]),
    _products("mma-tf32-operands", ww.f32, [([1 + 2.0**-11], [1.0], 0.0)], precision="tf32"),
    _elementwise("exp2-subnormal", "exp2", ww.f32, [-126.0, -130.0, -149.0, 3.0], function=ww.exp2, modelled=False),
    _elementwise("divide-by-zero", "floordiv", ww.i32, [7, -7, 0], [0, 0, 0], function=probe_kernels.floordiv,
                 modelled=False),
    _elementwise("div-special", "div", ww.f32, LEFT, RIGHT, function=probe_kernels.div),
    _elementwise("sqrt-special", "sqrt", ww.f32, [*SPECIALS, 2.0**-130, 2.0], function=ww.sqrt),
    _elementwise("round-half", "round", ww.f32, [0.5, 1.5, 2.5, -0.5, -2.5, NAN, INF], function=ww.round),
    _elementwise("max-special", "max", ww.f32, LEFT, RIGHT, function=ww.maximum),
    _elementwise("min-special", "min", ww.f16, LEFT, RIGHT, function=ww.minimum),
    _elementwise("cast-bf16", "cast", ww.f32, ROUNDINGS, function=probe_kernels.cast_to(ww.bf16), result=ww.bf16),
    _elementwise("cast-f16", "cast", ww.f32, [*ROUNDINGS, 65519.9, 65520.0, 1e-7], result=ww.f16,
                 function=probe_kernels.cast_to(ww.f16)),
    *(_elementwise(f"cast-{t.name}-saturating", "cast", ww.f32, FP8_OVERFLOW, result=t,
                   function=probe_kernels.cast_to(t)) for t in (ww.fp8e4m3, ww.fp8e5m2, *FNUZ)),
    *(_elementwise(f"cast-{t.name}-overflowing", "cast", ww.f32, FP8_OVERFLOW, result=t,
                   function=probe_kernels.cast_to(t, saturate=False)) for t in (ww.fp8e4m3, ww.fp8e5m2)),
    _atomic_sums("atomic-add-subnormal", ww.f32, [2.0**-127, -(2.0**-140), 2.0**-127, 1.5 * 2.0**-126],
                 [0.0, 0.0, 2.0**-120, -(2.0**-125)], modelled=False),
    _elementwise("no-hidden-fma", "mul", ww.f32, [-0.25], [0.75], function=probe_kernels.scale_and_shift),
)  # fmt: skip


# -- instructions -------------------------------------------------------------------------------------


def _f32(*values: float) -> tuple[int, ...]:
    return tuple(int(np.float32(v).view(np.uint32)) for v in values)


def _both(text: str) -> dict[str, str]:
    return dict.fromkeys(AMD, text)


def _each(text: str) -> dict[str, str]:
    return dict.fromkeys(NVIDIA, text)


_CONVERTED = tuple(_f32(x, 0.0) for x in (448.0, 464.0, 465.0, 1000.0, -1000.0, INF, NAN, 240.0, -0.0))
INSTRUCTIONS: tuple[Probe, ...] = (
    InstructionProbe("cvt-f32-to-fp8", "cast", _CONVERTED, {
        **_both("v_cvt_pk_fp8_f32 v8, v2, v3"), "nvidia:sm89": "cvt.rn.satfinite.e4m3x2.f32 {d}, {b}, {a};",
        "nvidia:sm90a": "cvt.rn.satfinite.e4m3x2.f32 {d}, {b}, {a};"}),
    InstructionProbe("cvt-f32-to-bf8", "cast", tuple(_f32(x, 0.0) for x in (57344.0, 61440.0, 1e6, INF, NAN, -0.0)), {
        **_both("v_cvt_pk_bf8_f32 v8, v2, v3"), "nvidia:sm89": "cvt.rn.satfinite.e5m2x2.f32 {d}, {b}, {a};",
        "nvidia:sm90a": "cvt.rn.satfinite.e5m2x2.f32 {d}, {b}, {a};"}),
    InstructionProbe("cvt-fp8-to-f32", "cast", ((0x80,), (0x40,), (0x7F,), (0x7E,)), _both("v_cvt_f32_fp8_e32 v8, v2")),
    InstructionProbe("cvt-bf8-to-f32", "cast", ((0x80,), (0x40,), (0x7F,), (0x7C,)), _both("v_cvt_f32_bf8_e32 v8, v2")),
    InstructionProbe("exp2-subnormal-result", "exp2", tuple(_f32(x) for x in (-126.0, -130.0, -149.0)), {
        **_both("v_exp_f32_e32 v8, v2"), **_each("ex2.approx.f32 {d}, {a};")}),
    InstructionProbe("log2-subnormal", "log2", tuple(_f32(x) for x in (2.0**-149, 2.0**-130)), {
        **_both("v_log_f32_e32 v8, v2"), **_each("lg2.approx.f32 {d}, {a};")}),
    InstructionProbe("rcp-subnormal-result", "rcp", tuple(_f32(x) for x in (2.0**127, -(2.0**127), 2.0**126)), {
        **_both("v_rcp_f32_e32 v8, v2"), **_each("rcp.approx.f32 {d}, {a};")}),
    InstructionProbe("rsqrt-subnormal", "rsqrt", tuple(_f32(x) for x in (2.0**-130, 2.0**-148)), {
        **_both("v_rsq_f32_e32 v8, v2"), **_each("rsqrt.approx.f32 {d}, {a};")}),
    InstructionProbe("sqrt-subnormal", "sqrt", tuple(_f32(x) for x in (2.0**-130, 2.0**-148)), {
        **_both("v_sqrt_f32_e32 v8, v2"), **_each("sqrt.approx.f32 {d}, {a};")}),
    InstructionProbe("max-signalling-nan", "max", ((0x7FA00000, 0x3F800000), (0x3F800000, 0x7FA00000)), {
        **_both("v_max_f32_e32 v8, v2, v3"), **_each("max.f32 {d}, {a}, {b};")}),
    InstructionProbe("max-quiet-nan", "max", ((0x7FC00001, 0x3F800000), (0x3F800000, 0x7FC00001)), {
        **_both("v_max_f32_e32 v8, v2, v3"), **_each("max.f32 {d}, {a}, {b};")}, _f32(1.0, 1.0)),
    InstructionProbe("maximum-nan-bits", "max", ((0x7FC00001, 0x3F800000), (0x3F800000, 0x7FA00000)), {
        "amd:gfx950": "v_maximum3_f32 v8, v2, v3, v3", **_each("max.NaN.f32 {d}, {a}, {b};")}),
    InstructionProbe("add-nan-bits", "add", ((0x7F800000, 0xFF800000), (0x7FA00001, 0), (0xFFC12345, 0)), {
        **_both("v_add_f32_e32 v8, v2, v3"), **_each("add.rn.f32 {d}, {a}, {b};")}),
    InstructionProbe("cvt-f32-to-bf16-nan", "cast", (_f32(NAN, 0.0), _f32(1.01953125, 0.0)), {
        "amd:gfx950": "v_cvt_pk_bf16_f32 v8, v2, v3", **_each("cvt.rn.bf16x2.f32 {d}, {b}, {a};")}),
    InstructionProbe("cvt-f32-to-f16-nan", "cast", (_f32(NAN), _f32(65520.0)), {
        **_both("v_cvt_f16_f32_e32 v8, v2"), **_each("cvt.rn.f16.f32 {d}, {a};")}),
    InstructionProbe("cvt-f32-to-i32", "cast", tuple(_f32(x) for x in (3e9, -3e9, NAN, 2.5)), {
        **_both("v_cvt_i32_f32_e32 v8, v2"), **_each("cvt.rzi.s32.f32 {d}, {a};")}, (0x7FFFFFFF, 0x80000000, 0, 2)),
    InstructionProbe("round-half-even", "round", tuple(_f32(x) for x in (0.5, 1.5, 2.5, -0.5, -2.5)), {
        **_both("v_rndne_f32_e32 v8, v2"), **_each("cvt.rni.f32.f32 {d}, {a};")}, _f32(0.0, 2.0, 2.0, -0.0, -2.0)),
)  # fmt: skip

PROBES: dict[str, Probe] = {probe.name: probe for probe in (*KERNELS, *INSTRUCTIONS)}
