"""Loading a module and launching its kernels on NumPy arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from warpwave.backends.amd.sim import _sim
from warpwave.backends.amd.sim._code_object import find_llvm, is_code_object
from warpwave.backends.amd.sim._errors import LoadError
from warpwave.backends.amd.sim._metadata import KernelInfo, kernels
from warpwave.backends.amd.sim._options import Size, natural, recorded, relaxed, size, traced
from warpwave.backends.amd.sim._packing import pack
from warpwave.backends.amd.sim._report import Report, from_raw

TARGETS = ("gfx942", "gfx950")


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
    def facts(self) -> list[dict[str, Any]]:
        """What the timing model needs of each instruction, by its position in the code."""
        return list(self._impl.facts())

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
        record: Sequence[int] = (),
    ) -> Report:
        """Run `kernel` over `grid` workgroups of `block` work-items.

        An array argument is a device buffer, written in place; a NumPy scalar, or the bytes of a struct, is
        passed by value; an int takes the width that the kernel's metadata states, else 64 bits. `relax` names
        checks to switch off. The same seed gives the same interleaving. `trace` is (linear workgroup, wave):
        the report then holds what that wave did. `accumulate` is the rule by which matrix instructions add
        products: the hardware's, or one fused multiply-add per k as other emulators have it. `record` names linear
        workgroups: only these run, and the report holds the steps of their waves for the timing model.
        """
        if kernel not in self.kernels:
            raise LoadError(f"there is no kernel {kernel!r} in the program; it has {', '.join(self.kernels) or 'none'}")
        info = self.info.get(kernel)
        sizes = size("grid", grid), size("block", block)
        _check_block(info, sizes[1])
        raw = self._impl.launch(
            kernel,
            *sizes,
            pack(args, kernel, info),
            natural("dynamic_lds", dynamic_lds),
            natural("seed", seed),
            natural("threads", threads),
            relaxed(relax, _sim.check_names()),
            natural("max_instructions", max_instructions),
            traced(trace, *sizes),
            accumulate,
            recorded(record, sizes[0]),
        )
        return from_raw(raw, *sizes)


def _check_block(info: KernelInfo | None, block: Size) -> None:
    threads = block[0] * block[1] * block[2]
    if info and threads > info.max_workgroup_size:
        raise LoadError(f"{info.name} was compiled for {info.max_workgroup_size} work-items, {threads} asked for")


def load(source: str | bytes | os.PathLike[str], target: str = "") -> Program:
    """Load code for gfx942 or gfx950, from any of the forms it comes in.

    `source` is LLVM assembly text, the bytes of a code object, or the path of a file that holds either.
    Assembly and code objects name their target; `target` is needed only where they do not, and to pick
    from an offload bundle.
    """
    if isinstance(source, bytes):
        return _from_bytes(source, target, "the bytes given")
    if isinstance(source, str) and "\n" in source:
        return _from_text(source, target, "the text given")
    return _from_bytes(Path(source).read_bytes(), target, f"{os.fspath(source)}")


def _from_bytes(data: bytes, target: str, where: str) -> Program:
    if is_code_object(data):
        return Program(data, target)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise LoadError(f"{where}: neither assembly text nor a code object") from None
    return _from_text(text, target, where)


def _from_text(text: str, target: str, where: str) -> Program:
    if ".amdhsa_kernel" not in text:
        raise LoadError(f"{where}: no kernel in it; assembly of a kernel (clang -S) or a code object is wanted")
    named = re.search(r"^\s*\.amdgcn_target\s+\"?[\w-]*?(gfx\w+)", text, re.M)
    for name in (target, named[1] if named else ""):
        if name and name not in TARGETS:
            raise LoadError(f"{where}: unknown target {name}; the simulator knows {' and '.join(TARGETS)}")
    return Program(text, target)
