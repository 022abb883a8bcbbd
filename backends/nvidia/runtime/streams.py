"""The stream of a launch: that of the library whose arrays are passed, else CUDA's default stream."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from warpwave.tiles.errors import LaunchError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.streams import StreamChoice

LEGACY_DEFAULT = 0
_DLPACK_LEGACY = 1  # DLPack's name for the legacy default stream; 0 is not allowed there
_RAW_STREAM = "_cuda_getCurrentRawStream"  # takes a tenth of the public call's time; Triton uses it too
_chosen = StreamChoice()


@contextmanager
def use_stream(stream: Any) -> Iterator[None]:
    """Launch this thread's kernels on a stream of cuda-bindings (or the integer of a `cudaStream_t`).

    For arrays of PyTorch and CuPy their own current stream is used without it.
    """
    with _chosen.using(stream):
        yield


def stream_for(arrays: Sequence[Array], ordinal: int) -> int:
    """The handle of the stream on which these arrays of one device are ready when the launch gets its turn."""
    # DLPack imports keep the capsule and the object.
    owners = [a.owner[1] if type(a.owner) is tuple else a.owner for a in arrays]
    asked, others = _libraries(*map(type, owners))
    chosen = _chosen.handle
    if chosen is None:
        handles = [_STREAMS[name](sys.modules[name], ordinal) for name in asked]
        if len(handles) > 1 and len(set(handles)) > 1:
            raise LaunchError(
                "the arrays belong to libraries with different current streams",
                hint="name one: with warpwave.backends.nvidia.runtime.use_stream(stream): ...",
            )
        chosen = handles[0] if handles else LEGACY_DEFAULT
    if others:
        _make_ready(owners, chosen)
    return chosen


def stream_source(arrays: Sequence[Array], ordinal: int) -> Callable[[], int] | None:
    """What `stream_for` would give for PyTorch's tensors, now and later; None for arrays of others."""
    owners = [a.owner[1] if type(a.owner) is tuple else a.owner for a in arrays]
    asked, others = _libraries(*map(type, owners))
    if asked != ("torch",) or others:
        return None
    quick = getattr(sys.modules["torch"]._C, _RAW_STREAM, None)
    current = functools.partial(quick, ordinal) if quick else functools.partial(_torch, sys.modules["torch"], ordinal)

    def source() -> int:
        chosen = _chosen.handle
        return current() if chosen is None else chosen

    return source


@functools.lru_cache(maxsize=256)
def _libraries(*kinds: Any) -> tuple[tuple[str, ...], bool]:
    """The libraries of these types whose current stream can be asked for, and whether there are others."""
    names = {_library_of(kind) for kind in kinds}
    return tuple(sorted(names & set(_STREAMS))), not names <= _KNOWN


def _library_of(kind: Any) -> str:
    return str(kind.__module__).partition(".")[0]


def _make_ready(owners: Iterable[Any], stream: int) -> None:
    """DLPack's way to order a producer's work before a stream's."""
    for owner in owners:
        if _library_of(type(owner)) not in _KNOWN and hasattr(owner, "__dlpack__"):
            owner.__dlpack__(stream=stream or _DLPACK_LEGACY)


def _torch(torch: Any, ordinal: int) -> int:
    quick = getattr(torch._C, _RAW_STREAM, None)
    return int(quick(ordinal) if quick else torch.cuda.current_stream(ordinal).cuda_stream)


def _cupy(cupy: Any, ordinal: int) -> int:
    with cupy.cuda.Device(ordinal):
        return int(cupy.cuda.get_current_stream().ptr)


_STREAMS: dict[str, Callable[[Any, int], int]] = {"torch": _torch, "cupy": _cupy}
_KNOWN = {*_STREAMS, "numpy"}
