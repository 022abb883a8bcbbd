"""Runs one built kernel on the simulator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.backends.amd import sim
from warpwave.backends.amd.arguments import Argument, Geometry, absolute
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.cache import OnceCache
from warpwave.tiles.runtime.spans import Span
from warpwave.tiles.types import TensorType


@dataclass
class Simulation:
    """One kernel's programs, one for each variant."""

    kernel: Kernel
    arch: str
    threads: int
    asm_for: Callable[[int], str]
    _programs: OnceCache[sim.Program] = field(default_factory=lambda: OnceCache(lambda _: True))

    def launch(
        self,
        arguments: Mapping[str, Argument],
        geometry: Geometry,
        prints: Sequence[npt.NDArray[np.uint64]],
        **how: Any,
    ) -> tuple[int, sim.Report]:
        """Execute; returns the number of the check that failed, or 0, and the report."""
        program = self.program(geometry.wide)
        spans = absolute(arguments, geometry.spans)
        packed: list[Any] = []
        for argument, value, memory in zip(arguments.values(), self.kernel.params, spans, strict=True):
            packed += _parameters(argument, value.type, memory)
        packed += [np.int32(n) for n in geometry.tail]
        status = np.zeros(1, np.int32)
        grid, block = (geometry.blocks, 1, 1), (self.threads, 1, 1)
        report = program.launch(self.kernel.name, grid, block, [*packed, status, *prints], **how)
        return int(status[0]), report

    def program(self, wide: int) -> sim.Program:
        """The decoded code of a variant."""
        return self._programs.get(wide, lambda: sim.load(self.asm_for(wide), target=self.arch))


def _parameters(argument: Argument, type_: Any, memory: Span | None) -> list[Any]:
    if not isinstance(argument, Array):
        assert not isinstance(type_, TensorType)
        return [type_.dtype.numpy.type(argument)]
    assert memory is not None
    strides, shape = (np.int64(s) for s in argument.strides), (np.int32(n) for n in argument.shape)
    return [_buffer(argument, memory), np.int64(memory.offset), *strides, *shape]


def _buffer(array: Array, memory: Span) -> npt.NDArray[np.uint8]:
    if array.host is None:
        raise UnsupportedError(
            f"the simulator runs on arrays in host memory, got one on {array.device}",
            hint="copy it to the host, or compile without ':sim'",
        )
    if not memory.nbytes:
        return np.zeros(1, np.uint8)
    raw = (ctypes.c_uint8 * memory.nbytes).from_address(memory.address)
    return np.ctypeslib.as_array(raw)
