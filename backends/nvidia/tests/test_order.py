"""The order of blocks of unequal length: every block once, and all workers done at about the same time."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from warpwave.backends.nvidia.build import INCLUDE

PROGRAM = """
#include <cstdio>
#define DEVICE inline
#include "warpwave/order.cuh"
int main() {
  int outer, inner, workers;
  while (std::scanf("%d %d %d", &outer, &inner, &workers) == 3) {
    for (int worker = 0; worker < workers; ++worker) {
      const ww::folded_blocks order(outer, inner, workers, worker);
      for (int turn = 0; turn < order.turns; ++turn) {
        const ww::grid_place place = order.block(turn);
        std::printf("%d ", place.inner < 0 ? -1 : place.outer * inner + place.inner);
      }
      std::printf("\\n");
    }
  }
}
"""
GRIDS = [
    *(
        (outer, inner, workers)
        for outer in (1, 2, 3, 7, 33, 64)
        for inner in (1, 2, 3, 8, 11)
        for workers in (1, 5, 132)
    ),
    (256, 8, 132),
    (64, 32, 132),
    (16, 128, 132),
    (64, 22, 132),
    (512, 6, 264),
]


@pytest.fixture(scope="module")
def dealt(tmp_path_factory):
    """For each grid the blocks of each worker, -1 where a turn is empty."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    folder = tmp_path_factory.mktemp("order")
    (folder / "order.cpp").write_text(PROGRAM)
    subprocess.run(
        [compiler, "-std=c++20", "-O1", f"-I{INCLUDE}", folder / "order.cpp", "-o", folder / "order"], check=True
    )
    text = "\n".join(f"{a} {b} {c}" for a, b, c in GRIDS)
    lines = iter(
        subprocess.run([folder / "order"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    )
    return {grid: [[int(x) for x in next(lines).split()] for _ in range(grid[2])] for grid in GRIDS}


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "x".join(map(str, grid)))
def test_every_block_is_computed_once(dealt, grid):
    outer, inner, _ = grid
    blocks = [block for worker in dealt[grid] for block in worker if block >= 0]
    assert sorted(blocks) == list(range(outer * inner))


@pytest.mark.parametrize(("grid", "least"), [((256, 8, 132), 0.97), ((64, 32, 132), 0.99), ((16, 128, 132), 0.99)])
def test_workers_are_done_at_the_same_time(dealt, grid, least):
    """Blocks of causal attention: the first has as many keys as there are tiles, the last one has one."""
    inner = grid[1]
    loads = [sum(inner - block % inner for block in worker if block >= 0) for worker in dealt[grid]]
    assert sum(loads) / len(loads) / max(loads) > least


def test_neighbours_read_the_same_keys(dealt):
    """In the paired rounds two outer coordinates' blocks fill eight workers or more."""
    first = [worker[0] // 8 for worker in dealt[256, 8, 132]]
    assert len(set(first)) == 33
