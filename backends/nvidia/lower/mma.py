"""Products by mma.sync: fragments from shared memory by ldmatrix, or from registers, or element by element."""

from __future__ import annotations

from warpwave.backends.nvidia.layout import operand_layout
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import (
    FORMATS,
    Operand,
    depth_of,
    shared_operand,
    start_accumulator,
    warp_origin,
)
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.assign import is_laid_out
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.layout import round_up
from warpwave.tiles.simt.writer import ctype


def lower_mma(lw: NvidiaLowering, op: Op) -> None:
    """All steps of the product, unrolled."""
    a, layout = op.operands[1], lw.layout(op.result)
    rows = sorted({i[0] // 16 * 16 for i in layout.items})
    pairs = sorted({i[1] // 16 * 16 for i in layout.items})
    registers = a.tile.dtype.bits == 16 and not op.attrs["transpose_a"] and is_laid_out(a)
    held = convert(lw, a, operand_layout(depth_of(op), layout)) if registers else None
    first = None if held else shared_operand(lw, op, 0)
    second = shared_operand(lw, op, 1)
    name = start_accumulator(lw, op)
    steps = round_up(depth_of(op), second.per_step) // second.per_step
    formats = f"ptx::{FORMATS[a.tile.dtype.name]}, ptx::{FORMATS[second.dtype.name]}"
    with lw.body.each(steps, "s"):
        lw.body.line(f"u32 a[{len(rows)}][4], b[{2 * len(pairs)}][2];")
        with lw.body.each(len(rows), "m"):
            if held:
                lw.body.line(f"const auto x = bits<vec<u32, 4>>({held}.v[m * {steps} + s]);")
                lw.body.line("EACH(r, 4) a[m][r] = x[r];")
            else:
                assert first is not None
                _first_fragment(lw, op, first, rows)
            _finish_fragment(lw, op, second, "a[m]", 4)
        with lw.body.each(len(pairs), "n"):
            _second_fragment(lw, op, second, pairs)
            for half in (0, 1):
                _finish_fragment(lw, op, second, f"b[2 * n + {half}]", 2)
        with lw.body.each(len(rows), "m"), lw.body.each(2 * len(pairs), "n"):
            lw.body.line(f"ptx::mma<{formats}>({name}.v[m * {2 * len(pairs)} + n].e, a[m], b[n]);")


def _first_fragment(lw: NvidiaLowering, op: Op, operand: Operand, rows: list[int]) -> None:
    """Four 8 x 8 matrices (of 16-bit units) in the order rows, then k."""
    place = f"{warp_origin(lw, lw.layout(op.result), 0)} + {lw.table(rows)}[m]"
    if operand.depth_last or operand.dtype.bits == 16:
        inner, outer = "(lane & 7) + (lane >> 3 & 1) * 8", "(lane >> 4)"
        _load_matrices(lw, operand, place, inner, outer, "a[m]")
    else:
        _load_elements(lw, operand, "a[m]", 4, f"{place} + (lane >> 2) + (r & 1) * 8", "r >> 1")


def _second_fragment(lw: NvidiaLowering, op: Op, operand: Operand, pairs: list[int]) -> None:
    """Two blocks of eight columns: four matrices in the order k, then columns."""
    place = f"{warp_origin(lw, lw.layout(op.result), 1)} + {lw.table(pairs)}[n]"
    if operand.depth_last or operand.dtype.bits == 16:
        lw.body.line("u32 x[4];")
        _load_matrices(lw, operand, place, "(lane & 7) + (lane >> 4) * 8", "(lane >> 3 & 1)", "x")
        lw.body.line("EACH(r, 4) b[2 * n + (r >> 1)][r & 1] = x[r];")
    else:
        for half in (0, 1):
            _load_elements(lw, operand, f"b[2 * n + {half}]", 2, f"{place} + {8 * half} + (lane >> 2)", "r")


def _load_matrices(lw: NvidiaLowering, operand: Operand, place: str, inner: str, outer: str, target: str) -> None:
    """One ldmatrix. With k along the rows lane l gives row `inner` at k unit `outer`, else row k of the transpose."""
    unit = 16 // operand.dtype.nbytes
    k = f"s * {operand.per_step} + {outer} * {unit}"
    if operand.depth_last:
        address = operand.address(f"({place} + {inner})", f"({k})")
        lw.body.line(f"ptx::ldmatrix({target}, smem_at + {address});")
        return
    # The 8 x 8 matrices are of k by places: rows of a matrix are k, and the hardware transposes them.
    along = inner.replace("(lane & 7)", "0", 1)
    row = f"(s * {operand.per_step} + (lane & 7) + {outer} * 8)"
    address = operand.address(f"({place} + {along})", row)
    lw.body.line(f"ptx::ldmatrix<true>({target}, smem_at + {address});")


def _load_elements(lw: NvidiaLowering, operand: Operand, target: str, count: int, place: str, group: str) -> None:
    """Words put together from single elements: for formats that ldmatrix cannot transpose."""
    per_word = 4 // operand.dtype.nbytes
    kind = ctype(operand.dtype)
    unsigned = f"u{operand.dtype.bits}"
    with lw.body.each(count, "r"):
        lw.body.line(f"{target}[r] = 0;")
        k = f"(s * {operand.per_step} + (lane & 3) * {per_word} + ({group}) * {4 * per_word} + e)"
        element = f"(u32)bits<{unsigned}>(*(const {kind} *)(smem + {operand.address(f'({place})', k)}))"
        lw.body.line(f"EACH(e, {per_word}) {target}[r] |= {element} << (e * {operand.dtype.bits});")


def _finish_fragment(lw: NvidiaLowering, op: Op, operand: Operand, target: str, count: int) -> None:
    """Zeros beyond the depth, where anything may lie; f32 rounded to the format of the instruction."""
    depth, per_word = depth_of(op), 4 // operand.dtype.nbytes
    group = "r >> 1" if count == 4 else "r"
    if depth % operand.per_step:
        left = f"{depth} - (s * {operand.per_step} + (lane & 3) * {per_word} + ({group}) * {4 * per_word})"
        lw.body.line(f"EACH(r, {count}) {target}[r] = keep_elements<{operand.dtype.bits}>({target}[r], {left});")
    if operand.dtype.name == "f32":
        lw.body.line(f"EACH(r, {count}) {target}[r] = ptx::to_tf32({target}[r]);")
