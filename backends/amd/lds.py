"""Bank conflicts of LDS accesses, and the search for a swizzle that has none.

A swizzle moves 16-byte (or smaller) chunks of a shared tile by xor with a linear function of the row number:
within a row or, where rows are shorter than the banks are wide, among neighbouring rows. A direct
global-to-LDS load writes lanes in order, so there the swizzle is applied to the global address instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.backends.amd.arch import WAVE, LdsAccess

Ints = np.ndarray[Any, np.dtype[np.int64]]
BANK_BYTES = 4


@dataclass(frozen=True)
class Swizzle:
    """Byte offset o of row r moves to o xor mask(r), where mask xors `masks[i]` for each set bit i of r."""

    masks: tuple[int, ...] = ()

    def apply(self, offset: Ints, row: Ints) -> Ints:
        """Physical offsets of logical ones; `row` is the row of each offset."""
        moved = offset.copy()
        for bit, mask in enumerate(self.masks):
            moved ^= np.where(row >> bit & 1, mask, 0)
        return moved


@dataclass(frozen=True, eq=False)
class Read:
    """One LDS instruction as a tile's user issues it: element (rows[lane], cols[lane]) is each lane's first.

    `weight` counts how often it is issued for one tile.
    """

    access: LdsAccess
    rows: Ints
    cols: Ints
    weight: int = 1


@dataclass(frozen=True)
class SharedLayout:
    """A shared tile of `row_bytes` a row, elements of `element_bytes`, swizzled."""

    row_bytes: int
    element_bytes: int
    swizzle: Swizzle = Swizzle()

    def offsets(self, rows: Ints, cols: Ints) -> Ints:
        """Byte offset of each element."""
        return self.swizzle.apply(rows * self.row_bytes + cols * self.element_bytes, rows)


def phase_cost(access: LdsAccess, offsets: Ints) -> Ints:
    """Clocks that each phase takes: the most distinct 4-byte words that one bank has to serve.

    `offsets[..., lane]` may have leading dimensions, for several layouts at once; phases come last.
    """
    words = offsets[..., None] // BANK_BYTES + np.arange(access.width // BANK_BYTES)
    costs = [_busiest_bank(words[..., list(lanes), :], access.banks) for lanes in access.phases]
    return np.asarray(np.stack(costs, axis=-1))


def _busiest_bank(words: Ints, banks: int) -> Ints:
    """The largest number of distinct words in one bank, over the last two axes."""
    flat = np.sort(words.reshape(-1, words.shape[-2] * words.shape[-1]), axis=1)
    first = np.ones(flat.shape, bool)
    first[:, 1:] = flat[:, 1:] != flat[:, :-1]
    bins = np.arange(len(flat))[:, None] * banks + flat % banks
    counts = np.bincount(bins[first], minlength=len(flat) * banks).reshape(len(flat), banks)
    return np.asarray(counts.max(axis=1).reshape(words.shape[:-2]))


def conflicts(access: LdsAccess, offsets: Ints) -> Ints:
    """Extra clocks of one instruction: 0 if every phase is served at once."""
    return np.asarray(phase_cost(access, offsets).sum(axis=-1) - len(access.phases))


def multiplicity(access: LdsAccess, offsets: Ints) -> int:
    """The worst phase, as HipKittens counts it: 1 is free of conflicts."""
    return int(phase_cost(access, offsets).max())


def total_conflicts(layout: SharedLayout, reads: Iterable[Read]) -> int:
    """Extra clocks of all accesses to one tile."""
    return sum(r.weight * int(conflicts(r.access, layout.offsets(r.rows, r.cols))) for r in reads)


def least_conflicts(layout: SharedLayout, reads: Iterable[Read], chunk: int) -> int:
    """Extra clocks that no swizzle of whole chunks avoids.

    A word keeps its place in its chunk, so that words at one place share the banks at that place.
    """
    least = 0
    for read in reads:
        words = layout.offsets(read.rows, read.cols)[:, None] // BANK_BYTES + np.arange(read.access.width // BANK_BYTES)
        for lanes in read.access.phases:
            places = [word % (chunk // BANK_BYTES) for word in set(words[list(lanes)].ravel().tolist())]
            banks = read.access.banks * BANK_BYTES // chunk
            least += read.weight * (-(-max(map(places.count, places)) // banks) - 1)
    return least


_solved: dict[object, SharedLayout] = {}


def solve(
    row_bytes: int, element_bytes: int, rows: int, reads: Sequence[Read], chunk: int = 16, fixed: int = 0
) -> SharedLayout:
    """A swizzle with the fewest conflicts over all accesses, as simple as the search finds it.

    `chunk` is the smallest unit that must stay together: the widest access, or the direct load's width. Bits of
    the row number in `fixed` move nothing.
    """
    bits = min(max(rows - 1, 1).bit_length(), 6)
    accesses = tuple((r.access, r.rows.tobytes(), r.cols.tobytes(), r.weight) for r in reads)
    key = row_bytes, element_bytes, bits, chunk, fixed, accesses
    if key not in _solved:
        choices = [range(1) if fixed >> bit & 1 else _masks(row_bytes, bit, chunk) for bit in range(bits)]
        _solved[key] = _search(SharedLayout(row_bytes, element_bytes), choices, reads, chunk)
    return _solved[key]


def _search(plain: SharedLayout, choices: Sequence[range], reads: Sequence[Read], chunk: int) -> SharedLayout:
    """Coordinate descent over the masks of the row bits, which is exhaustive where one or two masks suffice."""
    least = least_conflicts(plain, reads, chunk)
    row_bytes, element_bytes, bits = plain.row_bytes, plain.element_bytes, len(choices)
    search = _Search(row_bytes, element_bytes, reads, choices)
    best, best_cost = (0,) * bits, search.costs([(0,) * bits])[0]
    for start in _starts(choices):
        if best_cost[0] == least:
            break
        found, cost = search.descend(start)
        if cost < best_cost:
            best, best_cost = found, cost
    return SharedLayout(row_bytes, element_bytes, Swizzle(best))


Masks = tuple[int, ...]
Cost = tuple[int, int, int]


@dataclass(frozen=True)
class _Search:
    """Orders swizzles by conflicts, then by row bits in use, then by the size of the masks."""

    row_bytes: int
    element_bytes: int
    reads: Sequence[Read]
    choices: Sequence[range]

    def costs(self, candidates: Sequence[Masks]) -> list[Cost]:
        """The costs of several swizzles at once."""
        clocks = np.zeros(len(candidates), np.int64)
        masks = np.array(candidates, np.int64)
        for read in self.reads:
            offsets = np.broadcast_to(read.rows * self.row_bytes + read.cols * self.element_bytes, (len(masks), WAVE))
            for bit in range(masks.shape[1]):
                offsets = offsets ^ (read.rows >> bit & 1) * masks[:, bit : bit + 1]
            clocks += read.weight * conflicts(read.access, offsets)
        return [(int(c), sum(m != 0 for m in ms), sum(ms)) for c, ms in zip(clocks, candidates, strict=True)]

    def descend(self, start: Masks) -> tuple[Masks, Cost]:
        """Improve one mask after the other until none helps."""
        best, best_cost = start, self.costs([start])[0]
        while True:
            before = best_cost
            for bit, masks in enumerate(self.choices):
                candidates = [(*best[:bit], mask, *best[bit + 1 :]) for mask in masks]
                costs = self.costs(candidates)
                cost, candidate = min(zip(costs, candidates, strict=True))
                if cost < best_cost:
                    best, best_cost = candidate, cost
            if best_cost == before:
                return best, best_cost


def _masks(row_bytes: int, bit: int, chunk: int) -> range:
    """Masks that row bit `bit` may xor into an offset so that the whole stays a bijection.

    A mask uses offset bits below the row bit's own. Where a row is no power of two long, it stays below the
    power of two that divides it. Bits from 256 on do not choose a bank.
    """
    divides = row_bytes & -row_bytes
    limit = divides << bit if divides == row_bytes else divides
    return range(0, min(limit, 256), chunk)


def _starts(choices: Sequence[range]) -> Iterator[Masks]:
    """No swizzle, and every single mask of the first row bits."""
    plain = (0,) * len(choices)
    yield plain
    for bit, masks in enumerate(choices):
        for mask in masks[1:]:
            yield (*plain[:bit], mask, *plain[bit + 1 :])
