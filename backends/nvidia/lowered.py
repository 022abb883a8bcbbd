"""What lowering gives to build and runtime: the generated source, the launch and the kernel's parameters.

A kernel's C parameters are, in this order:

- for each parameter of the tile kernel a scalar by value (bool as one byte), or a tensor as
  `struct { T *data; long long strides[RANK]; int extents[RANK]; }`, where strides count elements and `data` points
  at the first element;
- for each of `maps` a `const __grid_constant__ CUtensorMap` (64-byte aligned, 128 bytes);
- `struct { int sizes[4]; }`, the grid's sizes, padded with 1;
- `int *status`, then `unsigned long long *prints` if the kernel prints.

A source is compiled once for each variant that is launched, with -DWIDE=<mask>u, -DROWS=<mask>u and -DTMA=<mask>u; bit
i of a mask is the kernel's i-th tensor parameter, and the runtime sets it where the tensor at hand allows

- WIDE: rows contiguous, 16-byte aligned, of whole 16-byte units;
- ROWS: rows contiguous;
- TMA: base 16-byte aligned, last stride 1, other strides positive multiples of 16 bytes below 2^40, no extent 0.

With -DAFTER_COPIES=1 the kernel waits for the one before it on the stream, which makes aligned copies of its operands.

Strides of axes with one element do not count, as nothing lies there. A cluster launch's grid is rounded up to whole
clusters, or down if it is persistent: a block must compare its number with the grid's sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.tiles.ir import Op

MASKED = 32  # tensors that have bits in the masks; those of later ones count as not set
AFTER_COPIES = 1 << MASKED  # in a variant's TMA mask, behind the tensors' bits


@dataclass(frozen=True)
class TensorMap:
    """One CUtensorMap parameter for tiles of a tensor, in the shared layout of kittens::st (swizzled panels).

    Its rank is the tensor's. Dimensions, innermost first: columns, rows, then the other axes from the last to the
    first; box (P, rows, 1, ...) with P = swizzle bytes / element size. A tile is loaded by one copy for each panel
    of P columns, at coordinates (first column + p * P, first row, ...), so that columns are bounded exactly
    (ThunderKittens makes panels an axis, which reads on into the next row).
    """

    param: str
    axes: tuple[int, int]  # tensor axes of the tile's rows and columns; columns are the last axis, of stride 1
    rows: int  # of the box, at most 256
    cols: int  # of the tile, in elements: whole panels
    swizzle: int  # 128, 64 or 32 bytes


@dataclass(frozen=True)
class Lowered:
    """A lowered kernel. `checks` and `prints` are its ops of these kinds, numbered from 1 in status and prints."""

    source: str  # as the user sees it, without #line
    built_source: str  # with #line directives: what the compiler gets
    entry: str  # extern "C" name of the kernel
    threads: int
    shared_bytes: int  # dynamic shared memory
    cluster: int  # blocks of a cluster, 1 if none
    persistent: bool  # grid = min(blocks, multiprocessors * resident blocks), else grid = blocks; 1-D
    maps: tuple[TensorMap, ...]
    reasons: tuple[str, ...]  # lines of explain()
    checks: tuple[Op, ...]
    prints: tuple[Op, ...]
    copied: tuple[str, ...] = ()  # operands of the bulk copy engine that the runtime may replace by aligned copies
