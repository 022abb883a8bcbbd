"""How fast the parts of a compute unit are: rates and latencies of each AMD target and chip, each with its source.

Sources, by tag:
[I] AMD CDNA3 and CDNA4 ISA guides and white papers.
[L] LLVM: SISchedule.td (latencies), pull request 233721 (what runs beside a matrix instruction, from thread traces).
[P] ROCm Compute Profiler's documentation, "Local data share (LDS)" and "Vector L1 cache".
[M] mt4g's pointer chases on an MI300X at 2.1 GHz.
[H] HipKittens (arXiv 2511.08083), figures of MI355X.
[G] AMD, "From Naive to Near-Peak: Building High-Performance GEMM Kernels with Gluon": TFLOPS with the share of time
    that the matrix cores were busy, from which the clock under load follows.
[F] AMD, "Measuring Max-Achievable FLOPs", part 2: TFLOPS and clocks of an MI300X under load.
[A] assumed: no published figure was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class CuRates:
    """A compute unit: clocks, and bytes a clock."""

    transcendental: int  # clocks of v_exp and its like: quarter rate [I], doubled on CDNA4 [I]
    lds_out: int  # from LDS to one of its two ports, each of which serves two SIMDs [P]; doubled on CDNA4 [I]
    lds_in: int = 64  # address and data from a port to LDS [P]
    lds_fill: int = 128  # direct loads into LDS: the width of a bank row for writes [I]
    lds_latency: int = 48  # 52 for a dword [M], of which 4 are the address
    scalar_latency: int = 48  # [M]
    l2_latency: int = 288  # [M]
    l1_bytes: int = 128  # one line of the vector cache [I]
    memory_queue: int = 8  # vector memory instructions that wait for the cache without holding up issue [A]
    l2_bytes_per_xcd: int = 2048  # 16 channels of 128 bytes [I]
    taken_branch: int = 32  # 8 slots [L]
    barrier: int = 8  # two slots from the last arrival to the release [A]


@dataclass(frozen=True)
class ChipRates:
    """A chip: nanoseconds beyond a compute unit, TB/s, and GHz under sustained matrix load by operand dtype."""

    infinity_cache_ns: float
    hbm_ns: float
    infinity_cache_tb: float
    sustained: Mapping[str, float]


CU_RATES = MappingProxyType({"gfx942": CuRates(16, 64), "gfx950": CuRates(8, 128)})

# The clock at which a chip can keep its matrix cores busy is set by power. MI355X: [G], f16 1489 TFLOPS with 98.75 %
# busy, 8-bit 3257 with 99.72 %; bf16 from f16 by the ratio that [F] gives for MI300X, 708 to 654. MI300X: [F], 1115
# to 1230 MHz for f16 to bf16. MI350X and MI325X: peak clock scaled as on the sister chip [A].
_MI355X = {"f16": 1.438, "bf16": 1.557, "fp8": 1.557}
_MI300X = {"f16": 1.115, "bf16": 1.230, "fp8": 1.115}
_MI350X = {dtype: clock * 2.2 / 2.4 for dtype, clock in _MI355X.items()}
CHIP_RATES = MappingProxyType(
    {
        # 500 and 876 clocks of 2.1 GHz [M]; 17.2 TB/s [I]
        "MI300X": ChipRates(238.0, 417.0, 17.2, _MI300X),
        "MI325X": ChipRates(238.0, 417.0, 17.2, _MI300X),
        # L2 miss and Infinity Cache miss [H]; bandwidth as MI300X's [A]
        "MI350X": ChipRates(300.0, 500.0, 17.2, _MI350X),
        "MI355X": ChipRates(300.0, 500.0, 17.2, _MI355X),
    }
)
