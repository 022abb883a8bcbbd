from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.model.cache import LruCache


def by_definition(accesses, capacity, sizes):
    """Whether each access hits: the distinct blocks used since its last use, and itself, fit the cache."""
    hits = []
    for now, block in enumerate(accesses):
        before = [t for t in range(now) if accesses[t] == block]
        between = set(accesses[before[-1] : now]) if before else set()
        hits.append(bool(before) and sum(sizes[b] for b in between | {block}) <= capacity)
    return hits


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 12))
def test_hits_are_those_of_the_stack_distance(accesses, capacity):
    cache, sizes = LruCache(capacity), dict.fromkeys(range(10), 1)
    assert [cache.access(block, 1) for block in accesses] == by_definition(accesses, capacity, sizes)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=60), st.lists(st.integers(1, 5), min_size=10, max_size=10), st.integers(5, 20)
)
def test_blocks_of_unequal_size_leave_oldest_first(accesses, sizes, capacity):
    """Against a list that is searched: what is held is the longest run of most recently used blocks that was kept."""
    cache, held = LruCache(capacity), []
    for block in accesses:
        hit = block in held
        held = [b for b in held if b != block] + [block]
        while sum(sizes[b] for b in held) > capacity:
            held.pop(0)
        assert cache.access(block, sizes[block]) == hit


def test_bytes_are_counted():
    cache = LruCache(10)
    for block, size in (("a", 4), ("b", 6), ("a", 4), ("c", 3), ("b", 6)):
        cache.access(block, size)
    assert (cache.hit_bytes, cache.missed_bytes) == (4, 4 + 6 + 3 + 6)
    assert cache.hit_rate == 4 / 23
