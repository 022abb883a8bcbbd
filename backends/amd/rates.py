"""How fast the parts of a compute unit are: rates and latencies of each AMD target and chip, each with its source.

Sources, by tag:
[I] AMD CDNA3 and CDNA4 ISA guides and white papers.
[L] LLVM: SISchedule.td (latencies), pull request 233721 (what runs beside a matrix instruction, from thread traces).
[P] ROCm Compute Profiler's documentation, "Local data share (LDS)".
[M] mt4g's pointer chases on an MI300X at 2.1 GHz.
[H] HipKittens (arXiv 2511.08083), figures of MI355X.
[G] AMD, gfx950-gluon-tutorials, from thread traces of an MI355X: docs/lds_throughput.md, docs/tcp_bound_tile_model.md,
    kernels/gemm/intra_wave/a16w16 (v3 to v8), kernels/gemm/inter_wave (8 waves, 99.84 % of the time busy).
[F] AMD, "Measuring Max-Achievable FLOPs", part 2: TFLOPS and clocks of an MI300X under load.
[A] assumed: no published figure was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warpwave.backends.amd.arch import Target

SLOT = 4  # clocks of a SIMD's issue slot, and of a vector instruction: 16 lanes a clock [I]


@dataclass(frozen=True)
class CuRates:
    """A compute unit: clocks, and bytes a clock."""

    transcendental: int  # clocks of v_exp and its like: quarter rate [I], doubled on CDNA4 [I]
    lds_bus: int  # bytes a clock, each way, of one of the two ports to LDS, which serve two SIMDs each [P], [G]
    matrix_hold: int = 2  # slots that a matrix instruction with operands of 16 bytes keeps vector instructions off [L]
    lds_queue: int = 8  # LDS instructions of a port not yet served, before issue is held up [G]
    lds_fill: int = 128  # direct loads into LDS: the width of a bank row for writes [I]
    lds_dword: int = 52  # clocks from a dword's read to its use [M]
    scalar_latency: int = 48  # [M]
    l1_latency: int = 116  # [M]; scratch is taken to stay in this cache
    l1_dword: int = 4  # clocks of the vector cache for a dword a lane, and for two or four [G]
    l1_wider: int = 16
    memory_queue: int = 12  # vector memory instructions that the cache has not begun, before issue is held up [G]
    memory_flight: int = 32 << 10  # bytes of loads in flight: the size of the vector cache [G]
    l2_latency: int = 288  # [M]
    l2_bytes_per_xcd: int = 2048  # 16 channels of 128 bytes [I]
    # What one compute unit gets, a clock, while all ask for all they can: the bandwidth-bound tiles of [G] at depth
    # 8192 come to 44 and 45 (128 x 128 69 % busy, 256 x 64 55 %, 128 x 64 47 %).
    loaded_bytes: int = 44
    taken_branch: int = 32  # 8 slots [L]
    barrier: int = 8  # from the last arrival to the release; longer than 12 would contradict [G]'s 99.84 %


@dataclass(frozen=True)
class ChipRates:
    """A chip: nanoseconds and TB/s beyond L2, and how its clock holds up under matrix load, by operand dtype.

    `sustained` is a factor on SUSTAINED, for operands of that dtype.
    """

    infinity_cache_ns: float
    hbm_ns: float
    infinity_cache_tb: float
    sustained: Mapping[str, float]


CU_RATES = MappingProxyType({"gfx942": CuRates(16, 64), "gfx950": CuRates(8, 128)})

# GHz that an MI355X keeps up with f16 operands, by the share of the time that its matrix cores work, both over whole
# kernels. [G], 4096 x 4096 x 8192: 738, 964, 1034, 1221, 1419 and 1526 TFLOPS at 32.0, 51.9, 57.7, 68.6, 82.1 and
# 95.5 % busy loops, of which a kernel is 95.5 %; all times 0.96, which is what the final kernel's published 1489
# TFLOPS (98.75 %) are below this series. Power sets these clocks: machines differ by several percent.
SUSTAINED = ((0.0, 2.4), (0.306, 2.21), (0.495, 1.78), (0.551, 1.72), (0.655, 1.71), (0.784, 1.66), (0.912, 1.53))
# bf16 from f16 by the ratio that [F] gives for MI300X, 708 to 654 TFLOPS. 8 bits: [G], 3257 TFLOPS at 99.72 %.
# MI300X: [F], 1115 MHz with f16 and 1230 with bf16. MI325X from it by AMD's achievable TFLOPS, 787, 831 and 1408 to
# 654, 708 and 1273 ([F], and "Understanding TAF Alongside Peak FLOPs and MAF"). MI350X as MI355X [A].
_MI355X = {"f16": 1.0, "bf16": 1.083, "fp8": 1.06}
_MI300X = {"f16": 0.74, "bf16": 0.817, "fp8": 0.74}
_MI325X = {"f16": 0.89, "bf16": 0.959, "fp8": 0.818}
CHIP_RATES = MappingProxyType(
    {
        # 500 and 876 clocks of 2.1 GHz [M]; 17.2 TB/s [I]
        "MI300X": ChipRates(238.0, 417.0, 17.2, _MI300X),
        "MI325X": ChipRates(238.0, 417.0, 17.2, _MI325X),
        # L2 miss and Infinity Cache miss [H]; bandwidth as MI300X's [A]
        "MI350X": ChipRates(300.0, 500.0, 17.2, _MI355X),
        "MI355X": ChipRates(300.0, 500.0, 17.2, _MI355X),
    }
)


def slowest_load(target: Target) -> int:
    """Clocks of a load that misses all caches, at the peak clock of the chip of this target that waits longest."""
    return max(round(CHIP_RATES[chip.name].hbm_ns * chip.clock) for chip in target.chips)
