"""What each target may lose: its Numerics, derived from how its units add and from its functions' accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warpwave.conformance.models.depth_orders import lowered_with_orders
from warpwave.conformance.models.execution import execute
from warpwave.tiles.ir import Kernel
from warpwave.tiles.reference import CONTRACT, Allowance, Estimate, Numerics, oracle
from warpwave.tiles.reference.accuracy import ACCURACY

FLOATS = frozenset({"f16", "bf16", "fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"})
# An fp8 product on a tensor core: both the accumulator and the terms below the largest are cut at 13 fraction
# bits, and so is the sum; see docs/contract.md.
FP8_LOSS = 2.0**-12


@dataclass(frozen=True)
class Target:
    """One target's arithmetic.

    `products` names the model of the matrix instruction that the backend uses for operands of a dtype.
    """

    name: str
    numerics: Numerics
    products: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def _allowances(**ulps: float) -> dict[str, Allowance]:
    """The contract's allowances, tightened to these figures."""
    return {**ACCURACY, **{name: replace(ACCURACY[name], ulps=figure) for name, figure in ulps.items()}}


# In float64 with one rounding at the end: half a ulp, and what NumPy's own functions lose.
_ROUNDED_ONCE = {name: replace(a, ulps=0.5 + 2.0**-20, argument_ulps=0.0) for name, a in ACCURACY.items()}
_REFERENCE = Numerics(functions=_ROUNDED_ONCE, addition_roundoffs=2.0**-26, atomics_flush=False)
# LLVM's FeatureMemoryAtomicFAddF32DenormalSupport, which gfx940 and later have: atomic additions keep subnormals.
_AMD = Numerics(functions=_allowances(exp2=1), unnormalised=FLOATS, atomics_flush=False)
_NVIDIA = Numerics(unnormalised=FLOATS)  # red.global.add.f32 flushes subnormals: PTX ISA; so does an H200
_NVIDIA_FP8 = replace(_NVIDIA, product_losses={"fp8e4m3": FP8_LOSS, "fp8e5m2": FP8_LOSS})


def _products(instruction: str, *dtypes: str) -> dict[str, str]:
    return dict.fromkeys(dtypes, instruction)


_OCP, _FNUZ = ("fp8e4m3", "fp8e5m2"), ("fp8e4m3fnuz", "fp8e5m2fnuz")
_AMD_SOURCE = "MMA-Sim's CDNA3 model; v_exp_f32 by the ISA; never measured"
TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("reference", _REFERENCE, source="float64, rounded once"),
        Target("amd:gfx942", _AMD, _products("cdna3 mfma", "f16", "bf16", "f32", *_FNUZ, *_OCP), _AMD_SOURCE),
        Target(
            "amd:gfx950", _AMD, _products("cdna4 mfma", "f16", "bf16", "f32", *_OCP, *_FNUZ), f"{_AMD_SOURCE}; assumed"
        ),
        Target("nvidia:sm80", _NVIDIA, _products("ampere mma", "f16", "bf16", "tf32"), "MMA-Sim's Ampere model"),
        Target("nvidia:sm89", _NVIDIA_FP8, _products("ada mma", "f16", "bf16", "tf32", *_OCP), "MMA-Sim's Ada model"),
        Target(
            "nvidia:sm90a",
            _NVIDIA_FP8,
            _products("hopper wgmma", "f16", "bf16", "tf32", *_OCP),
            "bits read from an H200",
        ),
    )
}


def base_name(target: str) -> str:
    """A target's name without `:sim`."""
    return target.removesuffix(":sim")


def numerics_of(target: str) -> Numerics:
    """What a target may lose; one that is not listed is held to the general contract."""
    known = TARGETS.get(base_name(target))
    return known.numerics if known else CONTRACT


def allowed(kernel: Kernel, arguments: Mapping[str, Any], target: str = "any") -> dict[str, Estimate]:
    """What each output may hold on `target`; the arguments stay as they are."""
    return oracle(kernel, arguments, numerics=numerics_of(target))


def execute_as(kernel: Kernel, arguments: Mapping[str, Any], target: str) -> None:
    """Execute on NumPy arrays, outputs in place, with the bits that the target's matrix instructions give."""
    known = TARGETS.get(base_name(target))
    if known is None or not known.products:
        execute(kernel, arguments, {})
        return
    lowered, orders = lowered_with_orders(kernel, known.name.removeprefix("amd:"))
    execute(lowered, arguments, known.products, orders)
