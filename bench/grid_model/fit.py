"""Calibration of `model.grid.Rates` on the shapes of the published record that may calibrate.

    python -m warpwave.bench.grid_model.fit

prints the constants that stand in `backends/amd/model/rates.py`. Coordinate descent on the mean error of the
logarithm, and a share of its root mean square so that no group of configurations is given up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from warpwave.backends.amd.model.grid import Rates, Work
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.bench.grid_model.measured import Point, points

START = Rates(
    work={"ping-pong": Work(0.1, 1.0, 1.0), "multistage": Work(0.1, 1.0, 1.0)},
    launch=3.0,
    round=1.0,
    heat=0.3,
    shared=0.9,
    hbm_efficiency=0.8,
    stored=1.0,
    overlap=4.0,
    narrow_lds=1.3,
    streaming=1.1,
)
FLAT = ("launch", "round", "heat", "shared", "hbm_efficiency", "stored", "overlap", "narrow_lds", "streaming")
SWEEPS = 60
MOST_OVERLAP = 16.0  # beyond it the exponent is a maximum


def as_vector(rates: Rates) -> list[float]:
    """The rates as numbers, families in order of name."""
    work = [
        x
        for name in sorted(rates.work)
        for x in (rates.work[name].fixed, rates.work[name].matrix, rates.work[name].loads)
    ]
    return work + [getattr(rates, name) for name in FLAT]


def from_vector(x: Sequence[float]) -> Rates:
    """The other way."""
    names = sorted(START.work)
    work = {name: Work(*x[3 * i : 3 * i + 3]) for i, name in enumerate(names)}
    return Rates(work=work, **dict(zip(FLAT, x[3 * len(names) :], strict=True)))


def loss(rates: Rates, chosen: Sequence[Point]) -> float:
    """Mean absolute logarithmic error, and three tenths of its root mean square."""
    errors = [math.log(p.modelled(rates) / p.microseconds) for p in chosen]
    return sum(map(abs, errors)) / len(errors) + 0.3 * math.sqrt(sum(e * e for e in errors) / len(errors))


def fitted(start: Rates = START) -> Rates:
    """The rates of least loss that coordinate descent finds from `start`."""
    chosen = [p for p in points() if p.calibrates]
    x = as_vector(start)
    best, steps = loss(start, chosen), [0.2] * len(x)
    for _ in range(SWEEPS):
        for i in range(len(x)):
            tried = [_moved(x, i, 1 + steps[i]), _moved(x, i, 1 / (1 + steps[i]))]
            found, vector = min((loss(from_vector(v), chosen), v) for v in tried)
            improved = found < best - 1e-7
            if improved:
                best, x = found, vector
            steps[i] = min(0.5, steps[i] * 1.3) if improved else max(0.002, steps[i] * 0.6)
    return from_vector([float(f"{value:.4g}") for value in x])


def _moved(x: Sequence[float], i: int, factor: float) -> list[float]:
    limit = MOST_OVERLAP if i >= len(x) - len(FLAT) and FLAT[i - (len(x) - len(FLAT))] == "overlap" else math.inf
    return [min(limit, value * factor) if j == i else value for j, value in enumerate(x)]


def main() -> None:
    """Print the calibrated rates beside those in use."""
    found = fitted()
    print(found)
    print("loss", loss(found, [p for p in points() if p.calibrates]))
    print("in use", loss(CALIBRATED, [p for p in points() if p.calibrates]), replace(CALIBRATED))


if __name__ == "__main__":
    main()
