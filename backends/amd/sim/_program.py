"""Loading a module and launching its kernels on NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from warpwave.backends.amd.sim import _sim
from warpwave.backends.amd.sim._code_object import find_llvm, is_code_object
from warpwave.backends.amd.sim._errors import LoadError
from warpwave.backends.amd.sim._metadata import KernelArgument, KernelInfo, kernels
from warpwave.backends.amd.sim._report import Report, from_raw


class Program:
    """Decoded code of one module for one target; launch() runs a kernel of it."""

    def __init__(self, code: str | bytes, target: str = "") -> None:
        """From assembly text, or from the bytes of a code object (LLVM's disassembler reads those)."""
        if isinstance(code, bytes):
            self._impl = _sim.Program.from_code_object(code, target, find_llvm())
        else:
            self._impl = _sim.Program(code, target)

    @property
    def target(self) -> str:
        """The GPU that the code is for: gfx942 or gfx950."""
        return str(self._impl.target)

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels in the module."""
        return list(self._impl.kernels)

    @cached_property
    def info(self) -> dict[str, KernelInfo]:
        """What the module's metadata says of its kernels; hand-written code may say nothing."""
        return kernels(self._impl.metadata)

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        dynamic_lds: int = 0,
        seed: int = 0,
        threads: int = 0,
        relax: Iterable[str] = (),
        max_instructions: int = 0,
        trace: tuple[int, int] | None = None,
        accumulate: Literal["cdna3", "sequential-rne"] = "cdna3",
    ) -> Report:
        """Run `kernel` over `grid` workgroups of `block` work-items.

        An array argument is a device buffer, written in place; a NumPy scalar, or the bytes of a struct, is
        passed by value; an int takes the width that the kernel's metadata states, else 64 bits. `relax` names
        checks to switch off. The same seed gives the same interleaving. `trace` is (linear workgroup, wave):
        the report then holds what that wave did. `accumulate` is the rule by which matrix instructions add
        products: the hardware's, or one fused multiply-add per k as other emulators have it.
        """
        info = self.info.get(kernel)
        size = _dim3(grid), _dim3(block)
        if info:
            _check(info, args, size[1])
        slots = info.arguments if info else [None] * len(args)
        packed = [_pack(arg, i, slot) for i, (arg, slot) in enumerate(zip(args, slots, strict=True))]
        raw = self._impl.launch(
            kernel,
            *size,
            packed,
            dynamic_lds,
            seed,
            threads,
            list(relax),
            max_instructions,
            trace or (-1, 0),
            accumulate,
        )
        return from_raw(raw, *size)


def _dim3(size: Sequence[int]) -> tuple[int, int, int]:
    full = tuple(size) + (1,) * (3 - len(size))
    return full[0], full[1], full[2]


def _check(info: KernelInfo, args: Sequence[Any], block: tuple[int, int, int]) -> None:
    wanted = [f"{slot.kind} of {slot.size} bytes" for slot in info.arguments]
    if len(args) != len(wanted):
        raise LoadError(f"{info.name} takes {len(wanted)} arguments ({', '.join(wanted)}); {len(args)} given")
    for i, (arg, slot) in enumerate(zip(args, info.arguments, strict=True)):
        if isinstance(arg, np.ndarray) and not slot.is_pointer:
            raise LoadError(f"argument {i} of {info.name} is {wanted[i]}; an array was given")
    threads = block[0] * block[1] * block[2]
    if threads > info.max_workgroup_size:
        raise LoadError(f"{info.name} was compiled for {info.max_workgroup_size} work-items, {threads} asked for")


class _Undefined(np.ndarray):
    """An array whose contents the simulator takes as never written."""


def undefined(shape: int | Sequence[int], dtype: Any) -> np.ndarray:
    """A device buffer of which every byte is undefined at the start of each launch that gets it.

    A kernel that lets such a byte reach an address, a branch or memory without writing it first is stopped.
    """
    return np.zeros(shape, dtype).view(_Undefined)


def _pack(arg: Any, index: int, slot: KernelArgument | None) -> tuple[Any, int, bool, bool]:
    """(bytes, alignment, writable, undefined) for the binding; alignment 0 marks a device buffer."""
    if isinstance(arg, np.ndarray):
        if not arg.flags.c_contiguous:
            raise TypeError(f"argument {index}: a device buffer must be C-contiguous")
        return arg.reshape(-1).view(np.uint8), 0, bool(arg.flags.writeable), isinstance(arg, _Undefined)
    data = _value(arg, index, slot.size if slot else 8)
    if slot is None:
        return np.frombuffer(data, np.uint8), min(8, len(data)), False, False
    if len(data) != slot.size:
        raise LoadError(f"argument {index} takes {slot.size} bytes; {len(data)} given")
    # The lowest set bit of the offset is an alignment that leads there from the end of the argument before.
    return np.frombuffer(data, np.uint8), slot.offset & -slot.offset or 1, False, False


def _value(arg: Any, index: int, size: int) -> bytes:
    if isinstance(arg, bytes):
        return arg
    if isinstance(arg, int) and not isinstance(arg, bool):
        if not -(1 << 8 * size - 1) <= arg < 1 << 8 * size:
            raise LoadError(f"argument {index}: {arg} does not fit {size} bytes")
        return arg.to_bytes(size, "little", signed=arg < 0)
    if not isinstance(arg, np.generic):
        raise TypeError(f"argument {index}: pass a NumPy array or scalar, not {type(arg).__name__}")
    return arg.tobytes()


def load(source: str | bytes | os.PathLike[str], target: str = "") -> Program:
    """Load code for gfx942 or gfx950, from any of the forms it comes in.

    `source` is LLVM assembly text, the bytes of a code object, or the path of a file that holds either.
    Assembly and code objects name their target; `target` is needed only where they do not, and to pick
    from an offload bundle.
    """
    if isinstance(source, bytes):
        return Program(source, target)
    if isinstance(source, str) and "\n" in source:
        return Program(source, target)
    data = Path(source).read_bytes()
    return Program(data if is_code_object(data) else data.decode(), target)
