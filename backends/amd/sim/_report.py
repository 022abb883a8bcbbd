"""What a launch counted: as data, as a table, and as an annotated listing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

# Flag bits of core/registry.hpp, most specific class first.
_CLASSES = (
    ("mfma", 1 << 5),
    ("lds", 1 << 4),
    ("scalar memory", 1 << 2),
    ("vector memory", 1 << 3),
    ("branch", 1 << 6),
    ("vector", 1 << 0),
    ("scalar", 1 << 1),
)
_WAITS = ("s_waitcnt", "s_nop", "s_sleep")
_BARRIERS = ("s_barrier",)
_STORE = 1 << 16


@dataclass(frozen=True)
class InstructionReport:
    """One instruction of the program and what its executions did."""

    asm_line: int
    text: str
    source: str
    kind: str
    executed: int
    active_lanes: int
    bytes: int
    lines: int
    lds_cycles: int
    lds_conflicts: int
    is_store: bool

    @property
    def coalescing(self) -> float | None:
        """Bytes used per byte of the 128-byte lines touched; None where no global memory is touched."""
        return self.bytes / (128 * self.lines) if self.lines else None


@dataclass(frozen=True)
class TraceStep:
    """One instruction of the traced wave, with the values that it left in what it wrote.

    A vector result is that of the lowest active lane; a result wider than 64 bits shows its first 64.
    """

    asm_line: int
    text: str
    source: str
    exec: int
    scc: bool
    results: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Report:
    """Counts of one launch, all of the simulated execution except `seconds`, which is host time."""

    kernel: str
    target: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    instructions: int
    workgroups: int
    waves: int
    barriers: int
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    waves_per_group: int
    occupancy: int
    seconds: float
    listing_lines: tuple[InstructionReport, ...] = field(repr=False)
    trace: tuple[TraceStep, ...] = field(repr=False)
    recordings: tuple[tuple[int, list[bytes]], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """The table as plain text."""
        lines = (f"  {name:<22}{value}" for name, value in _totals(self))
        return "\n".join([_title(self), *lines])

    def by_class(self) -> dict[str, int]:
        """Executed wave-instructions by class, in a fixed order."""
        counts = {name: 0 for name, _ in _CLASSES} | {"wait": 0, "barrier": 0, "other": 0}
        for line in self.listing_lines:
            counts[line.kind] += line.executed
        return counts

    def by_mnemonic(self) -> dict[str, int]:
        """Executed wave-instructions by mnemonic, most frequent first."""
        counts: dict[str, int] = {}
        for line in self.listing_lines:
            if line.executed:
                name = line.text.split(None, 1)[0]
                counts[name] = counts.get(name, 0) + line.executed
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def bank_conflicts(self) -> int:
        """LDS clocks lost to bank conflicts, over all waves."""
        return sum(line.lds_conflicts for line in self.listing_lines)

    @property
    def bytes_loaded(self) -> int:
        """Bytes that active lanes read from global memory and scratch."""
        return self._bytes(stores=False)

    @property
    def bytes_stored(self) -> int:
        """Bytes that active lanes wrote to global memory and scratch."""
        return self._bytes(stores=True)

    def _bytes(self, *, stores: bool) -> int:
        memory = (line for line in self.listing_lines if line.kind == "vector memory")
        return sum(line.bytes for line in memory if line.is_store == stores)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, with the totals that the properties give."""
        totals = {
            "by_class": self.by_class(),
            "bank_conflicts": self.bank_conflicts,
            "bytes_loaded": self.bytes_loaded,
            "bytes_stored": self.bytes_stored,
        }
        data = asdict(self)
        del data["recordings"]  # raw steps, for the timing model only
        return {**data, **totals}

    def table(self) -> Table:
        """The totals, for a terminal: `rich.print(report.table())`."""
        table = _table(self, show_header=False)
        for name, value in _totals(self):
            table.add_row(name, value)
        return table

    def listing(self, *, executed_only: bool = False) -> Table:
        """Every instruction with its counts and source line, for a terminal."""
        table = _table(self, show_header=True)
        for heading in ("line", "instruction"):
            table.add_column(heading, no_wrap=True)
        for heading in ("waves", "lanes", "bytes", "coalesced", "conflicts"):
            table.add_column(heading, justify="right")
        table.add_column("source")
        for line in self.listing_lines:
            if line.executed or not executed_only:
                table.add_row(*_listing_row(line), style="" if line.executed else "dim")
        return table

    def trace_table(self) -> Table:
        """The steps of the traced wave, for a terminal."""
        table = _table(self, show_header=True)
        table.add_column("step", justify="right")
        table.add_column("line", justify="right")
        table.add_column("instruction", no_wrap=True)
        table.add_column("lanes", justify="right")
        for heading in ("scc", "results", "source"):
            table.add_column(heading)
        for number, step in enumerate(self.trace):
            table.add_row(str(number), *_trace_row(step))
        return table


def from_raw(raw: Mapping[str, Any], grid: tuple[int, int, int], block: tuple[int, int, int]) -> Report:
    """The binding's dictionary as a Report."""
    made_here = {"grid", "block", "listing_lines", "trace", "recordings"}
    counts = {name: raw[name] for name in Report.__dataclass_fields__.keys() - made_here}
    lines = tuple(_instruction(*entry) for entry in raw["insts"])
    steps = tuple(_step(lines, *entry) for entry in raw["trace"])
    recordings = tuple(raw["recordings"])
    return Report(grid=grid, block=block, listing_lines=lines, trace=steps, recordings=recordings, **counts)


def _step(
    lines: tuple[InstructionReport, ...], index: int, exec_mask: int, scc: bool, results: list[tuple[str, int]]
) -> TraceStep:
    line = lines[index]
    return TraceStep(line.asm_line, line.text, line.source, exec_mask, scc, tuple(results))


def _instruction(
    asm_line: int,
    text: str,
    source: str,
    flags: int,
    executed: int,
    active_lanes: int,
    size: int,
    lines: int,
    lds_cycles: int,
    lds_ideal: int,
) -> InstructionReport:
    conflicts = lds_cycles - lds_ideal
    kind, store = _kind(text, flags), bool(flags & _STORE)
    return InstructionReport(
        asm_line, text, source, kind, executed, active_lanes, size, lines, lds_cycles, conflicts, store
    )


def _kind(text: str, flags: int) -> str:
    if text.startswith(_WAITS):
        return "wait"
    if text.startswith(_BARRIERS):
        return "barrier"
    return next((name for name, bit in _CLASSES if flags & bit), "other")


def _table(report: Report, *, show_header: bool) -> Table:
    """An empty table; rich is imported here because most uses of the simulator print nothing."""
    from rich import box
    from rich.table import Table

    return Table(title=_title(report), box=box.SIMPLE, show_header=show_header)


def _title(report: Report) -> str:
    return f"{report.kernel} on simulated {report.target}"


def _totals(report: Report) -> list[tuple[str, str]]:
    registers = f"{report.vgprs} VGPR, {report.agprs} AGPR, {report.sgprs} SGPR"
    memory = f"{report.lds_bytes} B LDS, {report.scratch_bytes} B scratch per lane"
    rows = [
        ("grid, block", f"{report.grid}, {report.block}"),
        ("waves", f"{report.waves} in {report.workgroups} workgroups"),
        ("registers", registers),
        ("memory", memory),
        ("occupancy", f"{report.occupancy} waves per SIMD"),
        ("wave-instructions", f"{report.instructions:,}"),
    ]
    rows += [(f"  {name}", f"{count:,}") for name, count in report.by_class().items() if count]
    rows += [
        ("barrier rounds", f"{report.barriers:,}"),
        ("global bytes", f"{report.bytes_loaded:,} loaded, {report.bytes_stored:,} stored"),
        ("LDS conflict clocks", f"{report.bank_conflicts:,}"),
        ("host time", f"{report.seconds * 1e3:.1f} ms"),
    ]
    return rows


def _listing_row(line: InstructionReport) -> tuple[str, ...]:
    lanes = f"{line.active_lanes / line.executed:.0f}" if line.executed and line.active_lanes else ""
    coalesced = "" if line.coalescing is None else f"{line.coalescing:.0%}"
    counts = (line.executed, lanes, line.bytes, coalesced, line.lds_conflicts)
    return (str(line.asm_line), line.text, *(str(c) if c else "" for c in counts), line.source)


def _trace_row(step: TraceStep) -> tuple[str, ...]:
    results = "  ".join(f"{name}={value:#x}" for name, value in step.results)
    lanes = step.exec.bit_count()
    return (str(step.asm_line), step.text, str(lanes), str(int(step.scc)), results, step.source)
