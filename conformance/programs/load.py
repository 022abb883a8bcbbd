"""From a program to something that runs: the kernel of its source text, and its arguments by seed."""

from __future__ import annotations

import linecache
import types
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.programs.memory import memory
from warpwave.conformance.programs.model import Program
from warpwave.conformance.programs.render import render
from warpwave.conformance.programs.values import fill
from warpwave.tiles.runtime.kernel import Kernel


def kernel_of(program: Program, name: str = "program") -> Kernel:
    """The kernel; its source is where tracebacks, messages and capture look for it."""
    return kernel_of_source(render(program), name)


def kernel_of_source(text: str, name: str) -> Kernel:
    """The kernel `program` of a module's text."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(name.replace(":", "_"))
    exec(compile(text, file, "exec"), module.__dict__)
    kernel: Kernel = module.__dict__["program"]
    return kernel


def arguments_of(program: Program) -> dict[str, npt.NDArray[Any]]:
    """The arrays that the program is run on, outputs included: a fresh set with every call."""
    return {
        t.name: memory(t.layout, np.asarray(fill(t.values, t.dtype, t.shape, program.seed, i)))
        for i, t in enumerate(program.tensors)
    }
