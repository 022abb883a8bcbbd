"""Loading a module and launching its kernels on NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.backends.amd.sim import _sim
from warpwave.backends.amd.sim._code_object import find_llvm, is_code_object
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
    ) -> Report:
        """Run `kernel` over `grid` workgroups of `block` work-items.

        An array argument is a device buffer, written in place; a NumPy scalar is passed by value; an int is a
        64-bit value. `relax` names checks to switch off. The same seed gives the same interleaving.
        `trace` is (linear workgroup, wave): the report then holds what that wave did.
        """
        packed = [_pack(arg, i) for i, arg in enumerate(args)]
        size = _dim3(grid), _dim3(block)
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
        )
        return from_raw(raw, *size)


def _dim3(size: Sequence[int]) -> tuple[int, int, int]:
    full = tuple(size) + (1,) * (3 - len(size))
    return full[0], full[1], full[2]


def _pack(arg: Any, index: int) -> tuple[Any, int, bool]:
    """(bytes, alignment, writable) for the binding; alignment 0 marks a device buffer."""
    if isinstance(arg, np.ndarray):
        if not arg.flags.c_contiguous:
            raise TypeError(f"argument {index}: a device buffer must be C-contiguous")
        return arg.reshape(-1).view(np.uint8), 0, bool(arg.flags.writeable)
    if isinstance(arg, int) and not isinstance(arg, bool):
        arg = np.int64(arg)
    if not isinstance(arg, np.generic):
        raise TypeError(f"argument {index}: pass a NumPy array or scalar, not {type(arg).__name__}")
    return np.frombuffer(arg.tobytes(), np.uint8), min(8, arg.dtype.itemsize), False


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
