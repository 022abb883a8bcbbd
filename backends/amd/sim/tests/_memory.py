"""Run memory instructions on LDS, scratch or global memory that starts from, and returns to, a NumPy array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._asm import Kernel
from .model.memory import LANES, Atomic, Load, Memory, Store

BYTES = 8192
PRIVATE = BYTES // LANES
OFFSET, ADDRESS, DATA, DATA2, RESULT = 8, 10, 12, 16, 128
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"


@dataclass(frozen=True)
class Access:
    """One instruction and its meaning: operation, bytes added to the lane's offset, and where it goes."""

    text: str
    how: Load | Store | Atomic
    space: str = "global"
    displacements: tuple[int, ...] = (0,)
    returns: bool = False
    exec: int | None = None
    shared: bool = False
    setup: tuple[str, ...] = ()
    data2_register: bool = False


@dataclass
class Data:
    """Memory and operands of G workgroups of one wavefront."""

    memory: np.ndarray  # (G, BYTES) uint8
    offsets: np.ndarray  # (G, 64) uint32
    data: np.ndarray  # (G, 64, 4) uint32
    data2: np.ndarray
    old: np.ndarray

    @property
    def groups(self) -> int:
        return self.memory.shape[0]


def make(seed: int, *, shared: bool, private: bool = False, tame: bool = False, groups: int = 2) -> Data:
    """Offsets 64 bytes apart in the middle of the memory, in random order; or a few shared ones."""
    rng = np.random.default_rng(seed)
    lanes = np.stack([rng.permutation(LANES) for _ in range(groups)])
    offsets = lanes * 64 + 1024
    if shared:
        offsets = rng.integers(0, 5, (groups, LANES)) * 16 + 2048
    if private:
        offsets = rng.integers(1, 5, (groups, LANES)) * 16
    memory = rng.integers(0, 256, (groups, BYTES), np.uint8)
    words = [rng.integers(0, 2**32, (groups, LANES, 4), dtype=np.uint32) for _ in range(3)]
    if tame:
        memory = np.tile(rng.integers(-8, 8, (groups, BYTES // 4)).astype(np.float32), 1).view(np.uint8)
        words = [rng.integers(-8, 8, (groups, LANES, 4)).astype(np.float32).view(np.uint32) for _ in range(3)]
    words[1][..., :2] = np.where(rng.integers(0, 2, (groups, LANES, 1)) == 1, words[0][..., :2], words[1][..., :2])
    return Data(memory, offsets.astype(np.uint32), words[0], words[1], words[2])


COPY = 16


def _copy_in(space: str) -> list[str]:
    """Global memory s[16:17] to LDS or scratch, 16 dwords of every lane at a time."""
    lines = []
    for part in range(2 if space != "global" else 0):
        for i in range(COPY):
            index = part * COPY + i
            place = (
                f"v0, s[16:17] offset:{256 * (index % 16)}" if space == "lds" else f"v2, s[16:17] offset:{4 * index}"
            )
            if space == "lds" and part:
                place = place.replace("s[16:17]", "s[18:19]")
            lines.append(f"global_load_dword v{140 + i}, {place}")
        lines.append(WAIT)
        for i in range(COPY):
            index = part * COPY + i
            lines.append(
                f"ds_write_b32 v0, v{140 + i} offset:{256 * index}"
                if space == "lds"
                else f"scratch_store_dword off, v{140 + i}, off offset:{4 * index}"
            )
        lines.append(WAIT)
    return lines


def _copy_out(space: str) -> list[str]:
    lines = []
    for part in range(2 if space != "global" else 0):
        for i in range(COPY):
            index = part * COPY + i
            lines.append(
                f"ds_read_b32 v{140 + i}, v0 offset:{256 * index}"
                if space == "lds"
                else f"scratch_load_dword v{140 + i}, off, off offset:{4 * index}"
            )
        lines.append(WAIT)
        for i in range(COPY):
            index = part * COPY + i
            place = f"s[16:17] offset:{256 * (index % 16)}" if space == "lds" else f"s[16:17] offset:{4 * index}"
            address = "v0" if space == "lds" else "v2"
            if space == "lds" and part:
                place = place.replace("s[16:17]", "s[18:19]")
            lines.append(f"global_store_dword {address}, v{140 + i}, {place}")
        lines.append(WAIT)
    return lines


HEAD = [
    "s_load_dwordx8 s[4:11], s[0:1], 0x0",  # memory, offsets, operands, results
    "v_lshlrev_b32_e32 v0, 2, v0",
    "v_lshlrev_b32_e32 v1, 2, v0",
    "v_lshlrev_b32_e32 v2, 5, v0",
    WAIT,
]


def body(cases: list[Access], groups: int) -> list[str]:
    """Inputs once, then for each case: fill the memory, run, empty it, store the result registers."""
    lines = [*HEAD]
    for register, size in (("6", 256), ("8", 3 * 1024)):
        lines += [f"s_mul_i32 s3, s2, {size}", f"s_add_u32 s{register}, s{register}, s3"]
        lines.append(f"s_addc_u32 s{int(register) + 1}, s{int(register) + 1}, 0")
    lines += [f"global_load_dword v{OFFSET}, v0, s[6:7]", f"v_mov_b32_e32 v{OFFSET + 1}, 0"]
    lines += [
        f"global_load_dwordx4 v[{r}:{r + 3}], v1, s[8:9] offset:{1024 * i}" for i, r in enumerate((DATA, DATA2, 20))
    ]
    lines += [f"s_mul_i32 s3, s2, {len(cases) * 1024}", "s_add_u32 s10, s10, s3", "s_addc_u32 s11, s11, 0"]
    lines += [f"s_mul_i32 s3, s2, {len(cases) * BYTES}", "s_add_u32 s16, s4, s3", "s_addc_u32 s17, s5, 0", WAIT]
    lines += ["s_mov_b64 s[14:15], exec"]
    for case in cases:
        lines += one(case)
        lines += ["s_add_u32 s10, s10, 0x400", "s_addc_u32 s11, s11, 0"]
        lines += [f"s_add_u32 s16, s16, {BYTES}", "s_addc_u32 s17, s17, 0"]
    return lines


def one(case: Access) -> list[str]:
    lines = ["s_add_u32 s18, s16, 0x1000", "s_addc_u32 s19, s17, 0", *_copy_in(case.space)]
    lines += [f"v_lshl_add_u64 v[{ADDRESS}:{ADDRESS + 1}], s[16:17], 0, v[{OFFSET}:{OFFSET + 1}]"]
    lines += [f"v_mov_b32_e32 v{RESULT + i}, v{20 + i}" for i in range(4)]
    lines += case.setup
    if case.exec is not None:
        lines += [f"s_mov_b32 exec_lo, {case.exec & 0xFFFFFFFF:#x}", f"s_mov_b32 exec_hi, {case.exec >> 32:#x}"]
    lines += ["s_nop 7", *case.text.split("\n"), WAIT, "s_mov_b64 exec, s[14:15]", *_copy_out(case.space)]
    return [*lines, f"global_store_dwordx4 v1, v[{RESULT}:{RESULT + 3}], s[10:11]", WAIT]


def kernel_text(cases: list[Access], target: str, groups: int) -> str:
    spaces = {c.space for c in cases}
    lds, scratch = (BYTES if "lds" in spaces else 0), (PRIVATE if "scratch" in spaces else 0)
    return Kernel(body(cases, groups), target, buffers=4, lds=lds, scratch=scratch).text()


def simulate(program, cases: list[Access], data: Data, **options) -> tuple[np.ndarray, np.ndarray]:
    """Memory (G, case, BYTES) and result registers (G, case, 64, 4) afterwards."""
    memory = np.ascontiguousarray(np.repeat(data.memory[:, None], len(cases), axis=1))
    results = np.zeros((data.groups, len(cases), LANES, 4), np.uint32)
    operands = np.ascontiguousarray(np.stack([data.data, data.data2, data.old], axis=1))
    arguments = [memory, np.ascontiguousarray(data.offsets), operands, results]
    program.launch("k", grid=(data.groups, 1, 1), block=(LANES, 1, 1), args=arguments, **options)
    return memory, results


def expected(case: Access, data: Data) -> tuple[np.ndarray, np.ndarray]:
    live = np.ones((data.groups, LANES), bool)
    if case.exec is not None:
        live &= (np.uint64(case.exec) >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1) == 1
    content = data.memory
    if case.space == "scratch":
        content = content.reshape(data.groups, -1)
    memory, words = Memory(content), data.old.copy()
    position = 0
    for index, step in enumerate(case.displacements):
        address = data.offsets.astype(np.int64) + step
        if case.space == "scratch":
            address = address + np.arange(LANES) * PRIVATE
        got = _perform(memory, case, index, address, data, live)
        if got is not None and (case.returns or isinstance(case.how, Load)):
            span = slice(position, position + got.shape[-1])
            words[..., span] = np.where(live[..., None], got, words[..., span])
            position += got.shape[-1]
    return memory.bytes.reshape(data.memory.shape), words


def _perform(memory: Memory, case: Access, index: int, address, data: Data, live):
    source = data.data2 if index else data.data
    if isinstance(case.how, Load):
        return memory.load(case.how, address, data.old)
    if isinstance(case.how, Store):
        return memory.store(case.how, address, source, live)
    if case.how.operands == 2 and case.data2_register:
        words = case.how.size // 4
        source = np.concatenate([data.data[..., :words], data.data2[..., :words], data.old], axis=2)
        source = source[..., : 4 * (source.shape[-1] // 4)]
    return memory.atomic(case.how, address, source, live)


def differences(program, cases: list[Access], data: Data) -> list[str]:
    memory, results = simulate(program, cases, data)
    wrong = []
    for i, case in enumerate(cases):
        want_memory, want_words = expected(case, data)
        for label, got, want in (("memory", memory[:, i], want_memory), ("register", results[:, i], want_words)):
            if not np.array_equal(got, want):
                place = tuple(np.argwhere(got != want)[0])
                wrong.append(f"{case.text!r}: {label} {place}: got {got[place]:#x}, want {want[place]:#x}")
    return wrong
