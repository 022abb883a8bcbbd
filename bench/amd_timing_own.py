"""This project's kernels on the AMD timing model, in the form of the table of published ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import warpwave as ww
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.model.cu import Memory
from warpwave.bench.amd_timing import Case, Row, row
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import borrow

DEPTH, SIZE = 8192, 256  # one workgroup's tile at the depth, or the number of keys, of the published kernels
PRODUCT = Memory(l2=0.78, infinity_cache=0.93, loaded=True)  # as the published cases have it
ATTENTION = Memory(l2=0.9, infinity_cache=0.9, loaded=True)
BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Product:
    """A product of one workgroup's tile; `extents` are rows and columns of the whole, where its blocks are counted.

    `transposed` says of a and b whether they are.
    """

    target: str
    dtype: str
    element: Any
    step: int
    schedule: str
    tile: tuple[int, int] = (SIZE, SIZE)
    options: Mapping[str, int] = field(default_factory=dict)
    extents: tuple[int, int] | None = None
    transposed: tuple[bool, bool] = (False, True)

    @property
    def name(self) -> str:
        """As in the table."""
        rows, cols = self.tile
        roles = f" {self.options['producers']} + {self.options['waves']}" if "producers" in self.options else ""
        order = "" if self.transposed == (False, True) else f" {_letter('A', self.transposed[0])} "
        order += _letter("B", self.transposed[1]) if order else ""
        return f"Warpwave {self.dtype}{order} {rows}x{cols}x{self.step}, {self.schedule}{roles}, {self.target}"

    def blocks(self, cus: int) -> int:
        """Workgroups: one for each compute unit, or those of the whole."""
        if self.extents is None:
            return cus
        return math.prod(-(-extent // tile) for extent, tile in zip(self.extents, self.tile, strict=True))


def _letter(name: str, transposed: bool) -> str:
    return f"{name}^T" if transposed else name


MICRO = (7680, 8192)  # of HipKittens' measurements of producers and consumers
PRODUCTS = (
    Product("gfx950", "bf16", BF16, 64, "multistage"),
    Product("gfx950", "bf16", BF16, 64, "ping-pong"),
    Product("gfx950", "bf16", BF16, 64, "interleave"),
    Product("gfx950", "bf16", BF16, 64, "producer-consumer", (128, 256), {"producers": 4, "waves": 8}, MICRO),
    Product("gfx950", "bf16", BF16, 64, "producer-consumer", (192, 256), {"producers": 4, "waves": 12}, MICRO),
    Product("gfx950", "bf16", BF16, 64, "ping-pong", (192, 256), {"stages": 2}, MICRO),
    Product("gfx950", "bf16", BF16, 64, "ping-pong", transposed=(False, False)),
    Product("gfx950", "bf16", BF16, 64, "interleave", transposed=(False, False)),
    Product("gfx950", "fp8", ml_dtypes.float8_e4m3fn, 128, "ping-pong"),
    Product("gfx942", "bf16", BF16, 64, "multistage"),
)
# Width, and the schedule where one is asked for; else all is as in a default call for such heads.
ATTENTIONS = ((128, "multistage"), (128, ""), (64, "multistage"), (64, ""))
HEADS = (16, 16)
CHIPS = {"gfx950": "MI355X", "gfx942": "MI300X"}


@dataclass(frozen=True)
class Own:
    """A kernel of this project: `flops` of a workgroup, and how many there are (`blocks`) by a chip's compute units."""

    name: str
    target: str
    dtype: str
    kernel: Any
    options: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray[Any, Any]]
    flops: float
    memory: Memory
    blocks: Callable[[int], int] = lambda cus: cus


def own_rows(only: str = "") -> list[Row]:
    """Those whose names contain `only`; schedules that do not apply to a kernel are left out."""
    chosen = (own for own in (*_products(), *_attentions()) if only in own.name)
    return [made for own in chosen for made in _timed(own)]


def _products() -> Iterator[Own]:
    for product in PRODUCTS:
        rows, cols = product.tile
        a = np.zeros((DEPTH, rows) if product.transposed[0] else (rows, DEPTH), product.element)
        b = np.zeros((cols, DEPTH) if product.transposed[1] else (DEPTH, cols), product.element)
        c = np.zeros(product.tile, BF16)
        built = gemm.compile(
            a,
            b,
            c,
            transpose_a=product.transposed[0],
            transpose_b=product.transposed[1],
            BM=rows,
            BN=cols,
            BK=product.step,
            target="reference",
        )
        options = {"schedule": product.schedule, **product.options}
        arrays, flops = {"a": a, "b": b, "c": c}, 2.0 * rows * cols * DEPTH
        kind = product.target, product.dtype
        yield Own(product.name, *kind, built.ir, options, arrays, flops, PRODUCT, product.blocks)


def _attentions() -> Iterator[Own]:
    for width, schedule in ATTENTIONS:
        whole = [ww.spec(f"bf16[{HEADS[0]},{HEADS[1]},{DEPTH},{width}]")] * 4
        tiles = {"BQ": SIZE, "BK": 64} if schedule else {}
        kernel = attention.capture(*whole, ww.spec("f32[?,?,?]"), target="amd:gfx950", **tiles)
        rows = kernel.constants["BQ"]
        q, o = (np.zeros((1, 1, rows, width), BF16) for _ in range(2))
        k, v = (np.zeros((1, 1, DEPTH, width), BF16) for _ in range(2))
        arrays = {"q": q, "k": k, "v": v, "o": o, "lse": np.zeros((1, 1, rows), np.float32)}
        name = f"Warpwave attention forward D={width}, {schedule or 'default call'}, gfx950"
        options = {"schedule": schedule} if schedule else {}
        yield Own(name, "gfx950", "bf16", kernel, options, arrays, 4.0 * rows * DEPTH * width, ATTENTION)


def _timed(own: Own) -> Iterator[Row]:
    """All workgroups are taken to do what one does."""
    began = time.perf_counter()
    try:
        program: Any = BACKEND.compile(own.kernel, f"amd:{own.target}", own.options)
    except TileError as error:
        print(f"{own.name}: {str(error).splitlines()[0]}")
        return
    borrowed = {n: borrow(a) for n, a in own.arrays.items()}
    timing = program.time(borrowed, chip=CHIPS[own.target], dtype=own.dtype, memory=own.memory)
    blocks = own.blocks(timing.chip.cus)
    case = Case(own.name, "", (blocks,), (64 * program.artifact.waves,), [], own.flops * blocks, own.dtype, None)
    yield row(case, timing.recorded, timing, time.perf_counter() - began)
