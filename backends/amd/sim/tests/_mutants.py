"""Mutants of correct kernels: one wait, barrier, s_nop, mask or encoding field changed at a time."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warpwave.backends.amd import sim

from . import _compile, _spacing, _waitcheck
from ._drivers import Driver
from ._legal import legal
from ._listing import Instruction, Listing, listing

SEEDS = (0, 1, 2)  # wave interleavings
DATA = (0, 1, 2)  # inputs, for mutants that the order of waves does not decide
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

    def __post_init__(self) -> None:
        self.text = self.item.text(self.target)
        self.kernel = _compile.kernel_name(self.text, self.item.kernel)
        self.code = listing(self.text, self.kernel)
        self.reached: set[int] = set()
        self.right = [self.results(self.text, 0, data) for data in DATA]

    def results(self, text: str, seed: int, data: int = 0) -> list[bytes]:
        program = sim.load(text, target=self.target)

        def launch(grid, block, *args, **more):
            report = program.launch(
                self.kernel, grid=grid, block=block, args=list(args), seed=seed, max_instructions=LIMIT, **more
            )
            self.reached |= {i.asm_line - 1 for i in report.listing_lines if i.executed}

        launch.target = self.target
        checks = self.item.run(launch, np.random.default_rng(data))
        return [np.ascontiguousarray(c.got).tobytes() for c in checks]

    def judge(self, mutant: Mutant) -> Verdict:
        if self.code.code[mutant.index].line not in self.reached:
            return Verdict(mutant, "unreached")
        text = self.code.replaced(mutant.index, mutant.new)
        runs = [(seed, 0) for seed in SEEDS] if mutant.synchronises else [(0, data) for data in DATA]
        for seed, data in runs:
            try:
                results = self.results(text, seed, data)
            except sim.SimError as error:
                return Verdict(mutant, "caught", error.kind)
            except sim.LoadError:
                return Verdict(mutant, "caught", "load")
            if results != self.right[data]:
                return Verdict(mutant, "changed")
        reason = self.why_equivalent(mutant)
        return Verdict(mutant, "equivalent" if reason else "missed", reason or "")

    def why_equivalent(self, mutant: Mutant) -> str | None:
        """An argument made without the simulator; None when there is none."""
        edited = self.code.edited(mutant.index, mutant.new)
        if "s_nop" in mutant.old and not _spacing.violations(edited, self.target):
            return "every pair keeps the wait states of the table on all paths"
        if "s_waitcnt" in mutant.old and self._wait_redundant(edited):
            return "other waits cover every use on all paths"
        return dead_change(self.code, mutant) or known_reason(self.item.kernel, self.code, mutant)

    def _wait_redundant(self, edited: Listing) -> bool:
        """The static check does not know which LDS bytes a direct load fills: it may only weaken lgkmcnt then."""
        changed = [i for i, (a, b) in enumerate(zip(self.code.code, edited.code, strict=True)) if a != b]
        direct = any("load_lds" in i.name or "lds" in i.parsed.modifiers for i in self.code.code)
        before, after = (count_vector(c.code[changed[0]].text) for c in (self.code, edited))
        return not (direct and before != after) and not _waitcheck.violations(edited)


def count_vector(text: str) -> int | None:
    return _waitcheck.count(text, "vmcnt")


LDS_ACCESS = ("ds_", "flat_", "global_load_lds")


def dead_change(code: Listing, mutant: Mutant) -> str | None:
    """Changes that cannot matter, whatever the data."""
    item, later = code.code[mutant.index], code.after(mutant.index)
    if mutant.kind == "drop cache bit":
        return "scope and streaming bits: one launch on one coherent memory cannot show them"
    if mutant.kind == "drop restore" and not any(i.name.startswith(("v_", "global_", "ds_", "flat_")) for i in later):
        return "no vector instruction follows on any path"
    if mutant.kind == "drop bound_ctrl":
        return _bound_ctrl(item)
    communicates = any(i.name.startswith(LDS_ACCESS) or i.name == "s_barrier" for i in later)
    if mutant.kind == "delete barrier" and not communicates:
        return "no LDS access and no barrier follows on any path: a wave that ends counts as arrived"
    return None


def _bound_ctrl(item: Instruction) -> str | None:
    operands = item.parsed.operands
    if re.search(r"row_(ror|mirror|half_mirror|newbcast)|quad_perm", item.text):
        return "every lane has a source with this control"
    neutral = item.parsed.base in ("v_add_f32", "v_add_u32", "v_or_b32", "v_xor_b32", "v_max_u32")
    if neutral and len(operands) == 3 and operands[0] == operands[2]:
        return "the old destination is the other operand: keeping it equals combining it with zero"
    return None


def known_reason(kernel: str, code: Listing, mutant: Mutant) -> str | None:
    """Reasons found by reading the source of a kernel."""
    following = code.code[mutant.index + 1 : mutant.index + 2]
    if kernel == "gemm_dma" and "vmcnt" in mutant.old and following[0].name != "s_barrier":
        return (
            "gemm_dma: the direct loads drained here fill the other buffer; this one's were waited for at the barrier"
        )
    if "s_waitcnt" in mutant.old:
        return _path_reason(kernel, code, mutant)
    barriers = [i for i, item in enumerate(code.code) if item.name == "s_barrier"]
    if kernel == "generic_lds" and mutant.kind == "delete barrier" and mutant.index == barriers[-1]:
        return "generic_lds: after its last barrier each lane reads only what it wrote itself"
    return None


def _path_reason(kernel: str, code: Listing, mutant: Mutant) -> str | None:
    """Waits that only a path needs which no launch can take, or that guard other lanes of a register."""
    following = code.code[mutant.index + 1]
    last_mfma = max((i for i, item in enumerate(code.code) if item.name.startswith("v_mfma")), default=0)
    if kernel == "gemm_bf16" and following.name.startswith("v_mov_b64"):
        return "gemm_bf16: the pending load and the zero fill of rows beyond M write different lanes"
    if kernel == "gemm_bf16" and mutant.index > last_mfma:
        return "gemm_bf16: only a launch with no K step, which its first load would make invalid, needs this wait"
    if kernel == "gemm_bf16" and mutant.kind == "weaken wait" and following.name.startswith("v_mfma"):
        return "gemm_bf16: LDS returns in order, no scalar load is outstanding, and the next wait covers the last read"
    if kernel == "scratch" and "lgkmcnt" in mutant.old:
        return "scratch: the first part of the filling loop, which waits, runs in every wave (they span the array)"
    if kernel == "ballot" and "lgkmcnt" in mutant.old:
        return "ballot: its mask is not zero here, so the branch around the first store, which waits, is never taken"
    if kernel == "dropout" and "lgkmcnt" in mutant.old:
        return (
            "dropout: a lane with i * 4 < n exists here, so the first element's branch, which waits, is never skipped"
        )
    return None
