"""Run many single instructions in one kernel: load registers from buffers, execute, store the results.

Every workgroup is one wavefront with its own operands. Registers: v[8:8+NV) and s[24:24+NS) are inputs,
v[128:160) and s[60:76) are results that start from known values; v0..v3 and s[0:15] are the harness's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ._asm import Kernel
from .model.machine import LANES, Machine

FIRST_V, FIRST_S, RESULT_V, RESULT_S = 8, 24, 128, 60
SCALARS = 16
QUIET = "s_nop 15"


@dataclass(frozen=True)
class Case:
    """One instruction: its text, how many result registers it may touch, and the state around it."""

    text: str
    vectors: int = 1
    scalars: int = 0
    masks: bool = False
    exec: int | None = None
    mode: int | None = None
    setup: tuple[str, ...] = ()
    old: bool = True

    @property
    def slots(self) -> int:
        """64-lane words stored: vector results, scalar results, and VCC, EXEC and SCC."""
        return self.vectors + self.scalars + (5 if self.masks else 0)


@dataclass
class Operands:
    """Inputs of G wavefronts."""

    vectors: np.ndarray  # (G, NV, 64) uint32
    scalars: np.ndarray  # (G, 16) uint32
    target: str
    agprs: bool = False
    results: dict[int, int] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        return self.vectors.shape[0]


def load_inputs(operands: Operands) -> list[str]:
    count = operands.vectors.shape[1]
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_load_dwordx2 s[8:9], s[0:1], 0x10",
        "v_lshlrev_b32_e32 v0, 2, v0",
        "s_waitcnt lgkmcnt(0)",
        f"s_mul_i32 s3, s2, {count * 256}",
        "s_add_u32 s4, s4, s3",
        "s_addc_u32 s5, s5, 0",
        f"s_mul_i32 s3, s2, {SCALARS * 4}",
        "s_add_u32 s6, s6, s3",
        "s_addc_u32 s7, s7, 0",
        f"s_load_dwordx16 s[{FIRST_S}:{FIRST_S + 15}], s[6:7], 0x0",
    ]
    for i in range(count):
        lines.append(f"global_load_dword v{FIRST_V + i}, v0, s[4:5] offset:{256 * (i % 8)}")
        if i % 8 == 7:
            lines += ["s_add_u32 s4, s4, 0x800", "s_addc_u32 s5, s5, 0"]
    return [*lines, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_mov_b64 s[10:11], exec"]


def prepare(case: Case, count: int) -> list[str]:
    """Known old values in the result registers, VCC and SCC; then EXEC, MODE and the case's own setup."""
    lines = []
    if case.old:
        lines += [f"v_mov_b32_e32 v{RESULT_V + i}, v{FIRST_V + (count - 1 - i) % count}" for i in range(case.vectors)]
    lines += [f"s_mov_b32 s{RESULT_S + i}, s{FIRST_S + 15 - i}" for i in range(case.scalars)]
    lines += [f"s_mov_b64 vcc, s[{FIRST_S + 8}:{FIRST_S + 9}]", f"s_bitcmp1_b32 s{FIRST_S + 10}, 0"]
    lines += case.setup
    if case.mode is not None:
        lines += [f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 24), {case.mode:#x}"]
    if case.exec is not None:
        lines += [
            f"s_mov_b32 exec_lo, {case.exec & 0xFFFFFFFF:#x}",
            f"s_mov_b32 exec_hi, {case.exec >> 32:#x}",
        ]
    return [*lines, QUIET]


def finish(case: Case) -> list[str]:
    """Put EXEC and MODE back and store everything."""
    lines = [QUIET, QUIET]
    if case.masks:
        lines += ["s_cselect_b32 s12, 1, 0", "s_mov_b64 s[14:15], exec"]
    lines += ["s_mov_b64 exec, s[10:11]"]
    if case.mode is not None:
        lines += ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 24), 0x3f0"]
    lines += [QUIET]
    names = [f"v{RESULT_V + i}" for i in range(case.vectors)]
    scalars = [f"s{RESULT_S + i}" for i in range(case.scalars)]
    if case.masks:
        scalars += ["vcc_lo", "vcc_hi", "s14", "s15", "s12"]
    for slot, name in enumerate(names + scalars):
        if name[0] != "v" or name.startswith("vcc"):
            lines.append(f"v_mov_b32_e32 v1, {name}")
            name = "v1"
        lines.append(f"global_store_dword v0, {name}, s[8:9] offset:{256 * (slot % 8)}")
        if slot % 8 == 7:
            lines += ["s_add_u32 s8, s8, 0x800", "s_addc_u32 s9, s9, 0"]
    rest = 256 * (len(names + scalars) % 8)
    return [*lines, f"s_add_u32 s8, s8, {rest:#x}", "s_addc_u32 s9, s9, 0"]


def kernel(cases: list[Case], operands: Operands) -> Kernel:
    total = sum(c.slots for c in cases)
    body = load_inputs(operands)
    body += [f"s_mul_i32 s3, s2, {total * 256}", "s_add_u32 s8, s8, s3", "s_addc_u32 s9, s9, 0"]
    for case in cases:
        body += [*prepare(case, operands.vectors.shape[1]), *case.text.split("\n"), *finish(case)]
    return Kernel(body, operands.target, buffers=3, agprs=256 if operands.agprs else 0)


def simulate(program, cases: list[Case], operands: Operands, **options) -> list[np.ndarray]:
    """Results of each case, shaped (slots, G, 64)."""
    total = sum(c.slots for c in cases)
    out = np.zeros((operands.groups, total, LANES), np.uint32)
    arguments = [np.ascontiguousarray(operands.vectors), np.ascontiguousarray(operands.scalars), out]
    program.launch("k", grid=(operands.groups, 1, 1), block=(64, 1, 1), args=arguments, **options)
    parts, start = [], 0
    for case in cases:
        parts.append(out[:, start : start + case.slots].swapaxes(0, 1))
        start += case.slots
    return parts


def machine(case: Case, operands: Operands) -> Machine:
    """The model's registers just before the instruction of a case."""
    model = Machine(operands.target, operands.groups)
    count = operands.vectors.shape[1]
    for i in range(count):
        model.v[FIRST_V + i] = operands.vectors[:, i]
    for i in range(SCALARS):
        model.s[FIRST_S + i] = operands.scalars[:, i]
    for i in range(case.vectors):
        model.v[RESULT_V + i] = operands.vectors[:, (count - 1 - i) % count]
    for i in range(case.scalars):
        model.s[RESULT_S + i] = operands.scalars[:, 15 - i]
    model.s["vcc_lo"], model.s["vcc_hi"] = operands.scalars[:, 8], operands.scalars[:, 9]
    model.scc = (operands.scalars[:, 10] & 1).astype(bool)
    if case.mode is not None:
        model.mode = case.mode
    if case.exec is not None:
        model.write_s64("exec", np.full(operands.groups, case.exec, np.uint64))
    return model


def expected(case: Case, operands: Operands, table) -> np.ndarray:
    """The model's results in the order in which the kernel stores them."""
    model = machine(case, operands)
    with np.errstate(all="ignore"):
        for line in (*case.setup, *case.text.split("\n")):
            if not line.startswith("s_nop"):
                model.run(line, table)
    rows = [model.v[RESULT_V + i] for i in range(case.vectors)]
    scalars = [model.s[RESULT_S + i] for i in range(case.scalars)]
    if case.masks:
        scalars += [model.s[k] for k in ("vcc_lo", "vcc_hi", "exec_lo", "exec_hi")] + [model.scc.astype(np.uint32)]
    rows += [np.broadcast_to(np.asarray(s)[:, None], (operands.groups, LANES)) for s in scalars]
    return np.stack([np.broadcast_to(r, (operands.groups, LANES)) for r in rows]).astype(np.uint32)
