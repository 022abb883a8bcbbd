"""The text around a kernel's body: headers, tables, parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.rings import map_names
from warpwave.backends.nvidia.lowered import MASKED, TensorMap
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.simt.writer import ctype
from warpwave.tiles.types import TensorType


def kernel_text(lowerings: Sequence[NvidiaLowering], *, located: bool) -> str:
    """The whole source: one text, or one with a producer and one without; `located` with line directives."""
    lines = [
        '#include "warpwave.cuh"',
        '#include "warpwave/statements.cuh"',
        "",
        "using namespace ww;",
        "using namespace ww::tk;",
        "",
        *_variant(lowerings[0].kernel),
        "struct grid_sizes { int sizes[4]; };",
    ]
    if lowerings[0].bulk:
        lines += ["#ifndef AFTER_COPIES", "#define AFTER_COPIES 0", "#endif"]
    if lowerings[0].plan.resident > 1:
        lines += ["#ifndef RESIDENT", f"#define RESIDENT {lowerings[0].plan.resident}", "#endif"]
    maps = [m for lw in lowerings for m in lw.maps]
    for number, lw in enumerate(lowerings):
        if len(lowerings) > 1:
            lines += ["", _condition(lw, first=number == 0)]
        lines += _function(lw, maps, located=located)
    return "\n".join([*lines, *["#endif"] * (len(lowerings) > 1), ""])


def _condition(lw: NvidiaLowering, *, first: bool) -> str:
    """When this text is the one that is compiled."""
    if first:
        return f"#if (TMA & {_bulk_mask(lw):#x}) == {_bulk_mask(lw):#x}"
    return "#else  // some tensor is not for the bulk copy engine: all warps copy"


def tensors_of(kernel: Kernel) -> list[str]:
    """Its tensor parameters."""
    return [n for n, v in zip(kernel.param_names, kernel.params, strict=True) if isinstance(v.type, TensorType)]


def _bulk_mask(lw: NvidiaLowering) -> int:
    """One bit for each tensor that the producer's copies read."""
    tensors = tensors_of(lw.kernel)
    return sum(1 << tensors.index(name) for name in lw.bulk)


def _function(lw: NvidiaLowering, maps: Sequence[TensorMap], *, located: bool) -> list[str]:
    return [
        lw.tables.text(),
        "",
        f"KERNEL({lw.plan.threads}, {'RESIDENT' if lw.plan.resident > 1 else lw.plan.blocks})",
        f"void {_own_name(lw.kernel.name)}(",
        ",\n".join(f"    {parameter}" for parameter in _parameters(lw, maps)) + ") {",
        "  extern __shared__ __align__(1024) u8 smem[];",
        "  const u32 smem_at = ptx::shared_address(smem);",
        f"  u8 *const scratch = smem + {lw.peak_shared_bytes};",
        "  const int thread = threadIdx.x, lane = thread & 31, warp_id = __shfl_sync(~0u, thread >> 5, 0);",
        lw.prologue.text(),
        lw.body.located_text() if located else lw.body.text(),
        "}",
    ]


def _own_name(kernel: str) -> str:
    """The kernel's name where it is declared: in brackets if it is also a macro of statements.cuh."""
    return (
        f"({kernel})"
        if re.fullmatch(r"mma?_r?At?Bt?(_in_flight)?|load_async|store_async|store_panel", kernel)
        else kernel
    )


def _variant(kernel: Kernel) -> list[str]:
    """One bit of WIDE, of ROWS and of TMA for each tensor: the host looks at strides and alignment."""
    tensors = tensors_of(kernel)
    lines = []
    for mask in ("WIDE", "ROWS", "TMA"):
        lines += [f"#ifndef {mask}", f"#define {mask} 0xffffffff", "#endif"]
        bits = [f"{mask} >> {i} & 1" if i < MASKED else "false" for i in range(len(tensors))]
        lines += [f"constexpr bool {mask.lower()}_{n} = {bit};" for n, bit in zip(tensors, bits, strict=True)]
    return lines


def _parameters(lw: NvidiaLowering, maps: Sequence[TensorMap]) -> list[str]:
    """C parameters, in the order that `lowered` states."""
    kernel, parameters = lw.kernel, []
    for name, value in zip(kernel.param_names, kernel.params, strict=True):
        if isinstance(value.type, TensorType):
            kind = f"tensor<{ctype(value.type.dtype)}, {max(value.type.rank, 1)}>"
            parameters.append(f"const __grid_constant__ {kind} {name}_")
        else:
            parameters.append(f"const {ctype(value.type.dtype)} {name}_")
    parameters += [f"const __grid_constant__ tensor_map {name}" for name in map_names(maps)]
    parameters += ["const __grid_constant__ grid_sizes grid", "int *status"]
    if any(op.name == "print" for op in walk(kernel.body)):
        parameters.append("u64 *prints")
    return parameters
