"""Where each matrix element lives: lane and item maps of MFMA and SMFMAC, and exact products.

General rule: CDNA4 ISA 7.1.4; exceptions for 8-bit operands of F8F6F4: ISA 7.1.5; sparse: ISA 7.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .bits import BF16, F16, F32, F64, small_formats

LANES = 64
WIDTH = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "i8": 8}
WIDTH |= {"fp6": 6, "bf6": 6, "fp4": 4}
NAME = re.compile(r"v_(mfma|smfmac)_([a-z]+\d+)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+)$")
F8F6F4 = ("fp8", "bf8", "fp6", "bf6", "fp4")


@dataclass(frozen=True)
class Shape:
    """One matrix instruction: sizes, blocks and element types."""

    name: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    result: str
    sparse: bool = False

    @property
    def a_items(self) -> int:
        """Elements of A per lane (packed ones, when sparse)."""
        return self.k * self.m * self.blocks // LANES // (2 if self.sparse else 1)

    @property
    def b_items(self) -> int:
        return self.k * self.n * self.blocks // LANES

    @property
    def a_registers(self) -> int:
        return self.a_items * WIDTH[self.a] // 32

    @property
    def b_registers(self) -> int:
        return self.b_items * WIDTH[self.b] // 32

    @property
    def result_registers(self) -> int:
        return self.m * self.n * self.blocks // LANES * (2 if self.result == "f64" else 1)


def shape(name: str, formats: tuple[str, str] | None = None) -> Shape:
    """The shape that a mnemonic spells; f8f6f4 needs the two formats too."""
    kind, result, m, n, k, blocks, types = NAME.match(name.replace("_scale", "")).groups()
    a, _, b = types.partition("_")
    if types == "f8f6f4":
        a, b = formats
    return Shape(name, int(m), int(n), int(k), int(blocks or 1), a, b or a, result, kind == "smfmac")


def k_of(shape: Shape, kind: str, lane_group: np.ndarray, item: np.ndarray, items: int) -> np.ndarray:
    """The k that an item stands for; 8-bit F8F6F4 operands are two runs of 16 bytes."""
    if "f8f6f4" in shape.name and WIDTH[kind] == 8:
        half, groups = items // 2, LANES // shape.m
        return half * lane_group + item % half + half * groups * (item // half)
    return items * lane_group + item


def operand_map(shape: Shape, first: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each (lane, item): block, row (or column) and k."""
    size, items, kind = (shape.m, shape.a_items, shape.a) if first else (shape.n, shape.b_items, shape.b)
    lane, item = np.arange(LANES)[:, None], np.arange(items)[None, :]
    outer = lane // size
    block = np.broadcast_to(outer % shape.blocks, (LANES, items))
    return block, np.broadcast_to(lane % size, (LANES, items)), k_of(shape, kind, outer // shape.blocks, item, items)


def result_map(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Lane and item of each D[block, i, j]."""
    height = 1 if shape.result == "f64" else 4
    b, i, j = np.ogrid[: shape.blocks, : shape.m, : shape.n]
    blocks_across = -(-LANES * height // (shape.n * shape.m))
    rows_across = LANES // blocks_across // shape.n
    steps = -(-shape.m // (height * rows_across))
    item = i % height + height * (i // (height * rows_across) + steps * (b // blocks_across))
    lane = j + shape.n * ((i // height) % rows_across + rows_across * (b % blocks_across))
    return np.broadcast_to(lane, (shape.blocks, shape.m, shape.n)), np.broadcast_to(
        item, (shape.blocks, shape.m, shape.n)
    )


def gather(shape: Shape, values: np.ndarray, first: bool, lanes: np.ndarray | None = None) -> np.ndarray:
    """values[G, lane, item] as a matrix [G, block, row, k]; `lanes` is a broadcast permutation."""
    block, row, k = operand_map(shape, first)
    size = shape.m if first else shape.n
    moved = values if lanes is None else values[:, lanes]
    matrix = np.zeros((values.shape[0], shape.blocks, size, shape.k))
    matrix[:, block, row, k] = moved
    return matrix


def scatter(shape: Shape, matrix: np.ndarray) -> np.ndarray:
    """D[G, block, i, j] as values[G, lane, item]."""
    lane, item = result_map(shape)
    values = np.zeros((matrix.shape[0], LANES, shape.m * shape.n * shape.blocks // LANES))
    values[:, lane, item] = matrix
    return values


def collect(shape: Shape, values: np.ndarray) -> np.ndarray:
    lane, item = result_map(shape)
    return values[:, lane, item]


def broadcast_a(cbsz: int, abid: int) -> np.ndarray:
    size = LANES >> cbsz
    return np.arange(LANES) % size + size * abid if cbsz else np.arange(LANES)


def permute_b(blgp: int) -> np.ndarray:
    lane = np.arange(LANES)
    return (
        lane,
        lane % 32,
        lane % 32 + 32,
        (lane + 16) % 64,
        *(lane % 16 + 16 * group for group in range(4)),
    )[blgp]


def product(shape: Shape, a, b, c, *, cbsz=0, abid=0, blgp=0) -> np.ndarray:
    """D values[G, lane, item] for exact (small) inputs."""
    left = gather(shape, a, True, broadcast_a(cbsz, abid))
    right = gather(shape, b, False, permute_b(blgp))
    return scatter(shape, np.einsum("gbik,gbjk->gbij", left, right) + collect(shape, c))


def sparse_product(shape: Shape, a, b, c, index, *, cbsz=0, abid=0) -> np.ndarray:
    """Each packed item e of A meets item 4 * (e // 2) + index(e) of B in lanes of the same group."""
    items, groups = shape.a_items, LANES // shape.m
    sets = 32 // (2 * items)
    chosen = 0 if cbsz else abid % sets
    e = np.arange(items)
    place = (index[:, :, None] >> (2 * e + 2 * items * chosen).astype(np.uint32)) & 3
    dense = np.zeros((a.shape[0], LANES, 2 * items))
    np.put_along_axis(dense, (4 * (e // 2) + place).astype(int), a, axis=2)
    left = dense.reshape(-1, groups, shape.m, 2 * items)
    right = b.reshape(-1, groups, shape.n, 2 * items)
    return scatter(shape, np.einsum("gxik,gxjk->gij", left, right)[:, None] + collect(shape, c))


def encode_small(values: np.ndarray, kind: str, target: str) -> np.ndarray:
    """Codes of values that every element type holds."""
    if kind == "i8":
        return values.astype(np.int8).view(np.uint8).astype(np.uint64)
    if kind in ("f32", "xf32"):
        return values.astype(np.float32).view(np.uint32).astype(np.uint64)
    if kind == "f64":
        return values.astype(np.float64).view(np.uint64)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint64)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint64)
    table = np.nan_to_num(small_formats(target)[kind], nan=1e9, posinf=1e9, neginf=1e9)
    codes = np.argmin(np.abs(table[None, :] - np.arange(-4, 5)[:, None]), axis=1)
    return codes[(values + 4).astype(int)].astype(np.uint64)


def to_registers(values: np.ndarray, kind: str, target: str) -> np.ndarray:
    """values[G, lane, item] packed into words[G, register, lane]."""
    return pack(encode_small(values, kind, target), kind)


def pack(codes: np.ndarray, kind: str) -> np.ndarray:
    """The bits of elements [G, lane, item] as words[G, register, lane]."""
    width, codes = WIDTH[kind], codes.astype(np.uint64)
    count = codes.shape[2] * width // 32
    words = np.zeros((codes.shape[0], count, LANES), np.uint64)
    for item in range(codes.shape[2]):
        word, shift = divmod(item * width, 32)
        code = codes[:, :, item]
        if width == 64:
            words[:, 2 * item], words[:, 2 * item + 1] = code & np.uint64(0xFFFFFFFF), code >> np.uint64(32)
            continue
        words[:, word] |= code << np.uint64(shift)
        if shift + width > 32:
            words[:, word + 1] |= code >> np.uint64(32 - shift)
    return (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)


RESULT_KIND = {"f32": "f32", "i32": "i32", "f64": "f64"}


def result_words(values: np.ndarray, result: str) -> np.ndarray:
    """D or C values[G, lane, item] as words[G, register, lane]."""
    if result == "f64":
        return to_registers(values, "f64", "gfx950")
    moved = values.swapaxes(1, 2)
    kind = np.int32 if result == "i32" else np.float32
    return np.ascontiguousarray(moved.astype(kind)).view(np.uint32)


__all__ = ["BF16", "F16", "F32", "F64", "product", "shape", "sparse_product"]
