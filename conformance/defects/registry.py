"""The list of seeded defects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from warpwave.backends.amd import arguments, simulation
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.simulation import Simulation
from warpwave.conformance.defects import rewrites as r
from warpwave.conformance.defects.defect import Defect, Edit, Patch, Rewrite
from warpwave.tiles.simt import reduce

GFX950 = ("amd:gfx950:sim",)


def _ir(name: str, what: str, likely: str, rewrite: Rewrite) -> Defect:
    return Defect(name, what, tuple(likely.split()), rewrite=rewrite)


def _code(name: str, what: str, likely: str, *edits: tuple[str, str], targets: tuple[str, ...] = ()) -> Defect:
    chosen = targets or ("amd:gfx942:sim",)
    return Defect(name, what, tuple(likely.split()), source=tuple(Edit(*e) for e in edits), targets=chosen)


def _asm(name: str, what: str, likely: str, *edits: tuple[str, str], targets: tuple[str, ...] = ()) -> Defect:
    chosen = targets or ("amd:gfx942:sim",)
    return Defect(name, what, tuple(likely.split()), assembly=tuple(Edit(*e) for e in edits), targets=chosen)


def _host(name: str, what: str, likely: str, owner: Any, attribute: str, make: Callable[[Any], Any]) -> Defect:
    return Defect(name, what, tuple(likely.split()), patches=(Patch(owner, attribute, make),))


def _last_block_lost(launch: Any) -> Any:
    def wrong(self: Simulation, given: Any, geometry: Any, *rest: Any, **how: Any) -> Any:
        fewer = max(geometry.blocks - 1, 1)
        return launch(self, given, replace(geometry, blocks=fewer), *rest, **how)

    return wrong


def _strides_ignored(parameters: Any) -> Any:
    def wrong(argument: Any, type_: Any, memory: Any) -> list[Any]:
        packed: list[Any] = parameters(argument, type_, memory)
        shape = getattr(argument, "shape", ())
        for axis in range(len(shape)):
            below = 1
            for extent in shape[axis + 1 :]:
                below *= extent
            packed[2 + axis] = type(packed[2 + axis])(below)
        return packed

    return wrong


def _extent_grown(parameters: Any) -> Any:
    def wrong(argument: Any, type_: Any, memory: Any) -> list[Any]:
        packed: list[Any] = parameters(argument, type_, memory)
        if getattr(argument, "shape", ()):
            packed[-1] = type(packed[-1])(packed[-1] + 1)
        return packed

    return wrong


def _toggled(flag: Any) -> bool:
    return not flag


TRANSLATION = (
    _ir("comparison-off-by-one", "< where <= is meant: masks and windows lose an element", "ops:comparisons",
        r.renamed(le="lt", ge="gt")),
    _ir("comparison-includes-equal", "<= where < is meant", "ops:comparisons", r.renamed(lt="le", gt="ge")),
    _ir("select-swapped", "the branches of where exchanged", "ops:arithmetic", r.swapped("select", 1, 2)),
    _ir("scan-not-exclusive", "an exclusive running sum includes its element", "ops:scans",
        r.with_attrs("cumsum", exclusive=lambda _: False)),
    _ir("scan-from-the-wrong-end", "a running sum in the other direction", "ops:scans",
        r.with_attrs("cumsum", reverse=_toggled)),
    _ir("cast-truncates", "conversions cut instead of rounding to nearest even", "ops:casts:f32",
        r.with_attrs("cast", rounding=lambda x: "rtz" if x == "rne" else x)),
    _ir("cast-ties-away", "ties of conversions go away from zero", "ops:casts:f32",
        r.with_attrs("cast", rounding=lambda x: "rta" if x == "rne" else x)),
    _ir("cast-overflows", "a saturating conversion overflows instead", "ops:casts",
        r.with_attrs("cast", saturate=lambda _: False)),
    _ir("reduction-drops-nan", "a maximum along rows ignores NaN", "ops:rows ops:columns",
        r.with_attrs("reduce_max reduce_min", nan=lambda _: "ignore")),
    _ir("reduction-keeps-nan", "a reduction that should ignore NaN propagates it", "ops:rows",
        r.with_attrs("reduce_max reduce_min", nan=lambda _: "propagate")),
    _ir("max-for-min", "row minima computed as maxima", "ops:rows", r.renamed(reduce_min="reduce_max")),
    _ir("operand-transposed", "a square operand of a product read the wrong way round", "kernel:attention",
        r.each("mma", r.transpose_flipped)),
    _ir("accumulator-lost", "a product starts from 0 at each step", "ops:products kernel:gemm",
        r.each("mma", r.accumulator_lost)),
    _ir("stale-accumulator", "a loop keeps its first carried tile as it was", "kernel:gemm program",
        r.each("for", r.stale_carry)),
    _ir("products-in-bf16", "f32 operands silently rounded to bf16", "ops:products:f32",
        r.each("mma", r.operands_shortened)),
    _ir("last-trip-lost", "the last trip of every loop left out", "kernel:gemm program",
        r.each("for", r.trip_lost(1, -1))),
    _ir("first-trip-lost", "the first trip of every loop left out", "kernel:gemm program",
        r.each("for", r.trip_lost(0, 1))),
    _ir("branches-swapped", "an if takes the other branch", "program", r.each("if", r.branches_swapped)),
    _ir("window-off-by-one", "a slice begins one element off", "ops:moves", r.each("slice", r.window_moved)),
    _ir("concat-order", "parts joined in the wrong order", "ops:moves", r.swapped("concat", 0, 1)),
    _ir("interleave-order", "even and odd elements exchanged", "ops:moves", r.swapped("interleave", 0, 1)),
    _ir("deinterleave-order", "even and odd results exchanged", "ops:moves kernel:rotary",
        r.each("deinterleave", r.results_swapped)),
    _ir("fill-ignored", "masked loads give 0 instead of their fill", "ops:loads",
        r.each("load", r.fill_ignored)),
    _ir("quotient-by-reciprocal", "division as a product with the reciprocal", "ops:arithmetic",
        r.each("div", r.quotient_by_reciprocal)),
    _ir("sum-of-short-terms", "terms of f32 sums rounded to bf16", "ops:rows:f32 kernel:layernorm",
        r.each("reduce_sum", r.sum_in_short_format)),
    _ir("hidden-fma", "a product and a sum fused", "ops:arithmetic", r.each("add", r.fused)),
    _ir("addition-lost", "an atomic addition overwrites", "program", r.each("atomic_add", r.not_added)),
    _ir("random-transposed", "random numbers by column and row", "ops:random",
        r.swapped("random_bits", 2, 3)),
    _ir("random-seed-for-offset", "seed and offset of random numbers exchanged", "ops:random",
        r.swapped("random_bits", 0, 1)),
    _ir("indices-from-one", "element indices begin at 1: masks are shifted", "ops:random",
        r.each("iota", r.counted_from_one)),
)  # fmt: skip

FUNCTIONS = (
    _code("max-drops-nan", "the elementwise maximum ignores NaN", "ops:arithmetic",
          (r"(float maximum\(.*?)__builtin_elementwise_maximum\(", r"\1__builtin_elementwise_maximumnum(")),
    _code("truncated-bf16", "f32 to bf16 drops the low half", "ops:casts:f32 ops:arithmetic:bf16",
          (r"\(__bf16\)x", "bits<__bf16>((u16)(bits<u32>(x) >> 16))")),
    _code("half-away", "round() goes away from zero at a half", "ops:rounding",
          (r"__builtin_rintf", "__builtin_roundf")),
    _code("fp8-ties-away", "conversions to fp8 round ties up", "ops:casts",
          (r"rest == half && \(kept & 1\)", "rest == half")),
    _code("fp8-nan-saturates", "NaN becomes the largest fp8", "ops:casts",
          (r"if \(magnitude > 0x7f800000\) return [^;]*;",
           "if (magnitude > 0x7f800000) return sign << F::sign_bit | F::largest;")),
    _code("fnuz-bias", "fp8 FNUZ read with the bias of OCP", "ops:casts:fp8e4m3fnuz",
          (r"format<4, 3, 8,", "format<4, 3, 7,")),
    _code("fnuz-negative-zero", "the byte 0x80 of FNUZ read as -0", "ops:casts:fp8e4m3fnuz ops:nan:fp8e4m3fnuz",
          (r'if \(F::fnuz && code == F::nan\) return __builtin_nanf\(""\);',
           "if (F::fnuz && code == F::nan) return -0.0f;")),
    _code("fp8-subnormals-flushed", "subnormal fp8 read as 0", "ops:casts:fp8e4m3",
          (r"field \? normal : subnormal", "field ? normal : 0.0f")),
    _code("integer-overflow", "a float beyond the range of an integer gives the other end", "ops:casts",
          (r"if \(whole >= -\(float\)least\) return largest;", "if (whole >= -(float)least) return least;")),
    _code("infinity-kept", "a saturating cast to f32 keeps infinities", "ops:casts:f32",
          (r"return Saturate && __builtin_fabsf\(x\) > largest [^;]*;", "return x;")),
    _host("zero-minus-negates", "0 - x is -x, also for x = 0", "ops:arithmetic:f32", AmdLowering, "hidden",
          lambda _: lambda self, text: text),
    _host("sum-from-plus-zero", "a sum begins with +0, so that one of -0 alone is +0", "ops:arithmetic:f32", reduce,
          "literal", lambda literal: lambda value, dtype: literal(value + 0 if value == 0 else value, dtype)),
    _code("division-truncates", "// of negative integers rounds to zero", "ops:integers",
          (r" - \(r != 0 && \(r < 0\) != \(d < 0\)\)", "")),
    _code("remainder-sign", "% of negative integers keeps the dividend's sign", "ops:integers",
          (r"\(r < 0\) != \(d < 0\) \? r \+ d : r", "false ? r + d : r")),
    _code("fast-exp", "exp as exp2 of a rounded product", "ops:functions",
          (r"return __builtin_expf\(x\);", "return __builtin_amdgcn_exp2f(x * 0x1.715476p+0f);")),
    _code("fast-log", "log as a scaled v_log_f32, wrong near 1 and for subnormals", "ops:functions",
          (r"return __builtin_logf\(x\);", "return __builtin_amdgcn_logf(x) * 0x1.62e43p-1f;")),
    _code("approximate-root", "sqrt by v_sqrt_f32", "ops:functions",
          (r"return __builtin_sqrtf\(x\);", "return __builtin_amdgcn_sqrtf(x);")),
    _code("rsqrt-of-subnormals", "rsqrt takes a subnormal for 0", "ops:functions",
          (r"bool tiny = [^;]*;", "bool tiny = false;")),
    _code("tanh-saturates-early", "tanh is 1 from 4 on", "ops:functions",
          (r"return a < 0\.6f \? near", "if (a > 4.0f) return a / x;\n  return a < 0.6f ? near")),
    _code("gelu-by-tanh", "gelu in its tanh form", "ops:functions",
          (r"DEVICE float gelu_\(float x\) \{[^}]*\}",
           "DEVICE float gelu_tanh_(float x);\nDEVICE float gelu_(float x) { return gelu_tanh_(x); }")),
    _code("nine-rounds", "Philox with nine rounds", "ops:random",
          (r"EACH\(round, 10\)", "EACH(round, 9)")),
)  # fmt: skip

LANES = (
    _code("lane-map-2", "reductions meet the wrong lane at distance 2", "ops:rows", (r"dpp<0x4e>", "dpp<0xb1>")),
    _code("lane-map-8", "reductions meet the wrong lane at distance 8", "ops:rows", (r"dpp<0x128>", "dpp<0x124>")),
    _code("lane-map-32", "reductions across halves of a wave meet the wrong lane", "ops:columns ops:rows",
          (r"lane_id\(\) \^ Mask", "lane_id() ^ (Mask >> 1)")),
    _code("lane-map-32-swap", "reductions across halves of a wave take one of them twice", "ops:columns ops:rows",
          (r"(permlane32_swap\(bits<u32>\(x\), .*?)\(u32\)r\[1\]", r"\1(u32)r[0]"), targets=GFX950),
    _code("lane-map-32-select", "moves across halves of a wave keep their own value", "ops:columns:i64 ops:rows:i64",
          (r"lane_id\(\) & 32 \? r\[0\] : r\[1\]", "lane_id() & 32 ? r[1] : r[0]"), targets=GFX950),
    _code("mfma-operands-swapped", "the operands of a matrix instruction exchanged", "ops:products kernel:gemm",
          (r"\((b\w*\[n\])\)(.*?)\((a\w*\[m\])\)", r"(\3)\2(\1)")),
    _code("mfma-formats-swapped", "e5m2 bytes multiplied as e4m3", "ops:products:fp8e5m2",
          (r"_bf8_bf8\(", "_fp8_fp8("), (r", 1, 1, 0, 0, 0, 0\)", ", 0, 0, 0, 0, 0, 0)"), targets=GFX950),
)  # fmt: skip

MEMORY = (
    _code("load-mask-dropped", "loads do not look at the tensor's extent", "ops:loads",
          (r"if \(inside\) x = ", "x = ")),
    _code("fill-of-scalar-loads", "masked element loads leave 0", "ops:loads",
          (r"T x = fill;", "T x{};")),
    _code("lost-update", "an atomic addition is a load and a store", "program",
          (r"__scoped_atomic_fetch_add\(\(T \*\)p, x, [^;]*;", "*p = *p + x;")),
    _code("atomic-clobbers-neighbour", "a 16-bit atomic addition zeroes its neighbour", "program",
          (r"\(old & ~\(0xffffu << shift\)\) \| ", "")),
    _code("barrier-removed", "waves do not wait for each other's LDS writes", "kernel:attention kernel:gemm",
          (r'asm volatile\("s_waitcnt lgkmcnt\(0\)\\n\\ts_barrier" ::: "memory"\)',
           r'asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory")')),
    _asm("wait-removed", "no wait for loads from memory", "ops:arithmetic", (r"^\ts_waitcnt vmcnt\(0\)$", "")),
    _asm("lds-wait-removed", "no wait for LDS before a barrier", "kernel:attention kernel:gemm",
         (r"s_waitcnt lgkmcnt\(0\)(\n\s*s_barrier)", r"\1")),
    _code("direct-load-wait-removed", "a stage is used before its direct loads have landed", "kernel:gemm program",
          (r"s_waitcnt vmcnt\(%0\) lgkmcnt\(0\)", "s_waitcnt vmcnt(63) lgkmcnt(0)"), targets=GFX950),
    _asm("subnormals-flushed", "kernels run with f32 subnormals flushed", "ops:arithmetic:f32",
         (r"\.amdhsa_float_denorm_mode_32 3", ".amdhsa_float_denorm_mode_32 0")),
)  # fmt: skip

LAUNCH = (
    _code("block-order-not-a-bijection", "some blocks run twice, others not at all", "ops:loads",
          (r"\(xcd < extra \? xcd : extra\)", "0")),
    _code("trip-count-one-short", "a pipeline's trip count is one too small", "ops:products:i8 kernel:gemm",
          (r"distance \+ stride - 1\) / stride", "distance - 1) / stride")),
    _host("last-block-lost", "one block too few is launched", "ops:loads", Simulation, "launch", _last_block_lost),
    _host("strides-ignored", "arrays taken for contiguous", "program", simulation, "_parameters", _strides_ignored),
    _host("extent-off-by-one", "a tensor believed to have one more column", "ops:loads", simulation, "_parameters",
          _extent_grown),
    _host("alignment-ignored", "wide accesses whatever the alignment", "program", arguments, "has_wide_rows",
          lambda _: lambda array, tile: bool(array.shape)),
)  # fmt: skip

DEFECTS: tuple[Defect, ...] = (*TRANSLATION, *FUNCTIONS, *LANES, *MEMORY, *LAUNCH)
