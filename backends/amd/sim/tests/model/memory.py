"""What loads, stores and atomics do to bytes: the same table for LDS, global, flat, buffer and scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .bits import BF16, F16, add_odd, decode, encode, round_to

LANES = 64


@dataclass(frozen=True)
class Load:
    """Bytes read per lane; how they become register words; which half of the register is kept."""

    size: int
    signed: bool = False
    half: str = ""

    def words(self, raw: np.ndarray, old: np.ndarray) -> np.ndarray:
        """raw[..., size] bytes and the old words as the new words."""
        if self.size >= 4:
            return raw.reshape(*raw.shape[:-1], -1, 4).copy().view(np.uint32)[..., 0]
        value = sum(raw[..., i].astype(np.int64) << (8 * i) for i in range(self.size))
        sign = 1 << (8 * self.size - 1)
        value = (value ^ sign) - sign if self.signed else value
        value = (value & 0xFFFFFFFF).astype(np.uint32)
        first = old[..., 0]
        if self.half == "low":
            value = (value & 0xFFFF) | (first & np.uint32(0xFFFF0000))
        if self.half == "high":
            value = (value << np.uint32(16)) | (first & np.uint32(0xFFFF))
        return value[..., None]


@dataclass(frozen=True)
class Store:
    """Bytes written per lane, from bit `shift` of the data."""

    size: int
    shift: int = 0


@dataclass(frozen=True)
class Atomic:
    """A read-modify-write of `size` bytes: fn(old, data, second operand)."""

    size: int
    fn: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    operands: int = 1


def signed(value: np.ndarray) -> np.ndarray:
    return value.view(np.int32 if value.dtype == np.uint32 else np.int64)


def _as_unsigned(value: np.ndarray) -> np.ndarray:
    return value.view(np.uint32 if value.dtype == np.int32 else np.uint64)


def _floats(value: np.ndarray) -> np.ndarray:
    return value.view(np.float32 if value.dtype == np.uint32 else np.float64)


def _bits(value: np.ndarray) -> np.ndarray:
    return value.view(np.uint32 if value.dtype == np.float32 else np.uint64)


def float_add(old, data, _):
    with np.errstate(all="ignore"):
        return _bits(_floats(old) + _floats(data))


def packed_add(fmt):
    def run(old, data, _):
        halves = []
        for shift in (0, 16):
            parts = [decode((v >> np.uint32(shift)) & np.uint32(0xFFFF), fmt) for v in (old, data)]
            halves.append(encode(round_to(add_odd(*parts), fmt), fmt).astype(np.uint32))
        return halves[0] | halves[1] << np.uint32(16)

    return run


def increment(old, data, _):
    return np.where(old >= data, 0, old + old.dtype.type(1)).astype(old.dtype)


def decrement(old, data, _):
    return np.where((old == 0) | (old > data), data, old - old.dtype.type(1)).astype(old.dtype)


def masked_or(old, data, second):
    return (old & ~data) | second


def wrap(old, data, second):
    return np.where(old >= data, old - data, old + second).astype(old.dtype)


def least(old, data, _):
    return np.where(_floats(data) < _floats(old), data, old)


def most(old, data, _):
    return np.where(_floats(data) > _floats(old), data, old)


INTEGER = {
    "add": lambda o, d, _: o + d,
    "sub": lambda o, d, _: o - d,
    "smin": lambda o, d, _: _as_unsigned(np.minimum(signed(o), signed(d))),
    "smax": lambda o, d, _: _as_unsigned(np.maximum(signed(o), signed(d))),
    "umin": lambda o, d, _: np.minimum(o, d),
    "umax": lambda o, d, _: np.maximum(o, d),
    "and": lambda o, d, _: o & d,
    "or": lambda o, d, _: o | d,
    "xor": lambda o, d, _: o ^ d,
    "inc": increment,
    "dec": decrement,
    "swap": lambda o, d, _: d,
}
VECTOR_ATOMICS = {name: Atomic(4, fn) for name, fn in INTEGER.items()}
VECTOR_ATOMICS |= {f"{name}_x2": Atomic(8, fn) for name, fn in INTEGER.items()}
# The data registers hold the new value first, then the value to compare with.
VECTOR_ATOMICS |= {
    "cmpswap": Atomic(4, lambda o, d, c: np.where(o == c, d, o), 2),
    "cmpswap_x2": Atomic(8, lambda o, d, c: np.where(o == c, d, o), 2),
    "add_f32": Atomic(4, float_add),
    "add_f64": Atomic(8, float_add),
    "min_f64": Atomic(8, least),
    "max_f64": Atomic(8, most),
    "pk_add_f16": Atomic(4, packed_add(F16)),
    "pk_add_bf16": Atomic(4, packed_add(BF16)),
}


def _lds_atomics() -> dict[str, Atomic]:
    table = {}
    for width, bits in ((4, 32), (8, 64)):
        for name, source in (
            ("add_u", "add"), ("sub_u", "sub"), ("inc_u", "inc"), ("dec_u", "dec"), ("min_i", "smin"),
            ("max_i", "smax"), ("min_u", "umin"), ("max_u", "umax"), ("and_b", "and"), ("or_b", "or"),
            ("xor_b", "xor"),
        ):  # fmt: skip
            table[f"{name}{bits}"] = Atomic(width, INTEGER[source])
        table[f"rsub_u{bits}"] = Atomic(width, lambda o, d, _: d - o)
        table[f"mskor_b{bits}"] = Atomic(width, masked_or, 2)
        # LDS compares with the first data operand and writes the second.
        table[f"cmpst_b{bits}"] = Atomic(width, lambda o, d, s: np.where(o == d, s, o), 2)
        table[f"cmpst_f{bits}"] = Atomic(width, lambda o, d, s: np.where(_floats(o) == _floats(d), s, o), 2)
        table[f"min_f{bits}"], table[f"max_f{bits}"] = Atomic(width, least), Atomic(width, most)
        table[f"add_f{bits}"] = Atomic(width, float_add)
    table["pk_add_f16"], table["pk_add_bf16"] = Atomic(4, packed_add(F16)), Atomic(4, packed_add(BF16))
    return table


LDS_ATOMICS = _lds_atomics()
LDS_ONLY_RETURNING = {
    "wrxchg_rtn_b32": Atomic(4, INTEGER["swap"]),
    "wrxchg_rtn_b64": Atomic(8, INTEGER["swap"]),
    "wrap_rtn_b32": Atomic(4, wrap, 2),
}
NARROW_LOADS = {
    "ubyte": Load(1), "sbyte": Load(1, True), "ushort": Load(2), "sshort": Load(2, True),
    "ubyte_d16": Load(1, half="low"), "ubyte_d16_hi": Load(1, half="high"),
    "sbyte_d16": Load(1, True, "low"), "sbyte_d16_hi": Load(1, True, "high"),
    "short_d16": Load(2, half="low"), "short_d16_hi": Load(2, half="high"),
}  # fmt: skip
VECTOR_LOADS = NARROW_LOADS | {f"dword{x}": Load(n) for x, n in (("", 4), ("x2", 8), ("x3", 12), ("x4", 16))}
VECTOR_STORES = {
    "byte": Store(1), "byte_d16_hi": Store(1, 16), "short": Store(2), "short_d16_hi": Store(2, 16),
    "dword": Store(4), "dwordx2": Store(8), "dwordx3": Store(12), "dwordx4": Store(16),
}  # fmt: skip
LDS_LOADS = {
    "u8": Load(1), "i8": Load(1, True), "u16": Load(2), "i16": Load(2, True),
    "u8_d16": Load(1, half="low"), "u8_d16_hi": Load(1, half="high"),
    "i8_d16": Load(1, True, "low"), "i8_d16_hi": Load(1, True, "high"),
    "u16_d16": Load(2, half="low"), "u16_d16_hi": Load(2, half="high"),
    "b32": Load(4), "b64": Load(8), "b96": Load(12), "b128": Load(16),
}  # fmt: skip
LDS_STORES = {
    "b8": Store(1), "b8_d16_hi": Store(1, 16), "b16": Store(2), "b16_d16_hi": Store(2, 16),
    "b32": Store(4), "b64": Store(8), "b96": Store(12), "b128": Store(16),
}  # fmt: skip


class Memory:
    """Bytes of G workgroups; lanes of one access never overlap unless `ordered` says so."""

    def __init__(self, content: np.ndarray) -> None:
        self.bytes = content.copy()

    def _index(self, address: np.ndarray, size: int):
        group = np.arange(self.bytes.shape[0])[:, None, None]
        return group, address[..., None] + np.arange(size)

    def load(self, how: Load, address, old) -> np.ndarray:
        return how.words(self.bytes[self._index(address, how.size)], old)

    def store(self, how: Store, address, data, live) -> None:
        """data[G, lane, words]"""
        group, place = self._index(address, how.size)
        shifted = (data >> np.uint32(how.shift)) if how.shift else data
        raw = np.ascontiguousarray(shifted).view(np.uint8)[..., : how.size]
        keep = self.bytes[group, place]
        self.bytes[group, place] = np.where(live[..., None], raw, keep)

    def atomic(self, how: Atomic, address, data, live) -> np.ndarray:
        """The old values; lanes that share an address take their turn in lane order."""
        kind = np.uint32 if how.size == 4 else np.uint64
        operands = np.ascontiguousarray(data).view(kind)
        first, second = operands[..., 0], operands[..., 1]
        if all(len(np.unique(row)) == row.size for row in address):
            return self._apart(how, address, first, second, live)
        before = np.zeros(address.shape, kind)
        for group, lane in np.argwhere(live):
            cell = self.bytes[group, address[group, lane] :][: how.size].view(kind)
            before[group, lane] = cell[0]
            cell[:] = how.fn(cell.copy(), first[group, lane : lane + 1], second[group, lane : lane + 1])
        return before[..., None].view(np.uint32)

    def _apart(self, how: Atomic, address, first, second, live) -> np.ndarray:
        """Every lane at its own address: all at once."""
        group, place = self._index(address, how.size)
        raw = np.ascontiguousarray(self.bytes[group, place])
        before = raw.view(first.dtype)[..., 0]
        after = np.where(live, how.fn(before, first, second), before).astype(first.dtype)
        self.bytes[group, place] = np.ascontiguousarray(after)[..., None].view(np.uint8)
        return np.ascontiguousarray(before)[..., None].view(np.uint32)
