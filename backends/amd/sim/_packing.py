"""Kernel arguments as the launch takes them: device buffers and bytes by value, checked against the metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpwave.backends.amd.sim._errors import LoadError
from warpwave.backends.amd.sim._metadata import KernelArgument, KernelInfo

# (bytes, alignment, writable, undefined) for the binding; alignment 0 marks a device buffer.
Packed = tuple[Any, int, bool, bool]
STORABLE = "biufcV"  # kinds of NumPy types whose bytes a device can hold; V: bfloat16, the fp8 types and records


class _Undefined(np.ndarray):
    """An array whose contents the simulator takes as never written; what is computed from it is a plain array."""

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(np.ndarray)
        return plain[()] if return_scalar else plain


def undefined(shape: int | Sequence[int], dtype: Any) -> np.ndarray:
    """A device buffer of which every byte is undefined at the start of each launch that gets it.

    A kernel that lets such a byte reach an address, a branch or memory without writing it first is stopped.
    """
    return np.zeros(shape, dtype).view(_Undefined)


def pack(args: Sequence[Any], kernel: str, info: KernelInfo | None) -> list[Packed]:
    """The arguments for the binding; `info` is None where the module has no metadata of the kernel."""
    if isinstance(args, str | bytes | np.ndarray | np.generic):
        raise TypeError(f"args of {kernel} is a list of arguments, not {_described(args)}")
    if info is None:
        return [_packed(arg, f"argument {i} of {kernel}", None) for i, arg in enumerate(args)]
    if len(args) != len(info.arguments):
        wanted = ", ".join(f"{i}: {_wanted(slot)}" for i, slot in enumerate(info.arguments))
        raise LoadError(f"{kernel} takes {len(info.arguments)} arguments ({wanted}); {len(args)} given")
    return [
        _packed(arg, _place(slot, i, kernel), slot)
        for i, (arg, slot) in enumerate(zip(args, info.arguments, strict=True))
    ]


def _place(slot: KernelArgument, index: int, kernel: str) -> str:
    name = f" ({slot.name})" if slot.name else ""
    return f"argument {index}{name} of {kernel}"


def _wanted(slot: KernelArgument) -> str:
    what = "a pointer" if slot.is_pointer else f"{slot.size} bytes by value"
    return f"{slot.name}, {what}" if slot.name else what


def _described(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        return f"an array of {arg.dtype}"
    if isinstance(arg, np.generic):
        return f"{arg.dtype}, {arg.dtype.itemsize} bytes"
    return type(arg).__name__


def _packed(arg: Any, place: str, slot: KernelArgument | None) -> Packed:
    if isinstance(arg, np.ndarray):
        if slot and not slot.is_pointer:
            scalar = "np.int32(n)" if slot.size == 4 else "a NumPy scalar"
            raise LoadError(f"{place} is {_wanted(slot)}, such as {scalar}; {_described(arg)} was given")
        return _buffer(arg, place)
    data = _value(arg, place, slot)
    if slot is None:
        return np.frombuffer(data, np.uint8), min(8, len(data)), False, False
    if len(data) != slot.size:
        raise LoadError(f"{place} is {_wanted(slot)}; {_described(arg)} was given")
    # The lowest set bit of the offset is an alignment that leads there from the end of the argument before.
    return np.frombuffer(data, np.uint8), slot.offset & -slot.offset or 1, False, False


def _buffer(arg: np.ndarray, place: str) -> Packed:
    if arg.dtype.kind not in STORABLE or arg.dtype.hasobject:
        raise TypeError(f"{place}: a device cannot hold {_described(arg)}; pass numbers")
    if not arg.dtype.isnative:
        raise TypeError(f"{place}: {_described(arg)} in foreign byte order; a device is little-endian")
    if isinstance(arg, np.ma.MaskedArray):
        raise TypeError(f"{place}: a masked array; pass its .data or a filled copy")
    if not arg.flags.c_contiguous:
        raise TypeError(
            f"{place}: a device buffer must be C-contiguous, and this array of shape {arg.shape} has strides of "
            f"{arg.strides} bytes; pass np.ascontiguousarray(...), or the array that it is a view of"
        )
    return arg.reshape(-1).view(np.uint8), 0, bool(arg.flags.writeable), isinstance(arg, _Undefined)


def _value(arg: Any, place: str, slot: KernelArgument | None) -> bytes:
    if isinstance(arg, bytes):
        return arg
    if isinstance(arg, int) and not isinstance(arg, bool):
        size = slot.size if slot else 8
        if not -(1 << 8 * size - 1) <= arg < 1 << 8 * size:
            raise LoadError(f"{place}: {arg} does not fit {size} bytes")
        return arg.to_bytes(size, "little", signed=arg < 0)
    if not isinstance(arg, np.generic):
        hint = {float: ", such as np.float32(x)", bool: ", such as np.bool_(x)"}.get(type(arg), "")
        raise TypeError(f"{place}: pass a NumPy array or scalar{hint}, not {_described(arg)}")
    return arg.tobytes()
