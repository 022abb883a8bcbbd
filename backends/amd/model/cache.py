"""A cache of blocks of unequal size from which the least recently used leave."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class LruCache:
    """Holds blocks up to `capacity` bytes; counts the bytes that were there and those that were not."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.hit_bytes = 0
        self.missed_bytes = 0
        self._held: OrderedDict[Hashable, int] = OrderedDict()
        self._used = 0

    def access(self, block: Hashable, size: int) -> bool:
        """Whether the block was there; afterwards it is, and is the most recently used."""
        if block in self._held:
            self._held.move_to_end(block)
            self.hit_bytes += size
            return True
        self.missed_bytes += size
        self._held[block] = size
        self._used += size
        while self._used > self.capacity:
            self._used -= self._held.popitem(last=False)[1]
        return False

    @property
    def hit_rate(self) -> float:
        """Share of the bytes asked for that were there."""
        return self.hit_bytes / max(1, self.hit_bytes + self.missed_bytes)
