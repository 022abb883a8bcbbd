"""The stream that a thread has chosen for its launches, for backends whose devices have streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StreamChoice(threading.local):
    """`handle` is the chosen stream's, None if the current stream of the arrays' library is to be used."""

    handle: int | None = None

    @contextmanager
    def using(self, stream: Any) -> Iterator[None]:
        """Choose a stream (its integer, or what gives one) for the time of the block."""
        before = self.handle
        self.handle = int(stream)
        try:
            yield
        finally:
            self.handle = before
