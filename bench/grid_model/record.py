"""The record of the grid model as data: published, modelled, error, for every table that validates it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.bench.grid_model.measured import Point, points
from warpwave.bench.grid_model.scores import Score, score, spearman
from warpwave.bench.grid_model.tables import GLUON_TILES, TABLES, GridRow, Modelled, gluon_tflops, modelled

Record = dict[str, Any]
OUT = Path(__file__).resolve().parents[1] / "results" / "grid_model"


def make_record() -> Record:
    """All tables. Takes about a minute."""
    held_out = [p for p in points() if not p.calibrates]
    calibrating = [p for p in points() if p.calibrates]
    return {
        "what": "modelled figures of MI355X beside published measurements; nothing was run on a GPU",
        "rates": asdict(CALIBRATED),
        "grid tables": {name: _table(rows(), kernel()) for name, (rows, kernel) in TABLES.items()},
        "gluon tiles": _tiles(),
        "record": {
            "held out": _summary(score(held_out, CALIBRATED)),
            "calibrating": _summary(score(calibrating, CALIBRATED)),
        },
        "configurations": _by_configuration(held_out),
    }


def _table(rows: Sequence[GridRow], kernel: Any) -> list[Record]:
    return [record_row(row, modelled(row, kernel)) for row in rows]


def record_row(row: GridRow, found: Modelled) -> Record:
    """One row of a grid table: what was published, the model's figures, and the error of its TFLOPS."""
    published = {"l2": row.l2, "cache": row.cache, "effective": row.effective, "tflops": row.tflops}
    return {
        "size": row.problem.m,
        "order": row.order,
        "published": {key: value for key, value in published.items() if value is not None},
        "modelled": {key: round(value, 1) for key, value in asdict(found).items()},
        "tflops error": round(found.tflops / row.tflops - 1, 3),
    }


def _tiles() -> Record:
    found = {size: gluon_tflops(*size) for size in GLUON_TILES}
    rows = {f"{m} x {n}": {"busy %": GLUON_TILES[m, n], "modelled TFLOPS": round(t)} for (m, n), t in found.items()}
    return {"rows": rows, "rank correlation": round(spearman(list(GLUON_TILES.values()), list(found.values())), 3)}


def _summary(found: Score) -> Record:
    ranks = [s.rank for s in found.shapes]
    return {
        "shapes": len(found.shapes),
        "points": len(found.errors),
        "median error": round(found.median_error, 4),
        "90 % of errors below": round(float(np.quantile(found.errors, 0.9)), 4),
        "median rank correlation": round(found.median_rank, 3),
        "mean rank correlation": round(statistics.mean(ranks), 3),
        "least rank correlation": round(min(ranks), 3),
        "modelled best within 5 % of measured best": found.close,
        "choices": [
            {"shape": s.shape, "rank": round(s.rank, 3), "chosen": s.chosen, "best": s.best, "loss": round(s.loss, 3)}
            for s in found.shapes
        ],
    }


def _by_configuration(held_out: Sequence[Point]) -> Record:
    ratios: dict[str, list[float]] = {}
    for point in held_out:
        ratios.setdefault(point.configuration, []).append(point.modelled(CALIBRATED) / point.microseconds)
    middle: Callable[[Sequence[float]], float] = statistics.median
    return {
        name: {
            "points": len(r),
            "median ratio": round(middle(r), 3),
            "median error": round(middle([abs(x - 1) for x in r]), 3),
        }
        for name, r in sorted(ratios.items())
    }
