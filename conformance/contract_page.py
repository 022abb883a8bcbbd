"""`python -m warpwave.conformance.contract_page` prints docs/contract.md: the numerics contract, from its tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from warpwave.conformance.clauses import CLAUSES, Clause, dtypes_of
from warpwave.conformance.contract import TARGETS, Target
from warpwave.conformance.figures import FIGURES, Figure
from warpwave.conformance.models import MODELS, Model
from warpwave.conformance.models.matrix_core import FusedChain, MatrixCore
from warpwave.conformance.models.tensor_core import TensorCore
from warpwave.tiles.ir.opdefs import OPS
from warpwave.tiles.reference.accuracy import ACCURACY
from warpwave.tiles.reference.functions import FLOAT

HEAD = """# The numerics contract

What it means that two targets agree. Generated from the tables in `conformance/` and `tiles/reference/accuracy.py`
by `python -m warpwave.conformance.contract_page > docs/contract.md`; a test keeps it fresh, and another fails if an
op or a dtype has no clause here. Every comparison in the project uses this contract; none has a tolerance of its
own. Kernels of the language are compared with the oracle's bound; compiled kernels of other sources, and a kernel's
formula written anew, by running error analysis with the same allowances (`tiles/reference/running_error.py`); results
on a device by closed forms of it (`closed_forms.py` there). `tests/test_tolerances.py` finds numbers that are written
down as a tolerance and lists what is no comparison of results: statistics, measured rates, figures of models. Only
`warpwave check --reference`, which evaluates a user's own expression, allows some roundings beside the bound
(`--rtol`).

## Levels

| level | what it says of a result |
|---|---|
| bit-exact | the bits that the target's arithmetic model gives (`contract.execute_as`), any NaN being one NaN |
| within contract | every element is within the bound that the float64 oracle carries through the whole program |
| unknown | nothing can be said: the oracle could not decide a run-time condition, or the bound is infinite |
| violation | some element is outside its bound, or a NaN, an infinity or an exact zero's sign is wrong |

Two targets' results may differ by the sum of their two bounds. The bound of a program comes from running-error
analysis: each value carries the interval that its operations allow, for these inputs (`tiles/reference/oracle.py`).

## Clauses

`u` = 2^-24, the roundoff of f32; `L` = 2u on every target but for the formats listed under Matrix products;
`gamma(n, L)` = nL / (1 - nL). A sum whose terms are multiples of one unit and short enough for f32 is exact.

| ops | dtypes | bits | result | why |
|---|---|---|---|---|
"""

SPECIALS = """
## Special values

| rule | everywhere |
|---|---|
| NaN | one NaN: sign and payload are not defined. Comparisons with NaN are false, except `ne`. |
| max, min | NaN propagates, or is skipped with `nan="ignore"`; -0 is below +0 |
| infinity | as IEEE 754; a sum of infinities of both signs is NaN; an infinite bound is reported as unknown |
| signed zero | kept by every exact op; an exact zero must have the right sign, a zero within a bound may have either |
| subnormals | kept, but below 2^-126 `exp2` may give 0, and atomic f32 additions may take and give it |
| casts to floats | rounded once in the named rounding; overflow to infinity, or to NaN where the format has none |
| saturation | default of casts to fp8 and to integers: infinities become the largest value, NaN stays NaN, or 0 |
| contraction | `a * b + c` is two roundings; `ww.fma` is one |
| fp8 | OCP and FNUZ are different formats: the same byte is another number; FNUZ has one zero, and NaN is 0x80 |

Functions at special arguments, by the oracle:

"""

PRODUCTS = """
## Matrix products

Products are exact; what differs is how units add. The models in `conformance/models/` are bit-exact: those of
Hopper equal what an H200 gave, the others are the published ones (MMA-Sim, arXiv 2511.10909). A tensor core aligns
all terms of a group and the accumulator to the largest exponent, cuts each to the bits kept, adds, and cuts the
sum. CDNA3 aligns and cuts the products of a group, then rounds their sum (31 bits) and the accumulator (24 bits)
down, adds, and rounds to nearest even. f32 operands on AMD are a chain of fused multiply-adds. What is said of
CDNA4 is assumed from CDNA3.

"""

DERIVATION = """
Why `L` covers them (tested on hostile numbers, `conformance/tests/test_bounds.py`):

- Cut at F bits below the largest exponent, a term loses less than 2^-F of the largest term; the largest itself
  loses nothing if its significand fits (f16, bf16 products and f32 accumulators do for F >= 24).
- Tensor core, group of G: at most G * 2^-F by alignment (F = 24 or 25), 2u by cutting the sum: 2u for each of G
  additions if G >= 2. For one product, alignment loses less than u and cutting at most one ulp: the f32 result is
  one that a loss of 2u and rounding to nearest could give, which is what the oracle admits.
- fp8 on Hopper and Ada: F = 13 and the sum is cut to 13 bits: an f32 accumulator loses 2^-13 too, so `L` = 2^-12.
- CDNA3, group of G: G * u by alignment, u by the accumulator, u by the final rounding, 2^-31 by the sum: (G + 2) /
  G <= 2u for each addition if G >= 2; one product is exact and the accumulator and the rounding lose u each. fp8
  adds two groups' floors of u each, and drops an accumulator below 2^-25 of the products, which loses less than u.
- A subnormal operand is aligned as if it had the smallest normal's exponent, so it hides what is far below that:
  the oracle counts it as no smaller than the smallest normal. (A subnormal f16 times 2^15 loses 2^-23 where the
  product is only 2^-9.)
- A product with a zero factor takes no part in the alignment. Published models let it; an H200 showed that it does
  not. On CDNA3 this is not known: few outputs would differ, all with a zero beside a huge factor
  (`conformance/tests/test_models.py` records how many).
- precision="tf32": an operand is cut or rounded to 10 fraction bits, a relative error of at most 2^-10; without it, f32
  operands are multiplied in full on every target.
"""

FUNCTIONS = """
## Functions

Ulps are of the exact result's binade in f32 (a correctly rounded function scores 0.5). The contract holds for all
targets; a lowering is legal only if what it uses is within it. Figures with a source say what is known of the
instruction or library function; those of the H200 are exhaustive over all finite f32 (2026-11-29, CUDA 13.0).

`sigmoid` and `silu` follow from `exp`: 2 ulps of e^x are at most 4u, and 1 + e, its reciprocal and each product lose u
more: 7u and 8u, which are at most as many ulps of the result. (An H200 gave 4.25 ulps for `silu`.) `gelu` is also
allowed ulps of its argument, because 1 + erf and 1 + tanh cancel for negative arguments.

"""


def page() -> str:
    """The whole page."""
    parts = (HEAD, "".join(map(_clause_row, CLAUSES)), SPECIALS, _special_table(), PRODUCTS, _model_table())
    return "".join((*parts, DERIVATION, FUNCTIONS, _function_table(), _figure_table(), _target_table()))


def _table(heads: str, rows: Iterator[str]) -> str:
    columns = heads.split("|")
    return f"| {' | '.join(c.strip() for c in columns)} |\n|{'---|' * len(columns)}\n" + "".join(rows)


def _clause_row(clause: Clause) -> str:
    ops = clause.ops.split()
    dtypes = [d.name for d in dtypes_of(ops[0]) if clause.covers(ops[0], d)]
    named = " ".join(dtypes) if clause.kinds != "float int bool" else "all that the op takes"
    bits = "exact" if clause.exact else "bounded"
    cells = (" ".join(f"`{op}`" for op in ops), named, bits, clause.result, clause.reason)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


ARGUMENTS = (-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan)


def _special_table() -> str:
    heads = "function | " + " | ".join(_number(x) for x in ARGUMENTS)
    names = [n for n in OPS if n in FLOAT and len(OPS[n].operands) == 1]
    return _table(heads, (f"| `{n}` | {' | '.join(_at(n, x) for x in ARGUMENTS)} |\n" for n in names))


def _at(name: str, x: float) -> str:
    with np.errstate(all="ignore"):
        value = float(FLOAT[name](np.float64(x)))
    return _number(value)


def _number(x: float) -> str:
    return "NaN" if np.isnan(x) else f"{x:.6g}"


def _model_table() -> str:
    rows = (
        f"| {instruction} | {' '.join(formats)} | {_rule(MODELS[instruction][formats[0]])} |\n"
        for instruction, formats in _grouped()
    )
    return _table("instruction | operands | rule", rows)


def _grouped() -> Iterator[tuple[str, list[str]]]:
    for instruction, table in MODELS.items():
        rules = list(dict.fromkeys((model.unit, model.through) for model in table.values()))
        for rule in rules:
            yield instruction, [name for name, model in table.items() if (model.unit, model.through) == rule]


def _rule(model: Model) -> str:
    return (f"converted to {model.through}; " if model.through else "") + _unit_rule(model.unit)


def _unit_rule(unit: TensorCore | MatrixCore | FusedChain) -> str:
    if isinstance(unit, FusedChain):
        return "a chain of fused multiply-adds"
    if isinstance(unit, MatrixCore):
        return (
            f"groups of {unit.group}{', even and odd apart' if unit.halves else ''}; rounded down, then to nearest even"
        )
    end = "to nearest even (f16)" if unit.accumulator == "f16" else f"cut to {unit.result_bits} bits"
    return f"groups of {unit.group}; terms cut at {unit.kept} bits; sum {end}"


def _function_table() -> str:
    rows = (
        f"| `{name}` | {a.ulps:g}{f' + {a.argument_ulps:g} of the argument' if a.argument_ulps else ''} "
        f"| {'' if np.isinf(a.floor) else f'never below {a.floor:g}'}"
        f"{'; a subnormal result may be 0' if a.flushes else ''} |\n"
        for name, a in ACCURACY.items()
    )
    return _table("function | ulps of f32 | besides", rows) + "\n"


def _figure_table() -> str:
    return _table("function | instruction | target | ulps | allowed | source", map(_figure_row, FIGURES)) + "\n"


def _figure_row(figure: Figure) -> str:
    verdict = "yes" if figure.allowed else "no"
    use = f"`{figure.function}` | {figure.instruction} | {figure.target}"
    return f"| {use} | {figure.text} | {verdict} | {figure.source} |\n"


def _target_table() -> str:
    heads = "target | addition of f32 loses | fp8 addition loses | matrix model | from"
    return "## Targets\n\n" + _table(heads, map(_target_row, TARGETS.values()))


def _target_row(target: Target) -> str:
    numerics = target.numerics
    fp8 = " ".join(sorted({_power(x) for x in numerics.product_losses.values()})) or "the same"
    models = ", ".join(dict.fromkeys(target.products.values())) or "float64"
    return (
        f"| `{target.name}` | {_power(numerics.addition_roundoffs * 2.0**-24)} | {fp8} | {models} | {target.source} |\n"
    )


def _power(x: float) -> str:
    return f"2^{np.log2(x):g}"


if __name__ == "__main__":
    sys.stdout.write(page())
