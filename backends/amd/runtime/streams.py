"""The stream of a launch: that of the library whose arrays are passed, else HIP's default stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from warpwave.tiles.errors import LaunchError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.streams import StreamChoice

DEFAULT = 0
_chosen = StreamChoice()


@contextmanager
def use_stream(stream: Any) -> Iterator[None]:
    """Launch this thread's kernels on a stream of hip-python (or the integer of a `hipStream_t`).

    For arrays of PyTorch and CuPy their own current stream is used without it.
    """
    with _chosen.using(stream):
        yield


def stream_for(arrays: Iterable[Array], ordinal: int) -> int:
    """The handle of the stream on which these arrays of one device are ready when the launch gets its turn."""
    owners = [_owner(a) for a in arrays if not a.on_host]
    chosen = _chosen.handle
    if chosen is None:
        handles = {h for o in owners if (h := _library_stream(o, ordinal)) is not None}
        if len(handles) > 1:
            raise LaunchError(
                "the arrays belong to libraries with different current streams",
                hint="name one: with warpwave.backends.amd.runtime.use_stream(stream): ...",
            )
        chosen = next(iter(handles), DEFAULT)
    for owner in owners:
        if _library_of(owner) not in _STREAMS and hasattr(owner, "__dlpack__"):
            owner.__dlpack__(stream=chosen)  # the protocol's way to make the data ready on a stream
    return chosen


def current_stream(ordinal: int) -> int:
    """The stream of a launch on PyTorch tensors."""
    chosen = _chosen.handle
    return _torch(sys.modules["torch"], ordinal) if chosen is None else chosen


def _owner(array: Array) -> Any:
    """The user's object: DLPack imports keep the capsule and the object."""
    return array.owner[1] if isinstance(array.owner, tuple) else array.owner


def _library_of(owner: Any) -> str:
    return type(owner).__module__.partition(".")[0]


def _torch(torch: Any, ordinal: int) -> int:
    return int(torch.cuda.current_stream(ordinal).cuda_stream)


def _cupy(cupy: Any, ordinal: int) -> int:
    return int(cupy.cuda.get_current_stream().ptr)


_STREAMS = {"torch": _torch, "cupy": _cupy}


def _library_stream(owner: Any, ordinal: int) -> int | None:
    name = _library_of(owner)
    return _STREAMS[name](sys.modules[name], ordinal) if name in _STREAMS else None
