"""From a case's text to the case."""

from __future__ import annotations

from warpwave.conformance.ledger import ENTRIES
from warpwave.conformance.probes import PROBES, KernelProbe
from warpwave.conformance.programs.generate import program_of_seed
from warpwave.conformance.suite import ops
from warpwave.conformance.suite.case import Case, program_case
from warpwave.conformance.suite.library import library_case
from warpwave.tiles.errors import TileValueError


def probe_names() -> list[str]:
    """The cases of the ledger's kernels: their bits on a device confirm or refute what the ledger predicts."""
    return [f"ledger:{name}" for name, probe in PROBES.items() if isinstance(probe, KernelProbe)]


def probe_case(id_: str, probe: KernelProbe) -> Case:
    """The case of a ledger's kernel."""
    entry = next((e for e in ENTRIES if e.name == probe.name), None)
    undefined = entry is not None and entry.contract == "undefined"
    return Case(id_, probe.kernel, probe.arguments, probe.constants, undefined=undefined)


def make_case(id_: str) -> Case:
    """The case of `program:<seed>`, `ops:<family>:<dtype>`, `kernel:<name>:<sample>` or `ledger:<name>`."""
    kind, *rest = id_.split(":")
    if kind == "program" and len(rest) == 1 and rest[0].isdecimal():
        return program_case(id_, program_of_seed(int(rest[0])))
    if kind == "ops" and id_ in ops.case_names():
        program, labels = ops.make(*rest)
        return program_case(id_, program, labels)
    if kind == "kernel" and len(rest) == 2 and rest[1].isdecimal():
        return library_case(id_, rest[0], int(rest[1]))
    probe = PROBES.get(rest[0]) if kind == "ledger" else None
    if isinstance(probe, KernelProbe):
        return probe_case(id_, probe)
    raise TileValueError(f"there is no case {id_!r}", hint="cases are program:7, ops:functions:f32, kernel:softmax:0")
