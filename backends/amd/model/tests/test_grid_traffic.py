from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.grid_order import GridOrder, contiguous_transform, tile_of, windowed_tile
from warpwave.backends.amd.model.footprint import rounds_of
from warpwave.backends.amd.model.replay import Caches, replay
from warpwave.backends.amd.model.traffic import TileGemm, Tiles, contiguous, row_major, windowed

ROOMY = Caches(xcds=8, per_xcd=32, l2_bytes=4 << 20, cache_bytes=1 << 40)


def pairs(tiles: Tiles) -> list[tuple[int, int]]:
    return list(zip(tiles.rows.tolist(), tiles.cols.tolist(), strict=True))


def problem(rows: int, cols: int, k: int = 256) -> TileGemm:
    return TileGemm(rows * 128, cols * 256, k, 128, 256)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 2, 8]), st.integers(1, 70), st.integers(1, 12))
def test_orders_of_all_ids_are_those_that_the_device_computes(rows, cols, xcds, chunk, window):
    order, size = GridOrder(xcds, chunk, window), rows * cols
    assert pairs(windowed(problem(rows, cols), order)) == [tile_of(b, rows, cols, order) for b in range(size)]
    runs = [windowed_tile(contiguous_transform(b, size, xcds), rows, cols, window) for b in range(size)]
    assert pairs(contiguous(problem(rows, cols), xcds, window)) == runs
    assert pairs(row_major(problem(rows, cols))) == [divmod(b, cols) for b in range(size)]


def test_edges_move_only_what_exists():
    p = TileGemm(300, 520, 96, 256, 256, step=32)
    assert (p.rows, p.cols, p.steps) == (2, 3, 3)
    assert (p.heights().tolist(), p.widths().tolist()) == ([256, 44], [256, 256, 8])
    rounds = rounds_of(p, row_major(p), 8, 32, 1 << 30)
    assert rounds.asked.sum() == (3 * 300 + 2 * 520) * 96 * 2


def test_hit_rates_of_one_row_of_tiles_are_closed_forms():
    """8 tiles in a row on one XCD: the block of a is fetched once, each block of b once."""
    p = TileGemm(256, 8 * 256, 1024, 256, 256)
    found = replay(p, row_major(p), Caches(1, 32, 4 << 20, 1 << 40))
    assert found.l2 == pytest.approx(1 - (1 + 8) / 16)
    assert found.cache == 0  # everything is new to the Infinity Cache


def test_hit_rates_of_eight_xcds_that_share_a_row_are_closed_forms():
    """One tile on each XCD: nothing is shared in an L2, a's block is there for 7 of 8 in the Infinity Cache."""
    p = TileGemm(256, 8 * 256, 1024, 256, 256)
    found = replay(p, row_major(p), ROOMY)
    assert found.l2 == 0
    assert found.cache == pytest.approx(7 / 16)


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_cache_that_holds_both_operands_lacks_only_first_uses(rounds):
    p = problem(32, 8 * rounds, 512)
    compulsory = (p.m + p.n) * p.k * 2
    seen = rounds_of(p, row_major(p), 8, 32, 1 << 40)
    assert seen.past_cache.sum() == compulsory


def test_a_cache_smaller_than_a_round_keeps_nothing_for_the_next():
    p = problem(64, 64, 512)
    seen = rounds_of(p, row_major(p), 8, 32, 1)
    each = [rounds_of(p, Tiles(t.rows, t.cols), 8, 32, 1).past_cache.sum() for t in rounds_apart(p)]
    assert seen.past_cache.tolist() == pytest.approx(each)


def rounds_apart(p: TileGemm) -> list[Tiles]:
    tiles = row_major(p)
    return [Tiles(tiles.rows[i : i + 256], tiles.cols[i : i + 256]) for i in range(0, p.tiles, 256)]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 30), st.integers(1, 30), st.sampled_from([1, 4, 8]), st.sampled_from([16, 32, 64]), st.integers(1, 4)
)
def test_the_closed_form_is_the_replay_of_workgroups_that_advance_together(rows, cols, window, chunk, splits):
    """With an L2 that holds more than a step and an Infinity Cache that holds everything, both count the same."""
    p = TileGemm(rows * 128, cols * 128, 256 * splits, 128, 128, splits=splits)
    tiles = windowed(p, GridOrder(8, chunk, window))
    replayed = replay(p, tiles, ROOMY)
    closed = rounds_of(p, tiles, 8, 32, 1 << 40)
    if p.workgroups <= 256:  # one round: no operand block can survive in an L2 from the round before
        assert closed.l2_hit == pytest.approx(replayed.l2)
        assert closed.cache_hit == pytest.approx(replayed.cache)
    assert closed.l2_hit <= replayed.l2 + 1e-9


def test_both_agree_on_a_grid_that_overflows_the_infinity_cache():
    p = TileGemm(12 * 512, 16 * 512, 2048, 192, 256)
    tiles = windowed(p, GridOrder(8, 32, 8))
    replayed = replay(p, tiles, Caches(8, 32, 4 << 20, 24 << 20))
    closed = rounds_of(p, tiles, 8, 32, 24 << 20)
    assert closed.l2_hit == pytest.approx(replayed.l2, abs=0.01)
    assert closed.cache_hit == pytest.approx(replayed.cache, abs=0.03)


def test_jitter_within_the_reach_of_l2_changes_little():
    p = TileGemm(9216, 9216, 2048, 192, 256)
    tiles = windowed(p, GridOrder(8, 25, 5))
    caches = Caches(8, 32, 4 << 20, 256 << 20)
    assert replay(p, tiles, caches, jitter=0.02, seed=3).l2 == pytest.approx(replay(p, tiles, caches).l2, abs=0.01)
