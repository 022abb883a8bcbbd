"""Tile sizes and grid order of a product, chosen by their modelled time: what is used where no device can measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.model.cu import chip_of
from warpwave.backends.amd.model.grid import Launch, TileKernel
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.backends.amd.model.schedules import Product, ranking
from warpwave.backends.amd.model.traffic import TileGemm

SIZES = ((256, 256), (128, 256), (256, 128), (128, 128), (64, 128), (128, 64), (64, 64))
FOUR_WAVES = 128 * 128  # tiles of more elements are shared by eight waves
STAGES = 4  # that the lowering asks for where LDS has room
MULTISTAGE = "multistage"  # a family of rates as well as a schedule; the other family stands for all other schedules
GAIN = 0.97  # of the largest tile's time: what a smaller tile must reach to be preferred


@dataclass(frozen=True)
class Candidate:
    """One way to tile a product, with its modelled time."""

    block_m: int
    block_n: int
    microseconds: float
    tflops: float
    l2_hit: float

    def __str__(self) -> str:
        return f"{self.block_m} x {self.block_n}: {self.microseconds:.1f} us"


@dataclass(frozen=True)
class Choice:
    """The candidate that is used, and all of them, fastest first."""

    best: Candidate
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        """Why: the modelled times of the candidates."""
        others = ", ".join(str(c) for c in self.candidates if c is not self.best)
        return f"{self.best}; {others}" if others else str(self.best)


def choose_tiles(
    target: str, shape: tuple[int, int, int], itemsize: int, step: int, batch: int = 1, *, along_rows: bool = True
) -> Choice:
    """Tiles for `batch` products c[m, n] = a[m, k] b[k, n], `shape` (m, n, k), on the target's fastest chip.

    Each is modelled by the schedule that `auto` tries first for it; `along_rows` says whether depth runs along the
    rows of both operands as they are stored.
    The rates are calibrated on bf16 kernels of MI355X that are not ours; times of other targets and dtypes are
    carried over by their published rates. Hence the largest tile stays unless another is clearly faster.
    """
    found = sorted(_candidates(target, shape, itemsize, step, batch, along_rows), key=lambda c: c.microseconds)
    largest = max(found, key=lambda c: (c.block_m * c.block_n, -c.microseconds))
    best = found[0] if found[0].microseconds < GAIN * largest.microseconds else largest
    return Choice(best, tuple(found))


def _candidates(
    target: str, shape: tuple[int, int, int], itemsize: int, step: int, batch: int, along_rows: bool
) -> Sequence[Candidate]:
    m, n, k = shape
    found = []
    for block_m, block_n in SIZES:
        if block_m <= _holding(m) and block_n <= _holding(n):
            stacked = (
                m if batch == 1 else -(-m // block_m) * block_m * batch
            )  # as if the products lay one below another
            problem = TileGemm(stacked, n, k, block_m, block_n, step, itemsize)
            found.append(_candidate(target, problem, schedule_of(target, problem, along_rows)))
    return found


def _holding(extent: int) -> int:
    """The smallest tile side that holds an extent: beyond it a larger one only pads."""
    return next((side for side in (64, 128) if side >= extent), 256)


def schedule_of(target: str, problem: TileGemm, along_rows: bool) -> str:
    """What `auto` tries first for these tiles."""
    found = ranking(Product(target, problem.itemsize, along_rows, (problem.block_m, problem.block_n)))
    return found.names[0] if found else MULTISTAGE


def _candidate(target: str, problem: TileGemm, schedule: str) -> Candidate:
    eight = problem.block_m * problem.block_n > FOUR_WAVES
    lds = (problem.block_m + problem.block_n) * problem.step * problem.itemsize
    stages = max(2, min(STAGES, TARGETS[target].groups_per_cu(lds)))
    alone = eight or schedule != MULTISTAGE
    family = MULTISTAGE if schedule == MULTISTAGE else "ping-pong"
    kernel = TileKernel(family, stages, most_resident=1 if alone else 2)
    launch = Launch(problem, kernel, TARGETS[target], chip_of(target, None))
    return Candidate(
        problem.block_m,
        problem.block_n,
        launch.microseconds(CALIBRATED),
        launch.tflops(CALIBRATED),
        launch.rounds.l2_hit,
    )
