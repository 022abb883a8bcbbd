"""The published MI355X record: its configurations as the model sees them, and which shapes may calibrate.

hk-dsl 0.8.0 (MIT) measured 61 bf16 GEMM shapes with up to 31 configurations of its own kernels. The third
shape of the record and every third after it may calibrate; nothing is fitted to the others.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwave.backends.amd.arch import GFX950, Chip
from warpwave.backends.amd.grid_order import GridOrder
from warpwave.backends.amd.model.grid import Launch, Rates, TileKernel
from warpwave.backends.amd.model.traffic import TileGemm

RECORD = Path(__file__).resolve().parents[1] / "results" / "published" / "mi355x_gemm_measured.json"
OWN = "hk:"
EVERY = 3  # one shape of so many calibrates
MI355X: Chip = next(chip for chip in GFX950.chips if chip.name == "MI355X")
WINDOW, CHUNK = 8, 64  # HipKittens' defaults, from which hk-dsl derives


@dataclass(frozen=True)
class Point:
    """One shape with one configuration, measured, and its launches: a persistent kernel's remainder is a second."""

    shape: tuple[int, int, int]
    configuration: str
    microseconds: float
    launches: tuple[Launch, ...]
    calibrates: bool

    def modelled(self, rates: Rates) -> float:
        """Microseconds; a second launch here is the same kernel going on, so it costs no launch of its own."""
        return sum(launch.microseconds(rates) for launch in self.launches) - rates.launch * (len(self.launches) - 1)


@functools.cache
def points() -> tuple[Point, ...]:
    """Every measured shape and configuration that has tiles (`decode` is a vector kernel without)."""
    record = json.loads(RECORD.read_text())
    return tuple(point for index, shape in enumerate(record["points"]) for point in _points(record, shape, index))


def _points(record: Mapping[str, Any], shape: Mapping[str, Any], index: int) -> list[Point]:
    m, n, k = size = (shape["m"], shape["n"], shape["k"])
    found = []
    for name, tflops in shape["tflops"].items():
        options = record["configurations"].get(name.removeprefix(OWN))
        if name.startswith(OWN) and options["schedule"] != "decode":
            launches = tuple(_launches(record["configurations"], options, size))
            microseconds = 2 * m * n * k / tflops / 1e6
            found.append(Point(size, name.removeprefix(OWN), microseconds, launches, index % EVERY == EVERY - 1))
    return found


def _launches(
    all_options: Mapping[str, Any], options: Mapping[str, Any], size: tuple[int, int, int]
) -> Sequence[Launch]:
    m, n, k = size
    if options["schedule"] != "ppw":
        return [_launch(options, m, n, k)]
    pp = _launch({"schedule": "pp"}, m, n, k)
    rest = pp.problem.workgroups % MI355X.cus
    if not rest or pp.problem.workgroups < MI355X.cus:
        return [pp]
    return [*_whole_rounds(pp, rest), _launch(all_options[options["rem"]], pp.problem.block_m, rest * 256, k)]


def _whole_rounds(launch: Launch, rest: int) -> list[Launch]:
    """The tiles of complete rounds, as a product of one row of tiles fewer columns would have them."""
    p = launch.problem
    whole = p.workgroups - rest
    columns = whole // p.rows * p.block_n
    return [_launch({"schedule": "pp"}, p.m, columns, p.k)]


def _launch(options: Mapping[str, Any], m: int, n: int, k: int) -> Launch:
    pingpong = options["schedule"] == "pp"
    block_m = options.get("block_m", 128 if pingpong and m <= 128 else 256)
    problem = TileGemm(
        m, n, k, block_m, options.get("block_n", 256), options.get("k_step", 64), splits=options.get("splits", 1)
    )
    kernel = TileKernel(
        "ping-pong" if pingpong else "multistage",
        options.get("stages", 2),
        most_resident=1 if pingpong else 2,
        narrow_lds="lds_shape" in options,
        streaming="nt" in options,
    )
    chunk = 1 if options.get("xcd_chunk") == 0 else min(CHUNK, max(1, problem.tiles // MI355X.xcds))
    return Launch(problem, kernel, GFX950, MI355X, GridOrder(MI355X.xcds, chunk, WINDOW))
