"""A kernel built for one AMD target, and its execution on the simulator."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.backends.amd import sim
from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.build import compile_to_asm
from warpwave.backends.amd.grid_order import choose_order
from warpwave.backends.amd.lower.lower import MAX_GRID_RANK, Lowered
from warpwave.backends.amd.lower.printing import CAPACITY, show_prints
from warpwave.backends.amd.resources import read_resources
from warpwave.tiles.errors import CheckFailed, ResourceError, UnsupportedError
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.reference import Extents, launch_grid
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.types import TensorType, Type

MAX_GRID = 2**31 - 1
ALL_WIDE = 2**32 - 1
MAX_ROW_BYTES = 2**20  # a tile has at most 2048 rows, so that offsets within it stay below 2**31


@dataclass(frozen=True)
class AmdProgram:
    """Built code of one kernel."""

    kernel: Kernel
    target: Target
    lowered: Lowered

    @property
    def source(self) -> str:
        """The generated HIP C++."""
        return self.lowered.source

    @property
    def asm(self) -> str:
        """The compiler's assembly, for tensors whose rows can be moved 16 bytes at a time."""
        return self.asm_for(ALL_WIDE)

    def asm_for(self, wide: int) -> str:
        """The assembly of a variant: bit i of `wide` says whether the i-th tensor has wide rows."""
        return compile_to_asm(self.lowered.built_source, self.target.name, (f"-DWIDE={wide}u",))

    @cached_property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, scratch, shared memory, waves per SIMD."""
        return read_resources(self.asm, self.target)

    @cached_property
    def _loaded(self) -> dict[int, sim.Program]:
        return {}

    def _simulated(self, wide: int) -> sim.Program:
        if wide not in self._loaded:
            self._loaded[wide] = sim.load(self.asm_for(wide), target=self.target.name)
        return self._loaded[wide]

    def explain(self) -> str:
        """The plan's choices and reasons."""
        lines = [f"  {reason}" for reason in self.lowered.plan.reasons]
        return "\n".join([f"{self.target.name}, {self.lowered.plan.waves} waves of 64", *lines])

    def check_resources(self) -> None:
        """ResourceError if the compiler spilled: slow, and never what the schedule assumes."""
        used = self.resources
        if used["spills"] or used["scratch_bytes"]:
            raise ResourceError(
                f"{self.kernel.name} does not fit the registers of {self.target.name}: {used['spills']} spills, "
                f"{used['scratch_bytes']} bytes of scratch a lane ({used['vgprs']} VGPRs, {used['agprs']} AGPRs)",
                loc=self.kernel.loc,
                hint="use smaller tiles, or more waves (compile(..., waves=8))",
            )

    def run(self, arguments: Mapping[str, Array | int | float | bool], **simulation: Any) -> sim.Report | None:
        """Execute on the simulator; arrays are written in place."""
        sizes = launch_grid(self.kernel, {n: _described(a) for n, a in arguments.items()})
        blocks = int(np.prod(sizes, dtype=np.int64))
        if blocks == 0:
            return None
        if blocks > MAX_GRID:
            raise UnsupportedError(f"{blocks} blocks, a launch has at most {MAX_GRID}", loc=self.kernel.loc)
        status = np.zeros(1, np.int32)
        packed: list[Any] = []
        atomic = {op.operands[0] for op in walk(self.kernel.body) if op.name == "atomic_add"}
        for argument, value in zip(arguments.values(), self.kernel.params, strict=True):
            packed += _pack(argument, value.type, unit=4 if value in atomic else 1)
        packed += [np.int32(n) for n in (*sizes, 1, 1, 1, 1)[:MAX_GRID_RANK]]
        rows, cols = (1, 1, *sizes)[-2:]
        order = choose_order(rows, cols, self.target.chips[0].xcds)
        packed += [np.int32(order.chunk), np.int32(order.window)]
        threads = (self.lowered.plan.threads, 1, 1)
        program = self._simulated(_wide_tensors(arguments))
        prints = [np.zeros(CAPACITY, np.uint64)] if self.lowered.prints else []
        for words in prints:
            words[0] = 1  # itself
        report = program.launch(self.kernel.name, (blocks, 1, 1), threads, [*packed, status, *prints], **simulation)
        for words in prints:
            show_prints(self.lowered.prints, len(sizes), words)
        self._raise_failed_check(int(status[0]))
        return report

    def _raise_failed_check(self, number: int) -> None:
        if number:
            op = self.lowered.checks[number - 1]
            raise CheckFailed(op.attrs["message"] or "check failed", loc=op.loc)


def _described(argument: Array | int | float | bool) -> Any:
    return Extents(argument.shape) if isinstance(argument, Array) else argument


def _pack(argument: Array | int | float | bool, type_: Type, unit: int) -> list[Any]:
    """The kernel's C parameters for one argument; `unit` is what its memory is accessed in, at least."""
    if not isinstance(argument, Array):
        assert not isinstance(type_, TensorType)
        return [type_.dtype.numpy.type(argument)]
    buffer, offset = _span(argument, unit)
    strides = [np.int64(s) for s in argument.strides]
    return [buffer, np.int64(offset), *strides, *(np.int32(n) for n in argument.shape)]


def _span(array: Array, unit: int) -> tuple[npt.NDArray[np.uint8], int]:
    """The bytes from an array's lowest to its highest element, in whole units, and where its first element is there.

    An atomic addition to 16 bits exchanges the aligned word around them, which never crosses an allocation.
    """
    if array.host is None:
        raise UnsupportedError(f"the simulator runs on arrays in host memory, got one on {array.device}")
    if 0 in array.shape:
        return np.zeros(1, np.uint8), 0
    low, high = np.lib.array_utils.byte_bounds(array.host)
    low, high = low // unit * unit, -(-high // unit) * unit
    memory = (ctypes.c_uint8 * (high - low)).from_address(low)
    return np.ctypeslib.as_array(memory), array.address - low


def _wide_tensors(arguments: Mapping[str, Array | int | float | bool]) -> int:
    """One bit for each tensor, set if it has wide rows; bits of no tensor are set, as in ALL_WIDE."""
    tensors = [a for a in arguments.values() if isinstance(a, Array)]
    narrow = sum(1 << i for i, array in enumerate(tensors) if not has_wide_rows(array))
    return ALL_WIDE & ~narrow


def has_wide_rows(array: Array) -> bool:
    """Whether rows are contiguous, aligned and of whole 16-byte units, and offsets within a tile fit 32 bits."""
    if not array.shape:
        return False
    size = array.dtype.nbytes
    *outer, last = array.strides
    aligned = array.address % 16 == 0 and all(s * size % 16 == 0 for s in outer)
    whole = last == 1 and array.shape[-1] * size % 16 == 0
    return aligned and whole and all(0 <= s * size < MAX_ROW_BYTES for s in outer)
