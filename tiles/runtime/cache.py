"""A cache whose entries are made once, however many threads ask for the same one at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Entry(Generic[T]):
    """One value, or none yet; `lock` is held while it is made."""

    __slots__ = ("lock", "values")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[T] = []


class OnceCache(Generic[T]):
    """Keeps what `make` returned for each key while it is valid; a failure is not kept."""

    def __init__(self, is_valid: Callable[[T], bool]) -> None:
        self._is_valid = is_valid
        self._entries: dict[Hashable, _Entry[T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The valid entry of `key`, made by this call, or waited for if another thread is making it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries.setdefault(key, _Entry())
        values = entry.values
        if values and self._is_valid(values[0]):
            return values[0]
        with entry.lock:
            if not entry.values or not self._is_valid(entry.values[0]):
                entry.values = [make()]
            return entry.values[0]
