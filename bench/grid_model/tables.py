"""HipKittens' published grid-order tables (arXiv 2511.08083, table 4, and its grid_micro log) and the model's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from warpwave.backends.amd.arch import GFX950
from warpwave.backends.amd.grid_order import GridOrder
from warpwave.backends.amd.model.grid import Launch, TileKernel
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.backends.amd.model.traffic import TileGemm, Tiles, contiguous, row_major, windowed
from warpwave.bench.grid_model.measured import MI355X

XCDS = MI355X.xcds
# The paper's own formula (its equation 1) for "effective bandwidth": LLC TB/s x LLC hit + L2 TB/s x L2 hit, with L2
# about three times the LLC. 5.94 TB/s is what MI300X's Infinity Cache was measured to deliver.
LLC_TB, L2_TB = 5.94, 3 * 5.94


@dataclass(frozen=True)
class GridRow:
    """One row of a table: the problem, the traversal, and what was published (None where nothing was)."""

    problem: TileGemm
    order: str
    tiles: Tiles
    l2: float | None
    cache: float | None
    effective: float | None
    tflops: float


@dataclass(frozen=True)
class Modelled:
    """The model's figures for a row, in the units of the table."""

    l2: float
    cache: float
    effective: float
    tflops: float


def _chunked(problem: TileGemm, window: int, chunk: int) -> Tiles:
    return windowed(problem, GridOrder(XCDS, chunk, window))


def table_4() -> list[GridRow]:
    """Six rows, 192 x 256 tiles. 8 x 542 is more than the 4332 tiles: one contiguous run for each XCD."""
    small, large = (TileGemm(n, n, n, 192, 256) for n in (9216, 14592))
    return [
        GridRow(small, "row-major", row_major(small), 55, 95, 15.1, 1113),
        GridRow(small, "W=7 C=216", _chunked(small, 7, 216), 79, 24, 14.9, 991),
        GridRow(small, "W=5 C=25", _chunked(small, 5, 25), 75, 93, 18.3, 1145),
        GridRow(large, "row-major", row_major(large), 36, 76, 10.7, 900),
        GridRow(large, "W=8 C=542", contiguous(large, XCDS, 8), 79, 7, 13.9, 980),
        GridRow(large, "W=8 C=64", _chunked(large, 8, 64), 78, 55, 16.6, 1068),
    ]


def window_sweep() -> list[GridRow]:
    """8192^3 with 256 x 256 tiles of 32-row matrix instructions; each XCD has a contiguous run but in the first row."""
    problem = TileGemm(8192, 8192, 8192, 256, 256)
    published = {2: 1083.3, 4: 1108.8, 8: 1113.9, 32: 875.1}
    rows = [GridRow(problem, f"W={w}", contiguous(problem, XCDS, w), None, None, None, t) for w, t in published.items()]
    return [GridRow(problem, "row-major", row_major(problem), None, None, None, 1016.6), *rows]


def simple_kernel(reference: Launch, tflops: float) -> TileKernel:
    """These kernels wait for all loads of a step: transfers add to the work. `tflops` is published for `reference`."""
    low, high = 0.1, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        faster = replace(reference, kernel=replace(reference.kernel, slower=middle)).tflops(CALIBRATED) > tflops
        low, high = (middle, high) if faster else (low, middle)
    return replace(reference.kernel, slower=low)


def table_4_kernel() -> TileKernel:
    """From another published figure of the 192 x 256 kernel: 1229 TFLOPS at 9216 x 8192 x 8192, W=4 and C=16."""
    problem = TileGemm(9216, 8192, 8192, 192, 256)
    return simple_kernel(_launch(problem, _chunked(problem, 4, 16)), 1229)


def window_sweep_kernel() -> TileKernel:
    """From the sweep's own row W=8, so that only the ratios to it are the model's."""
    row = next(row for row in window_sweep() if row.order == "W=8")
    return simple_kernel(_launch(row.problem, row.tiles), row.tflops)


def _launch(problem: TileGemm, tiles: Tiles, kernel: TileKernel | None = None) -> Launch:
    kernel = kernel or TileKernel("ping-pong", 2, most_resident=1, overlapped=False)
    return Launch(problem, kernel, GFX950, MI355X, tiles=tiles)


def modelled(row: GridRow, kernel: TileKernel) -> Modelled:
    """The model's row."""
    launch = _launch(row.problem, row.tiles, kernel)
    l2, cache = launch.rounds.l2_hit, launch.rounds.cache_hit
    return Modelled(100 * l2, 100 * cache, L2_TB * l2 + LLC_TB * cache, launch.tflops(CALIBRATED))


TABLES: dict[str, tuple[Callable[[], list[GridRow]], Callable[[], TileKernel]]] = {
    "table 4": (table_4, table_4_kernel),
    "window sweep": (window_sweep, window_sweep_kernel),
}

# AMD's Gluon tutorial, "Compute-Bound, Bandwidth-Bound or Latency-Bound?" (ROCm/gfx950-gluon-tutorials): share of the
# loop that the matrix cores are busy, 16 x 16 tiles of each size, K = 8192, f16, measured on an MI355X.
GLUON_TILES = {
    (256, 256): 96,
    (256, 128): 83,
    (128, 256): 84,
    (128, 128): 69,
    (256, 64): 55,
    (64, 256): 57,
    (128, 64): 47,
    (64, 128): 47,
}


def gluon_tflops(block_m: int, block_n: int) -> float:
    """The model's TFLOPS for one of those tiles, with as many stages as LDS holds, up to four."""
    problem = TileGemm(16 * block_m, 16 * block_n, 8192, block_m, block_n)
    stages = min(4, GFX950.groups_per_cu((block_m + block_n) * problem.step * problem.itemsize))
    return Launch(problem, TileKernel("multistage", stages, most_resident=1), GFX950, MI355X).tflops(CALIBRATED)
