"""How accurate each function must be: the one table of the contract's allowances.

`ulps` are units in the last place of the f32 result; on f16 and bf16 the function is evaluated in f32 under
the same allowance and then rounded. The basic operations (+ - * / fma sqrt) are correctly rounded and have
no entry. Every function is exact where its argument is 0 or infinite.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowance:
    """Largest error in ulps of the f32 result, plus `argument_ulps` in ulps of the f32 argument.

    The latter is for x * Phi(x), where the usual formulas compute 1 + erf or 1 + tanh, which cancels for
    negative x. `floor` is a lower bound that no implementation may cross.
    """

    ulps: float
    argument_ulps: float = 0.0
    floor: float = float("-inf")


ACCURACY: dict[str, Allowance] = {
    "exp": Allowance(2, floor=0.0),
    "exp2": Allowance(2, floor=0.0),
    "log": Allowance(2),
    "log2": Allowance(2),
    "rsqrt": Allowance(2),
    "rcp": Allowance(2),
    "tanh": Allowance(4),
    "sigmoid": Allowance(4, floor=0.0),
    "erf": Allowance(4),
    "gelu": Allowance(4, argument_ulps=2),
    "gelu_tanh": Allowance(4, argument_ulps=2),
    "silu": Allowance(4),
}

# Each addition inside a sum or a matrix product may lose this many units of roundoff of its format: 2 because
# some matrix units truncate or round down (arXiv 2511.10909).
ADDITION_ROUNDOFFS = 2.0

# Relative error of an operand of a matrix product with precision="tf32": 10 fraction bits, truncated or rounded.
TF32_ERROR = 2.0**-10
