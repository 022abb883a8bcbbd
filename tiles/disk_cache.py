"""The folder in which backends and the capture keep what they made, for later processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from warpwave.tiles.errors import UnsupportedError

_bypassed: ContextVar[bool] = ContextVar("bypassed", default=False)


def folder(owner: str) -> Path:
    """Where things of one kind are kept: in $WARPWAVE_CACHE, else in the user's cache directory."""
    base = os.environ.get("WARPWAVE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warpwave"
    )
    return Path(base) / owner


def place(owner: str, parts: Sequence[str], suffix: str) -> Path:
    """The file for what these texts determine, told from all others by every text and where each one ends."""
    import hashlib  # importing the language does without

    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return folder(owner) / (digest.hexdigest() + suffix)


def digest_of(files: Iterable[Path]) -> str:
    """Differs when a file of these changes, comes, goes or gets another name."""
    import hashlib

    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def load(path: Path) -> str | None:
    """The text that was kept in a file of the cache; None if there is none, or inside `bypassed`."""
    if is_bypassed():
        return None
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def save(path: Path, text: str) -> None:
    """Keep a text for `load`, but not inside `bypassed`."""
    if not is_bypassed():
        write_whole(path, text.encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of the cache so that others see all of it or nothing, also with several processes."""
    # A name of its own: on a shared folder another machine may write the same file.
    new = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_bytes(data)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)  # there only if one of the two failed
    except OSError as error:
        raise UnsupportedError(
            f"the cache of built code cannot be written: {error}", hint="set WARPWAVE_CACHE to a folder that can be"
        ) from error


def is_bypassed() -> bool:
    """Whether this thread is inside `bypassed`."""
    return _bypassed.get()


@contextmanager
def bypassed() -> Iterator[None]:
    """No captured or lowered kernel is taken from the cache or put into it: for tests that change how they are made."""
    token = _bypassed.set(True)
    try:
        yield
    finally:
        _bypassed.reset(token)
