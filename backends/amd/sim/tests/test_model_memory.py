"""Every LDS, global, flat, buffer and scratch access against a byte-level model, with offsets and EXEC."""

from __future__ import annotations

import pytest

from warpwave.backends.amd import sim
from warpwave.backends.amd.sim import _sim

from . import _memory
from ._compile import TARGETS
from ._legal import legal
from ._memory import Access
from .model import memory
from .model.memory import Atomic, Load, Store

MASKS = (None, 0x00FF00FF0F0F5555, 0x1)


def registers(first: int, size: int) -> str:
    words = max(1, size // 4)
    return f"v[{first}:{first + words - 1}]" if words > 1 else f"v{first}"


def lds_accesses() -> dict[str, list[Access]]:
    """ds_read, ds_write and their double forms, atomics with and without return."""
    table: dict[str, list[Access]] = {}
    for name, how in memory.LDS_LOADS.items():
        texts = [(f"ds_read_{name} {registers(128, how.size)}, v8 offset:{o}", o) for o in (0, 48, 1008)]
        table[f"ds_read_{name}"] = [Access(t, how, "lds", (o,), exec=m) for t, o in texts for m in MASKS]
    for name, how in memory.LDS_STORES.items():
        texts = [(f"ds_write_{name} v8, {registers(12, how.size)} offset:{o}", o) for o in (0, 48, 1008)]
        table[f"ds_write_{name}"] = [Access(t, how, "lds", (o,), exec=m) for t, o in texts for m in MASKS]
    for size in (4, 8):
        table |= _double(size)
    for name, how in memory.LDS_ATOMICS.items():
        table[f"ds_{name}"] = _lds_atomic(f"ds_{name}", how, returns=False)
        parts = name.rsplit("_", 1)
        returning = f"ds_{parts[0]}_rtn_{parts[1]}"
        table[returning] = _lds_atomic(returning, how, returns=True)
    for name, how in memory.LDS_ONLY_RETURNING.items():
        table[f"ds_{name}"] = _lds_atomic(f"ds_{name}", how, returns=True)
    return table


def _double(size: int) -> dict[str, list[Access]]:
    """ds_read2 and ds_write2: two offsets counted in elements, or in 64 elements."""
    table = {}
    for stride, infix in ((size, ""), (size * 64, "st64")):
        pairs = ((0, 1), (3, 7), (5, 5)) if not infix else ((0, 1), (2, 1))
        read, write = f"ds_read2{infix}_b{size * 8}", f"ds_write2{infix}_b{size * 8}"
        table[read] = [
            Access(
                f"{read} {registers(128, 2 * size)}, v8 offset0:{a} offset1:{b}",
                Load(size), "lds", (a * stride, b * stride), exec=m,
            )
            for a, b in pairs for m in MASKS
        ]  # fmt: skip
        data = f"{registers(12, size)}, {registers(16, size)}"
        # Equal offsets: the ISA does not say which data wins.
        table[write] = [
            Access(f"{write} v8, {data} offset0:{a} offset1:{b}", Store(size), "lds", (a * stride, b * stride), exec=m)
            for a, b in pairs if a != b for m in MASKS
        ]  # fmt: skip
    return table


def _lds_atomic(name: str, how: Atomic, *, returns: bool) -> list[Access]:
    data = registers(12, how.size) + (f", {registers(16, how.size)}" if how.operands == 2 else "")
    result = f"{registers(128, how.size)}, " if returns else ""
    text = f"{name} {result}v8, {data}"
    cases = [
        Access(f"{text} offset:{o}", how, "lds", (o,), returns, exec=m, data2_register=True)
        for o in (0, 64) for m in MASKS
    ]  # fmt: skip
    if not returns and how.operands == 1:
        cases.append(Access(text, how, "lds", exec=None, shared=True))
    return cases


def vector_forms(prefix: str, operands: str, tail: str = "") -> list[tuple[str, tuple[int, ...]]]:
    """Address forms of global and flat: 64-bit vector address, or scalar base and 32-bit offset."""
    offsets = (0, 16, 1008, -1024, -16) if prefix == "global" else (0, 16, 1008)
    forms = []
    for o in offsets:
        place = f" offset:{o}" if o else ""
        suffix = "off" if prefix == "global" else ""
        address = operands.format(a="v[10:11]", s=f", {suffix}" if suffix else "")
        forms.append((f"{prefix}_{{}} {address}{place}{tail}", (o,)))
        if prefix == "global":
            forms.append((f"{prefix}_{{}} {operands.format(a='v8', s=', s[16:17]')}{place}{tail}", (o,)))
    return forms


def vector_accesses(prefix: str) -> dict[str, list[Access]]:
    table: dict[str, list[Access]] = {}
    for name, how in memory.VECTOR_LOADS.items():
        forms = vector_forms(prefix, f"{registers(128, how.size)}, {{a}}{{s}}")
        table[f"{prefix}_load_{name}"] = [
            Access(t.format(f"load_{name}"), how, "global", d, exec=m) for t, d in forms for m in MASKS[:2]
        ]
    for name, how in memory.VECTOR_STORES.items():
        forms = vector_forms(prefix, f"{{a}}, {registers(12, how.size)}{{s}}")
        table[f"{prefix}_store_{name}"] = [
            Access(t.format(f"store_{name}"), how, "global", d, exec=m) for t, d in forms for m in MASKS[:2]
        ]
    for name, how in memory.VECTOR_ATOMICS.items():
        table[f"{prefix}_atomic_{name}"] = _vector_atomic(prefix, name, how)
    return table


def _vector_atomic(prefix: str, name: str, how: Atomic) -> list[Access]:
    data = registers(12, how.size * how.operands)
    cases = []
    for returns in (False, True):
        result = f"{registers(128, how.size)}, " if returns else ""
        for text, step in vector_forms(prefix, f"{result}{{a}}, {data}{{s}}", " sc0" if returns else ""):
            cases += [Access(text.format(f"atomic_{name}"), how, "global", step, returns, exec=m) for m in MASKS[:2]]
    if how.operands == 1 and name.split("_")[0] != "swap":
        text, step = vector_forms(prefix, f"{{a}}, {data}{{s}}")[0]
        cases.append(Access(text.format(f"atomic_{name}"), how, "global", step, shared=True))
    return cases


# s[20:23]: a raw buffer over the case's memory; s12: a scalar offset.
DESCRIPTOR = (
    "s_mov_b32 s20, s16",
    "s_and_b32 s21, s17, 0xffff",
    f"s_movk_i32 s22, {_memory.BYTES:#x}",
    "s_mov_b32 s23, 0x27000",
    "s_movk_i32 s12, 0x80",
    "v_lshrrev_b32_e32 v3, 4, v8",
    "v_mov_b32_e32 v4, v3",
    "v_and_b32_e32 v5, 15, v8",
)


def buffer_forms(operands: str, tail: str = "") -> list[tuple[str, tuple[int, ...]]]:
    forms = []
    for soffset, scalar in (("0", 0), ("s12", 128), ("64", 64)):
        for o in (0, 16, 1008):
            place = f" offset:{o}" if o else ""
            text = f"buffer_{{}} {operands}, v8, s[20:23], {soffset} offen{place}{tail}"
            forms.append((text, (o + scalar,)))
    return forms


def buffer_accesses() -> dict[str, list[Access]]:
    table: dict[str, list[Access]] = {}
    for name, how in memory.VECTOR_LOADS.items():
        forms = buffer_forms(registers(128, how.size))
        table[f"buffer_load_{name}"] = [
            Access(t.format(f"load_{name}"), how, "global", d, exec=m, setup=DESCRIPTOR)
            for t, d in forms for m in MASKS[:2]
        ]  # fmt: skip
    for name, how in memory.VECTOR_STORES.items():
        forms = buffer_forms(registers(12, how.size))
        table[f"buffer_store_{name}"] = [
            Access(t.format(f"store_{name}"), how, "global", d, exec=m, setup=DESCRIPTOR)
            for t, d in forms for m in MASKS[:2]
        ]  # fmt: skip
    for name, how in memory.VECTOR_ATOMICS.items():
        cases = [
            Access(t.format(f"atomic_{name}"), how, "global", d, exec=m, setup=DESCRIPTOR)
            for t, d in buffer_forms(registers(12, how.size * how.operands)) for m in MASKS[:2]
        ]  # fmt: skip
        # The returned value replaces the data: move the data to the result registers first.
        copies = tuple(f"v_mov_b32_e32 v{128 + i}, v{12 + i}" for i in range(how.size * how.operands // 4))
        if how.operands == 1:
            cases += [
                Access(t.format(f"atomic_{name}"), how, "global", d, True, setup=DESCRIPTOR + copies)
                for t, d in buffer_forms(registers(128, how.size), " sc0")
            ]
        table[f"buffer_atomic_{name}"] = cases
    return table


def scratch_accesses() -> dict[str, list[Access]]:
    table: dict[str, list[Access]] = {}
    groups = (("load", memory.VECTOR_LOADS, 128), ("store", memory.VECTOR_STORES, 12))
    for kind, operations, first in groups:
        for name, how in operations.items():
            data = registers(first, how.size)
            order = "{d}, v8, off" if kind == "load" else "v8, {d}, off"
            texts = [(f"scratch_{kind}_{name} {order.format(d=data)}{p}", o)
                     for p, o in (("", 0), (" offset:16", 16), (" offset:-16", -16))]  # fmt: skip
            table[f"scratch_{kind}_{name}"] = [Access(t, how, "scratch", (o,), exec=m) for t, o in texts for m in MASKS]
    return table


ALL = lds_accesses() | vector_accesses("global") | vector_accesses("flat") | buffer_accesses() | scratch_accesses()


def legal_accesses(target: str) -> dict[str, list[Access]]:
    flat = [(name, case) for name, cases in ALL.items() for case in cases]
    answers = legal([case.text for _, case in flat], target)
    found: dict[str, list[Access]] = {}
    for (name, case), good in zip(flat, answers, strict=True):
        if good:
            found.setdefault(name, []).append(case)
    return found


LEGAL = {target: legal_accesses(target) for target in TARGETS}
CASES = [(name, target) for target in TARGETS for name in LEGAL[target] if name in _sim.mnemonics()]


def test_each_access_exists_on_a_target():
    assert set(ALL) == set().union(*LEGAL.values())


@pytest.mark.parametrize(("name", "target"), CASES)
def test_access(name, target):
    cases = LEGAL[target][name]
    tame = any(part in name for part in ("_f32", "_f64", "_f16", "_bf16"))
    for shared in (False, True):
        some = [c for c in cases if c.shared == shared]
        if some:
            data = _memory.make(1, shared=shared, private=name.startswith("scratch"), tame=tame)
            program = sim.load(_memory.kernel_text(some, target, data.groups), target=target)
            assert not _memory.differences(program, some, data)
