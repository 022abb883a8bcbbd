"""How accurate each function must be: the one table of the contract's allowances.

`ulps` are units in the last place of the f32 result; on f16 and bf16 the function is evaluated in f32 under
the same allowance and then rounded. The basic operations (+ - * / fma sqrt) are correctly rounded and have
no entry. Every function is exact where its argument is 0 or infinite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Allowance:
    """Largest error in ulps of the f32 result, plus `argument_ulps` in ulps of the f32 argument.

    The latter is for x * Phi(x), where the usual formulas compute 1 + erf or 1 + tanh, which cancels for
    negative x. `floor` is a lower bound that no implementation may cross. With `flushes`, a result below the
    smallest normal f32 may be 0 instead: the fast instruction may do so, and scaling around it costs four more.
    """

    ulps: float
    argument_ulps: float = 0.0
    floor: float = float("-inf")
    flushes: bool = False


ACCURACY: dict[str, Allowance] = {
    "exp": Allowance(2, floor=0.0),
    "exp2": Allowance(2.1, floor=0.0, flushes=True),
    "log": Allowance(2),
    "log2": Allowance(2),
    "rsqrt": Allowance(2),
    "rcp": Allowance(2),
    "tanh": Allowance(4),
    "sigmoid": Allowance(7, floor=0.0),
    "erf": Allowance(4),
    "gelu": Allowance(4, argument_ulps=2),
    "gelu_tanh": Allowance(4, argument_ulps=2),
    "silu": Allowance(8),
}


@dataclass(frozen=True)
class Numerics:
    """What the results of one target may lose; the default is the contract that holds for all.

    Each addition inside a sum or a matrix product may lose `addition_roundoffs` units of roundoff of f32: 2,
    because matrix units may truncate (round-down groups, truncated aligned terms: arXiv 2511.10909). A target
    that accumulates products of a format in fewer bits says what an addition loses, relative to the largest
    term, in `product_losses` by dtype name. If it aligns subnormal operands of a format as if they had the
    smallest normal's exponent, `unnormalised` names the format. `tf32_error` is the relative error of an operand
    with precision="tf32": 10 fraction bits, truncated or rounded. `atomics_flush`: atomic additions in f32 take
    subnormal operands, and give subnormal results, as 0.
    """

    functions: Mapping[str, Allowance] = field(default_factory=lambda: ACCURACY)
    addition_roundoffs: float = 2.0
    product_losses: Mapping[str, float] = field(default_factory=dict)
    unnormalised: frozenset[str] = frozenset()
    tf32_error: float = 2.0**-10
    atomics_flush: bool = True


CONTRACT = Numerics()
