"""How well the model's times of configurations agree with the measured ones: errors, ranks, and the chosen best."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpwave.backends.amd.model.grid import Rates
from warpwave.bench.grid_model.measured import OWN, RECORD, Point

CLOSE = 0.05  # a choice within this of the best is a good one


@dataclass(frozen=True)
class ShapeScore:
    """One shape: rank correlation of its configurations, the model's choice, and what the choice loses.

    `best` and `loss` are over all configurations of the record, also those that the model does not know.
    """

    shape: tuple[int, int, int]
    rank: float
    chosen: str
    best: str
    loss: float


@dataclass(frozen=True)
class Score:
    """A set of shapes."""

    errors: tuple[float, ...]
    shapes: tuple[ShapeScore, ...]

    @property
    def median_error(self) -> float:
        """Median of |modelled / measured - 1|."""
        return statistics.median(self.errors)

    @property
    def median_rank(self) -> float:
        """Median over shapes of Spearman's rank correlation."""
        return statistics.median(s.rank for s in self.shapes)

    @property
    def close(self) -> int:
        """Shapes whose modelled best is within 5 % of the measured best."""
        return sum(s.loss <= CLOSE for s in self.shapes)


def score(points: Sequence[Point], rates: Rates) -> Score:
    """Errors and ranks of these points."""
    shapes: dict[tuple[int, int, int], list[Point]] = {}
    for point in points:
        shapes.setdefault(point.shape, []).append(point)
    errors = tuple(abs(p.modelled(rates) / p.microseconds - 1) for p in points)
    best = _measured_best()
    return Score(errors, tuple(_shape_score(shape, found, rates, best[shape]) for shape, found in shapes.items()))


def _shape_score(
    shape: tuple[int, int, int], points: Sequence[Point], rates: Rates, best: tuple[str, float]
) -> ShapeScore:
    modelled = [p.modelled(rates) for p in points]
    chosen = points[int(np.argmin(modelled))]
    rank = spearman(modelled, [p.microseconds for p in points])
    return ShapeScore(shape, rank, chosen.configuration, best[0], chosen.microseconds / best[1] - 1)


def _measured_best() -> Mapping[tuple[int, int, int], tuple[str, float]]:
    found = {}
    for shape in json.loads(RECORD.read_text())["points"]:
        m, n, k = shape["m"], shape["n"], shape["k"]
        own = {name.removeprefix(OWN): tflops for name, tflops in shape["tflops"].items() if name.startswith(OWN)}
        name = max(own, key=lambda c: own[c])
        found[m, n, k] = (name, 2 * m * n * k / own[name] / 1e6)
    return found


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlation of ranks; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    x = np.asarray(values)
    return np.asarray((x[:, None] > x).sum(1) + ((x[:, None] == x).sum(1) - 1) / 2, np.float64)
