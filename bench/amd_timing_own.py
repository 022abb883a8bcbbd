"""This project's kernels on the AMD timing model, in the form of the table of published ones."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import warpwave as ww
from warpwave.backends.amd.arch import TARGETS
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
DEFAULT = "default call"


@dataclass(frozen=True)
class Product:
    """A product of one workgroup's tile; `extents` are rows and columns of the whole, where its blocks are counted.

    `transposed` says of a and b whether they are. No `schedule`: what a call takes by itself.
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
        how = f"{self.schedule or DEFAULT}{roles}"
        return f"Warpwave {self.dtype}{order} {rows}x{cols}x{self.step}, {how}, {self.target}"

    @property
    def blocks(self) -> int | None:
        """Workgroups of the whole; None for one on each compute unit."""
        if self.extents is None:
            return None
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
    Product("gfx942", "bf16", BF16, 64, "multistage", extents=(DEPTH, DEPTH)),
)
# Products of DEPTH cubed, rows by rows, as calls take them that say nothing of tiles or schedules.
CALLS = (
    ("gfx950", "bf16", ww.bf16),
    ("gfx950", "fp8", ww.fp8e4m3),
    ("gfx942", "bf16", ww.bf16),
    ("gfx942", "fp8", ww.fp8e4m3fnuz),
)
# Target, width, and the schedule where one is asked for; else all is as in a default call for such heads.
ATTENTIONS = (
    ("gfx950", 128, "multistage"),
    ("gfx950", 128, ""),
    ("gfx950", 64, "multistage"),
    ("gfx950", 64, ""),
    ("gfx942", 128, ""),
    ("gfx942", 64, ""),
)
BATCH, HEADS = 16, (64, 8)  # of queries, and of keys and values: as the published attention has it
RESIDENT = 4  # more workgroups of attention than a compute unit holds
CHIPS = {"gfx950": "MI355X", "gfx942": "MI300X"}


@dataclass(frozen=True)
class Own:
    """A kernel of this project: `flops` of a workgroup, and how many there are, as in `Product`."""

    name: str
    target: str
    dtype: str
    kernel: Any
    options: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray[Any, Any]]
    flops: float
    memory: Memory
    blocks: int | None = None


def own_rows(only: str = "") -> list[Row]:
    """Those whose names contain `only`; schedules that do not apply to a kernel are left out."""
    chosen = (own for own in (*_products(), *_called(), *_attentions()) if only in own.name)
    return [made for own in chosen for made in _timed(own)]


def _products() -> Iterator[Own]:
    for product in PRODUCTS:
        a, b, c = _operands(product)
        rows, cols = product.tile
        ta, tb = product.transposed
        step, target = product.step, "reference"
        built = gemm.compile(a, b, c, transpose_a=ta, transpose_b=tb, BM=rows, BN=cols, BK=step, target=target)
        yield _multiplied(product, built.ir)


def _called() -> Iterator[Own]:
    for target, dtype, element in CALLS:
        factors = [ww.spec(f"{element}[{DEPTH},{DEPTH}]")] * 2
        result = ww.spec(f"bf16[{DEPTH},{DEPTH}]")
        kernel = gemm.capture(*factors, result, transpose_b=True, target=f"amd:{target}")
        rows, cols, step = (kernel.constants[name] for name in ("BM", "BN", "BK"))
        whole = (DEPTH, DEPTH)
        yield _multiplied(Product(target, dtype, element.numpy, step, "", (rows, cols), extents=whole), kernel)


def _operands(product: Product) -> Iterator[np.ndarray[Any, Any]]:
    (rows, cols), (ta, tb) = product.tile, product.transposed
    yield np.zeros((DEPTH, rows) if ta else (rows, DEPTH), product.element)
    yield np.zeros((cols, DEPTH) if tb else (DEPTH, cols), product.element)
    yield np.zeros(product.tile, BF16)


def _multiplied(product: Product, kernel: Any) -> Own:
    arrays = dict(zip("abc", _operands(product), strict=True))
    options = {**_scheduled(product.schedule), **product.options}
    flops = 2.0 * math.prod(product.tile) * DEPTH
    kind = product.target, product.dtype
    return Own(product.name, *kind, kernel, options, arrays, flops, PRODUCT, product.blocks)


def _attentions() -> Iterator[Own]:
    for target, width, schedule in ATTENTIONS:
        queries, keys = (ww.spec(f"bf16[{BATCH},{heads},{DEPTH},{width}]") for heads in HEADS)
        tiles = {"BQ": SIZE, "BK": 64} if schedule else {}
        lse = ww.spec("f32[?,?,?]")
        kernel = attention.capture(queries, keys, keys, queries, lse, target=f"amd:{target}", **tiles)
        rows = kernel.constants["BQ"]
        name = f"Warpwave attention forward D={width}, {schedule or DEFAULT}, {target}"
        blocks = BATCH * HEADS[0] * -(-DEPTH // rows)
        kind = target, "bf16", kernel, _scheduled(schedule)
        flops = 4.0 * rows * DEPTH * width
        yield Own(name, *kind, _attended(target, rows, width), flops, ATTENTION, blocks)


def _attended(target: str, rows: int, width: int) -> dict[str, np.ndarray[Any, Any]]:
    """So many heads of a tile of queries that a compute unit gets all that it holds; they share keys and values."""
    heads = RESIDENT * TARGETS[target].chips[0].cus
    q, o = (np.zeros((1, heads, rows, width), BF16) for _ in range(2))
    k, v = (np.zeros((1, 1, DEPTH, width), BF16) for _ in range(2))
    return {"q": q, "k": k, "v": v, "o": o, "lse": np.zeros((1, heads, rows), np.float32)}


def _scheduled(schedule: str) -> dict[str, str]:
    return {"schedule": schedule} if schedule else {}


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
    blocks = own.blocks or timing.chip.cus
    case = Case(own.name, "", (blocks,), (64 * program.artifact.waves,), [], own.flops * blocks, own.dtype, None)
    yield row(case, timing.recorded, timing, time.perf_counter() - began)
