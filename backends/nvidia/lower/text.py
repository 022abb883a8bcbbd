"""The text around a kernel's body: headers, tables, parameters."""

from __future__ import annotations

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.simt.writer import ctype
from warpwave.tiles.types import TensorType

WINDOW = 8  # rows of blocks that are walked column by column


def kernel_text(lw: NvidiaLowering, body: str) -> str:
    """The whole source, with this body."""
    kernel, plan = lw.kernel, lw.plan
    lines = [
        '#include "warpwave.cuh"',
        "",
        "using namespace kittens;",
        "using namespace ww;",
        "",
        *_variant(kernel),
        "struct grid_sizes { int sizes[4]; };",
        lw.tables.text(),
        "",
        f"KERNEL({plan.threads}, 1)",
        f"void {kernel.name}({', '.join(_parameters(lw))}) {{",
        "  extern __shared__ __align__(1024) u8 smem[];",
        "  const u32 smem_at = ptx::shared_address(smem);",
        f"  u8 *const scratch = smem + {lw.peak_shared_bytes};",
        "  const int thread = threadIdx.x, lane = thread & 31, warp_id = thread >> 5, block_id = blockIdx.x;",
        lw.prologue.text(),
        body,
        "}",
        "",
    ]
    return "\n".join(lines)


def _variant(kernel: Kernel) -> list[str]:
    """One bit of WIDE and of TMA for each tensor: the host looks at strides and alignment."""
    tensors = [n for n, v in zip(kernel.param_names, kernel.params, strict=True) if isinstance(v.type, TensorType)]
    lines = []
    for mask in ("WIDE", "TMA"):
        lines += [f"#ifndef {mask}", f"#define {mask} 0xffffffff", "#endif"]
        bits = [f"{mask} >> {i} & 1" if i < 32 else "false" for i in range(len(tensors))]
        lines += [f"constexpr bool {mask.lower()}_{n} = {bit};" for n, bit in zip(tensors, bits, strict=True)]
    return lines


def _parameters(lw: NvidiaLowering) -> list[str]:
    """C parameters, in the order that `lowered` states."""
    kernel, parameters = lw.kernel, []
    for name, value in zip(kernel.param_names, kernel.params, strict=True):
        if isinstance(value.type, TensorType):
            kind = f"tensor<{ctype(value.type.dtype)}, {max(value.type.rank, 1)}>"
            parameters.append(f"const __grid_constant__ {kind} {name}_")
        else:
            parameters.append(f"const {ctype(value.type.dtype)} {name}_")
    parameters += [f"const __grid_constant__ ptx::tensor_map map_{i}" for i in range(len(lw.maps))]
    parameters += ["const __grid_constant__ grid_sizes grid", "int *status"]
    if any(op.name == "print" for op in walk(kernel.body)):
        parameters.append("u64 *prints")
    return parameters
