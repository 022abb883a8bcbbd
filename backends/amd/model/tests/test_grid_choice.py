from __future__ import annotations

import pytest

from warpwave.backends.amd.arch import GFX942, GFX950, TARGETS
from warpwave.backends.amd.grid_order import GridOrder, choose_order
from warpwave.backends.amd.model.choice import choose_tiles
from warpwave.backends.amd.model.cu import chip_of
from warpwave.backends.amd.model.grid import Launch, TileKernel
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.backends.amd.model.traffic import TileGemm

SHAPES = [
    (4096, 4096, 4096),
    (9216, 9216, 9216),
    (12288, 12288, 12288),
    (14592, 14592, 14592),
    (16384, 16384, 16384),
    (2048, 128256, 4096),
    (28672, 8192, 8192),
    (32768, 32768, 8192),
]
# No transfer is hidden, so that orders differ most.
KERNEL = TileKernel("ping-pong", 2, most_resident=1, overlapped=False)


@pytest.mark.parametrize("target", [GFX942, GFX950], ids=lambda t: t.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_grid_order_is_near_the_best_of_many_in_the_model(shape, target):
    chip, problem = chip_of(target.name, None), TileGemm(*shape, 256, 256)
    chosen = choose_order(problem.rows, problem.cols, chip.xcds, chip.cus_per_xcd)
    windows, most = (4, 6, 8, 16), problem.tiles // chip.xcds
    chunks = {min(most, w * factor) for w in windows for factor in (4, 8, 16, 32)}
    orders = [GridOrder(chip.xcds, c, w) for w in windows for c in chunks]

    def time(order):
        return Launch(problem, KERNEL, target, chip, order).microseconds(CALIBRATED)

    assert time(chosen) < 1.07 * min(map(time, orders))


def test_small_products_get_small_tiles_and_large_ones_the_largest():
    sizes = {n: choose_tiles("gfx950", (n, n, n), 2, 64).best for n in (256, 1024, 2048, 4096, 16384)}
    areas = [best.block_m * best.block_n for best in sizes.values()]
    assert areas == sorted(areas)
    assert areas[0] == 64 * 64
    assert areas[-2:] == [256 * 256] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_choice_names_the_times_of_all_candidates(target):
    choice = choose_tiles(target, (1024, 4096, 4096), 2, 64)
    assert len(choice.candidates) == 7
    for candidate in choice.candidates:
        assert f"{candidate.block_m} x {candidate.block_n}: {candidate.microseconds:.1f} us" in str(choice)
    assert choice.best.microseconds == min(c.microseconds for c in choice.candidates)


def test_a_batch_fills_the_chip_as_more_rows_would():
    one, many = (choose_tiles("gfx950", (512, 512, 4096), 2, 64, batch) for batch in (1, 256))
    assert one.best.block_m * one.best.block_n == 64 * 64
    assert many.best.block_m * many.best.block_n == 256 * 256


def test_tiles_do_not_exceed_what_holds_the_product():
    for m, n in ((1, 4096), (100, 64), (4096, 65)):
        choice = choose_tiles("gfx950", (m, n, 4096), 2, 64)
        assert all(c.block_m < 2 * max(m, 64) and c.block_n < 2 * max(n, 64) for c in choice.candidates)
