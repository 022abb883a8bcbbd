"""Bounds of whole computations in closed form, for comparisons on a device: arrays of any library will do.

Only arithmetic and `abs` are used. A derivation stands with each; gamma(n, v) is Higham's n v / (1 - n v).
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.reference.accumulation import addition_loss
from warpwave.tiles.reference.accuracy import CONTRACT, Numerics
from warpwave.tiles.reference.formats import format_of
from warpwave.tiles.reference.running_error import OWN, gamma


def rounded_bound(exact: Any, error: Any, out: DType) -> Any:
    """An error before a result is rounded to its dtype, and after it."""
    fmt = format_of(out)
    return error + fmt.unit_roundoff * (abs(exact) + error) + fmt.tiny / 2


def product_bound(exact: Any, size: Any, depth: int, operand: DType, out: DType, numerics: Numerics = CONTRACT) -> Any:
    """The contract's bound of a matrix product: `size` is the product of the operands' magnitudes."""
    usual = addition_loss(f32, numerics.addition_roundoffs)
    return rounded_bound(exact, gamma(depth, numerics.product_losses.get(operand.name, usual) + OWN) * size, out)


def attention_bound(
    exact: Any,
    average: Any,
    score: Any,
    *,
    width: int,
    keys: int,
    tile: int,
    dtype: DType,
    numerics: Numerics = CONTRACT,
) -> Any:
    """The contract's bound of attention in tiles of keys, operands and result in `dtype`.

    `average` is the weighted mean of |v|, `score` the largest of a row's scaled products of magnitudes. A score loses
    gamma(width, L) of `score`; scaling, the subtraction of a maximum and the differences of maxima six roundoffs more
    (together, as all fall the same way). A power is rescaled with every tile, by a power of 2. All of this enters
    twice, in the numerator and in the sum of the weights.
    """
    u, loss = format_of(f32).unit_roundoff, addition_loss(f32, numerics.addition_roundoffs)
    tiles = -(-keys // tile)
    exponent = (gamma(width, loss) + 6 * u) * score
    weight = exponent * (1 + exponent) + tiles * (2 * numerics.functions["exp2"].ulps + 1) * u
    sums = gamma(keys, loss) + gamma(tile + tiles, loss)
    relative = 2 * weight + sums + format_of(dtype).unit_roundoff + 2 * u
    return rounded_bound(exact, relative * (1 + relative) * average, dtype)
