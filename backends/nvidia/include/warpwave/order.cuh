// The order in which blocks of a grid are computed. Only integers: a test compiles it for the host.
#pragma once
#ifdef __CUDACC__
#include "ptx/base.cuh"
#endif

namespace ww {

// Coordinates in a grid of outer x inner blocks; inner is -1 where there is no block.
struct grid_place {
  int outer, inner;
};

// The place of a position within windows of `window` outer coordinates, walked along the inner one.
DEVICE grid_place windowed_place(int position, int outer, int inner, int window) {
  const int size = window * inner, number = position / size, rest = position - number * size;
  const int first = number * window, left = outer - first, height = left < window ? left : window;
  return {first + rest % height, rest / height};
}

// Which blocks of a grid of outer x inner fall to one of `workers`, where the inner coordinate says how long a block
// takes (the first ones longest), so that all are done at about the same time. At first rounds of pairs, of a long
// block and a short one of the same outer coordinate, whose neighbours share what they read. What is left after whole
// rounds comes longest first, dealt out to and fro.
struct folded_blocks {
  int inner, workers, worker, half, paired, rounds, left, turns;

  DEVICE folded_blocks(int outer, int inner, int workers, int worker)
      : inner(inner), workers(workers), worker(worker), half((inner + 1) / 2) {
    int a = workers, b = half > 0 ? half : 1;
    while (b) {
      const int rest = a % b;
      a = b, b = rest;
    }
    const int whole = workers / a;  // outer coordinates whose pairs fill whole rounds
    paired = outer / whole * whole;
    if ((outer - paired) * inner < workers && paired) paired -= whole;
    rounds = paired * half / workers;
    left = outer - paired;
    turns = 2 * rounds + (left * inner + workers - 1) / workers;
  }

  // The block of a turn; there may be none.
  DEVICE grid_place block(int turn) const {
    if (turn < 2 * rounds) {
      const int unit = turn / 2 * workers + worker, outer = unit / half, first = unit - outer * half;
      const int second = inner - 1 - first;
      return {outer, turn % 2 == 0 ? first : first == second ? -1 : second};
    }
    const int round = turn - 2 * rounds, place = round * workers + (round % 2 ? workers - 1 - worker : worker);
    const int along = place / left;
    return {paired + place - along * left, along < inner ? along : -1};
  }
};

}  // namespace ww
