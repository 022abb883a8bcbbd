// The order in which blocks of a grid are computed. Only integers: a test compiles it for the host.
#pragma once
#ifdef __CUDACC__
#include "ptx/base.cuh"
#endif

namespace ww {

// Position within windows of `window` rows, walked column by column: row * cols + col.
DEVICE int windowed_position(int position, int rows, int cols, int window) {
  const int first = position / (window * cols) * window, left = rows - first;
  const int height = left < window ? left : window, rest = position % (window * cols);
  return (first + rest % height) * cols + rest / height;
}

// Which blocks of a grid of outer x inner fall to one of `workers`, where the inner coordinate says how long a block
// takes (the first ones longest), so that all are done at about the same time. At first rounds of pairs, of a long
// block and a short one of the same outer coordinate, whose neighbours share what they read. What is left after whole
// rounds comes longest first, dealt out to and fro. Blocks are numbered outer * inner_size + inner.
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

  // -1 if there is none in this turn.
  DEVICE int block(int turn) const {
    if (turn < 2 * rounds) {
      const int unit = turn / 2 * workers + worker, first = unit % half, second = inner - 1 - first;
      if (turn % 2 && first == second) return -1;
      return unit / half * inner + (turn % 2 ? second : first);
    }
    const int round = turn - 2 * rounds, place = round * workers + (round % 2 ? workers - 1 - worker : worker);
    return place < left * inner ? (paired + place % left) * inner + place / left : -1;
  }
};

}  // namespace ww
