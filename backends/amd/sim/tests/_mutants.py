"""Mutants of correct kernels: one wait, barrier, s_nop, mask or encoding field changed at a time."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warpwave.backends.amd import sim

from . import _compile, _spacing, _waitcheck
from ._drivers import Driver
from ._kernel_reasons import known_reason
from ._legal import legal
from ._listing import Instruction, Listing, listing
from ._reasons import general_reason

SEEDS = (0, 1, 2)  # wave interleavings
DATA = range(3)  # inputs, for mutants that the order of waves does not decide
MORE = range(3, 40)  # further inputs, for mutants that the first do not show
LIMIT = 2_000_000
FLOAT_OP = re.compile(r"v_(add|sub|mul|fma|max|min|med3|max3|min3|pk_(add|mul|fma|max|min))_(f16|f32|f64)")


@dataclass(frozen=True)
class Mutant:
    """A change of one instruction (None removes it)."""

    kind: str
    index: int
    old: str
    new: str | None

    @property
    def synchronises(self) -> bool:
        """Whether the order of waves may decide what becomes of it."""
        return self.kind.split()[-1] in ("wait", "counter", "barrier", "s_nop")

    def __str__(self) -> str:
        return f"{self.kind}: {self.old} -> {self.new or 'removed'}"


def waits(item: Instruction) -> Iterator[tuple[str, str | None]]:
    if item.name != "s_waitcnt":
        return
    yield "delete wait", None
    counters = re.findall(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)", item.text)
    for name, value in counters:
        weaker = item.text.replace(f"{name}({value})", f"{name}({int(value) + 1})")
        yield "weaken wait", weaker
        if len(counters) > 1:
            yield "drop counter", re.sub(rf"\s*&?\s*{name}\(\d+\)", "", item.text).replace("s_waitcnt &", "s_waitcnt")


def barriers(item: Instruction) -> Iterator[tuple[str, str | None]]:
    if item.name == "s_barrier":
        yield "delete barrier", None


def nops(item: Instruction) -> Iterator[tuple[str, str | None]]:
    if item.name == "s_nop":
        yield "delete s_nop", None
        count = int(item.text.split()[1], 0)
        if count:
            yield "shorten s_nop", f"s_nop {count - 1}"


STRICTER = {"gt": "ge", "ge": "gt", "lt": "le", "le": "lt"}


def masks(item: Instruction) -> Iterator[tuple[str, str | None]]:
    """Lanes that should be off stay on, comparisons off by one, lanes that are not switched on again."""
    operands = item.parsed.operands
    if item.name in ("s_and_saveexec_b64",):
        yield "drop mask", f"s_mov_b64 {operands[0]}, exec"
    if item.name == "s_or_b64" and operands[0] == "exec":
        yield "drop restore", None
    found = re.match(r"v_cmp_(gt|ge|lt|le)_([iu](32|64))", item.name)
    if found:
        yield "bound off by one", item.text.replace(f"_{found[1]}_", f"_{STRICTER[found[1]]}_", 1)


def banks(item: Instruction) -> Iterator[tuple[str, str | None]]:
    """The acc bit of one operand: v5 becomes a5 and the reverse."""
    if not item.name.startswith(("v_mfma", "v_smfmac", "ds_", "global_", "buffer_", "v_accvgpr_mov")):
        return
    for position, operand in enumerate(item.parsed.operands):
        if operand[0] in "va" and operand[:3] != "vcc":
            swapped = ("a" if operand[0] == "v" else "v") + operand[1:]
            parts = [swapped if i == position else o for i, o in enumerate(item.parsed.operands)]
            yield "flip acc", _rebuild(item, parts)


def _rebuild(item: Instruction, operands: list[str]) -> str:
    head, *_ = item.text.split()
    tail = item.text[item.text.rindex(item.parsed.operands[-1]) + len(item.parsed.operands[-1]) :]
    return f"{head} {', '.join(operands)}{tail}"


def bits(item: Instruction) -> Iterator[tuple[str, str | None]]:
    """Each bit of op_sel, op_sel_hi, neg_lo and neg_hi; a negated operand."""
    for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi"):
        value = item.parsed.modifiers.get(name)
        if not value:
            continue
        flags = value.strip("[]").split(",")
        for i, flag in enumerate(flags):
            flipped = [str(1 - int(flag)) if j == i else f for j, f in enumerate(flags)]
            yield f"flip {name}", item.text.replace(f"{name}:{value}", f"{name}:[{','.join(flipped)}]")
    if FLOAT_OP.match(item.name) and not item.name.startswith("v_pk") and item.parsed.suffix not in ("sdwa", "dpp"):
        for i, operand in enumerate(item.parsed.operands[1:], 1):
            if re.fullmatch(r"-?v(\d+|\[.*\])", operand):
                changed = operand[1:] if operand[0] == "-" else "-" + operand
                parts = [changed if j == i else o for j, o in enumerate(item.parsed.operands)]
                yield "flip neg", _rebuild(item, parts).replace("_e32 ", "_e64 ")


def offsets(item: Instruction) -> Iterator[tuple[str, str | None]]:
    for name in ("offset", "offset0", "offset1"):
        value = item.parsed.modifiers.get(name)
        if value and not value.startswith("swizzle"):
            number = int(value, 0)
            step = 1 if name != "offset" else 4
            for changed in (number + step, 0):
                if changed != number:
                    yield "change offset", item.text.replace(f"{name}:{value}", f"{name}:{changed}")


OTHER_SELECTOR = {"WORD_0": "WORD_1", "WORD_1": "WORD_0", "DWORD": "WORD_0"}
OTHER_SELECTOR |= {f"BYTE_{i}": f"BYTE_{i ^ 1}" for i in range(4)}


def lanes(item: Instruction) -> Iterator[tuple[str, str | None]]:
    """DPP controls, SDWA selectors and matrix broadcast fields."""
    for name in ("row_shr", "row_shl", "row_ror", "row_bcast"):
        value = item.parsed.modifiers.get(name)
        if value:
            other = {"15": "31", "31": "15"}.get(value) if name == "row_bcast" else str(int(value) % 15 + 1)
            yield "change DPP", item.text.replace(f"{name}:{value}", f"{name}:{other}")
    if "bound_ctrl" in item.parsed.modifiers:
        yield "drop bound_ctrl", re.sub(r"\s*bound_ctrl:\d", "", item.text)
    for name in ("src0_sel", "src1_sel", "dst_sel"):
        value = item.parsed.modifiers.get(name)
        if value:
            other = OTHER_SELECTOR[value]
            yield "change SDWA", item.text.replace(f"{name}:{value}", f"{name}:{other}")
    if "f8f6f4" in item.name:
        for name in ("cbsz", "blgp"):
            value = item.parsed.modifiers.get(name)
            if value:
                yield "change format", item.text.replace(f"{name}:{value}", f"{name}:{int(value) ^ 1}")


def caches(item: Instruction) -> Iterator[tuple[str, str | None]]:
    """The sc0 bit of an atomic asks for the old value."""
    if "_atomic_" in item.name and "sc0" in item.parsed.modifiers:
        yield "drop sc0", re.sub(r"\s*\bsc0\b", "", item.text.replace(item.parsed.operands[0] + ", ", "", 1))
    for name in ("sc0", "sc1", "nt"):
        if name in item.parsed.modifiers and not ("_atomic_" in item.name and name == "sc0"):
            yield "drop cache bit", re.sub(rf"\s*\b{name}\b", "", item.text)


SYNCHRONISATION = (waits, barriers, nops, masks)
ENCODING = (banks, bits, offsets, lanes, caches)


def mutants(code: Listing, target: str) -> list[Mutant]:
    """All mutants that the assembler accepts."""
    found = [
        Mutant(kind, index, item.text, new)
        for index, item in enumerate(code.code)
        for change in (*SYNCHRONISATION, *ENCODING)
        for kind, new in change(item)
    ]
    answers = legal([m.new or "s_nop 0" for m in found], target)
    return [m for m, good in zip(found, answers, strict=True) if good]


def chosen(found: list[Mutant], each: int) -> list[Mutant]:
    """At most `each` of the synchronisation mutants and of the others: a repeatable, even choice."""
    ranked = sorted(found, key=lambda m: zlib.crc32(f"{m.index}{m}".encode()))
    parts = ([m for m in ranked if m.synchronises], [m for m in ranked if not m.synchronises])
    return [m for part in parts for m in part[:each]]


def off_by(text: str, ulps: int) -> str:
    """The code on hardware whose square roots are one unit off, as the ISA allows: compilers correct them."""
    nudge = rf"\g<0>\n\ts_nop 0\n\tv_add_u32_e32 \g<1>, {ulps}, \g<1>"
    return re.sub(r"\tv_sqrt_f32_e32 (v\d+), .*", nudge, text) if ulps else text


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: caught (by which check), changed, equivalent (why), unreached or missed."""

    mutant: Mutant
    outcome: str
    detail: str = ""


@dataclass
class Subject:
    """A kernel on a target, with its right results."""

    item: Driver
    target: str
    more: Sequence[int] = MORE

    def __post_init__(self) -> None:
        self.text = self.item.text(self.target)
        self.kernel = _compile.kernel_name(self.text, self.item.kernel)
        self.code = listing(self.text, self.kernel)
        self.reached: set[int] = set()
        self.answers: dict[tuple[int, int], list[bytes]] = {}
        for data in DATA:
            self.right(data)

    def right(self, data: int, ulps: int = 0) -> list[bytes]:
        """The results of the kernel itself on one set of inputs."""
        if (data, ulps) not in self.answers:
            self.answers[data, ulps] = self.results(off_by(self.text, ulps), 0, data)
        return self.answers[data, ulps]

    def results(self, text: str, seed: int, data: int = 0) -> list[bytes]:
        return self.run(sim.load(text, target=self.target), seed, data)

    def run(self, program: sim.Program, seed: int, data: int) -> list[bytes]:
        def launch(grid, block, *args, **more):
            options = {"seed": seed, "max_instructions": LIMIT, "threads": 1, **more}  # kernels run side by side
            report = program.launch(self.kernel, grid=grid, block=block, args=list(args), **options)
            self.reached |= {i.asm_line - 1 for i in report.listing_lines if i.executed}

        launch.target, launch.data = self.target, data
        checks = self.item.run(launch, np.random.default_rng(data))
        return [np.ascontiguousarray(c.got).tobytes() for c in checks]

    def judge(self, mutant: Mutant) -> Verdict:
        runs = [(seed, 0) for seed in SEEDS] if mutant.synchronises else [(0, data) for data in DATA]
        if verdict := self.shown(mutant, runs):
            return verdict
        if reason := self.proof(mutant):
            return Verdict(mutant, "equivalent", reason)
        if verdict := self.shown(mutant, [(data if mutant.synchronises else 0, data) for data in self.more]):
            return verdict
        for ulps in (-1, 1) if "v_sqrt_f32" in self.text else ():
            if verdict := self.shown(mutant, [(0, data) for data in DATA], ulps):
                return verdict
        if reason := known_reason(self.item.kernel, self.code, mutant):
            return Verdict(mutant, "equivalent", reason)
        reached = self.code.code[mutant.index].line in self.reached
        return Verdict(mutant, "missed" if reached else "unreached")

    def shown(self, mutant: Mutant, runs: list[tuple[int, int]], ulps: int = 0) -> Verdict | None:
        """The first of the runs (seed, inputs) that tells the mutant from the kernel."""
        text = off_by(self.code.replaced(mutant.index, mutant.new), ulps)
        try:
            program = sim.load(text, target=self.target)
        except sim.LoadError:
            return Verdict(mutant, "caught", "load")
        for seed, data in runs:
            right = self.right(data, ulps)
            try:
                results = self.run(program, seed, data)
            except sim.SimError as error:
                return Verdict(mutant, "caught", error.kind)
            if results != right:
                return Verdict(mutant, "changed")
        return None

    def proof(self, mutant: Mutant) -> str | None:
        """An argument from the code alone; None when there is none."""
        edited = self.code.edited(mutant.index, mutant.new)
        if "s_nop" in mutant.old and not _spacing.violations(edited, self.target):
            return "every pair keeps the wait states of the table on all paths"
        if "s_waitcnt" in mutant.old and self._wait_redundant(edited):
            return "other waits cover every use on all paths"
        return general_reason(self.code, mutant)

    def _wait_redundant(self, edited: Listing) -> bool:
        """The static check does not know which LDS bytes a direct load fills: it may only weaken lgkmcnt then."""
        changed = [i for i, (a, b) in enumerate(zip(self.code.code, edited.code, strict=True)) if a != b]
        direct = any("load_lds" in i.name or "lds" in i.parsed.modifiers for i in self.code.code)
        before, after = (count_vector(c.code[changed[0]].text) for c in (self.code, edited))
        return not (direct and before != after) and not _waitcheck.violations(edited)


def count_vector(text: str) -> int | None:
    return _waitcheck.count(text, "vmcnt")
