from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.grid_order import (
    chiplet_transform,
    choose_order,
    contiguous_transform,
    tile_of,
    windowed_tile,
)


@pytest.mark.parametrize("chunk", [1, 2, 4, 25, 64, 256])
def test_chiplet_transform_is_a_bijection_for_every_size_up_to_4096(chunk):
    for size in [*range(1, 700), *range(700, 4097, 13), 4096]:
        seen = {chiplet_transform(b, size, 8, chunk) for b in range(size)}
        assert seen == set(range(size))


def test_contiguous_transform_is_a_bijection_for_every_size_up_to_4096():
    for size in [*range(1, 700), *range(700, 4097, 13), 4096]:
        assert {contiguous_transform(b, size, 8) for b in range(size)} == set(range(size))


@settings(deadline=None)  # machines that do other work at the same time
@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from([1, 2, 6, 8]), st.sampled_from([32, 38]))
def test_every_tile_is_visited_once(rows, cols, xcds, per_xcd):
    order = choose_order(rows, cols, xcds, per_xcd)
    tiles = [tile_of(b, rows, cols, order) for b in range(rows * cols)]
    assert sorted(tiles) == [(r, c) for r in range(rows) for c in range(cols)]


# cases.md 59: tile 128x128, sizes that are no multiple of 8 tiles gave wrong answers or memory faults.
@pytest.mark.parametrize("extent", [1152, 1280, 1664, 1536, 2560])
def test_case_59_grid_swizzle_at_sizes_not_multiple_of_8(extent):
    tiles = -(-extent // 128)
    order = choose_order(tiles, tiles, 8, 32)
    assert len({tile_of(b, tiles, tiles, order) for b in range(tiles * tiles)}) == tiles * tiles


def test_each_xcd_receives_runs_of_consecutive_tiles():
    positions = [chiplet_transform(b, 1024, 8, 64) for b in range(1024) if b % 8 == 3]
    assert positions[:64] == list(range(3 * 64, 4 * 64))
    assert positions[64:] == list(range(512 + 3 * 64, 512 + 4 * 64))


def test_a_window_is_walked_column_by_column():
    assert [windowed_tile(p, 5, 3, 2) for p in range(15)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2),
        (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2),
        (4, 0), (4, 1), (4, 2),
    ]  # fmt: skip


def test_the_chunk_never_swallows_the_grid():
    for tiles in range(1, 65):
        order = choose_order(tiles, tiles, 8, 32)
        if tiles * tiles >= 8:
            assert order.chunk * 8 <= tiles * tiles  # else nothing would be remapped


@given(st.integers(1, 16), st.integers(1, 8), st.integers(1, 16), st.integers(1, 4))
def test_heads_of_one_kv_head_share_an_xcd(kv_heads, ratio, blocks, batch):
    """Whatever H / Hkv is: where the K/V heads divide evenly over 8 XCDs, none is split."""
    per_group = ratio * blocks
    size = batch * kv_heads * per_group
    xcds_of_group: dict[int, set[int]] = {}
    for b in range(size):
        xcds_of_group.setdefault(contiguous_transform(b, size, 8) // per_group, set()).add(b % 8)
    split = sum(len(xcds) > 1 for xcds in xcds_of_group.values())
    if batch * kv_heads % 8 == 0:
        assert split == 0
    assert split <= 7  # at most one at each border between two XCDs' runs
