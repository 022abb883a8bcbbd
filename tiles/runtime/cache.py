"""A cache whose entries are made once, however many threads ask for the same one at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class OnceCache(Generic[T]):
    """Keeps what `make` returned for each key; a failure is not kept, so the next caller tries again."""

    def __init__(self, is_valid: Callable[[T], bool]) -> None:
        self._is_valid = is_valid
        self._lock = threading.Lock()
        self._entries: dict[Hashable, Future[T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The valid entry of `key`, made by this call, or waited for if another thread is making it."""
        entry = self._entries.get(key)
        if entry is not None and entry.done() and self._is_valid(entry.result()):
            return entry.result()
        mine: Future[T] = Future()
        with self._lock:
            current = self._entries.get(key)
            stale = current is None or (current is entry and current.done())
            if stale:
                self._entries[key] = mine
        if not stale and current is not None:
            return current.result()
        return self._fill(key, mine, make)

    def _fill(self, key: Hashable, entry: Future[T], make: Callable[[], T]) -> T:
        try:
            entry.set_result(make())
        except BaseException as error:
            with self._lock:
                self._entries.pop(key, None)
            entry.set_exception(error)
            raise
        return entry.result()
