"""Everything that differs between NVIDIA targets, as data: matrix instructions, memories, registers, chips.

Sources: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability"; PTX ISA 9.0, sections
on mma, wgmma, cp.async.bulk.tensor, barrier and setmaxnreg; NVIDIA's architecture white papers and data sheets for
the chips; multiprocessors and L2 of the H200 were read on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

WARP = 32
WARPGROUP = 128


@dataclass(frozen=True)
class Mma:
    """One dense matrix instruction: D[m, n] = C + A[m, k] B[k, n].

    `a`, `b` and `acc` are dtype names. `threads` execute it together. `transposes` says whether operands in shared
    memory may lie along m and n instead of k, where the instruction reads them there.
    """

    mnemonic: str
    a: str
    b: str
    acc: str
    m: int
    n: int
    k: int
    threads: int = WARP
    transposes: bool = False


@dataclass(frozen=True)
class TensorMapLimits:
    """What cuTensorMapEncodeTiled and the copy engine demand."""

    max_rank: int = 5
    max_box: int = 256
    alignment: int = 16  # of the base address, of every stride and of where a box's rows begin, in bytes
    max_stride: int = 1 << 40  # bytes, exclusive
    max_extent: int = 1 << 32
    swizzles: tuple[int, ...] = (128, 64, 32)


@dataclass(frozen=True)
class Chip:
    """One product: multiprocessors, L2 in MiB, memory bandwidth in TB/s, dense bf16 TFLOP/s of the data sheet."""

    name: str
    multiprocessors: int
    l2_mib: int
    bandwidth: float
    bf16_tflops: float


@dataclass(frozen=True)
class Target:
    """One instruction-set target. `arch` is the compiler's name for it; `has` names features that lowering asks for."""

    name: str
    arch: str
    capability: tuple[int, int]
    runs_on: tuple[tuple[int, int], ...]  # capabilities of the devices that execute its code
    chips: tuple[Chip, ...]
    shared_per_sm: int
    shared_per_block: int
    warps_per_sm: int
    max_blocks_per_sm: int
    mma: tuple[Mma, ...]
    has: frozenset[str] = field(default_factory=frozenset)
    tensor_maps: TensorMapLimits | None = None
    max_cluster: int = 1
    registers_per_sm: int = 65536
    max_registers: int = 255
    register_granule: int = 8  # a thread's registers are allocated in units of this
    reserved_shared: int = 1024  # of each block, taken by the system
    shared_granule: int = 128
    max_threads: int = 1024
    named_barriers: int = 16

    @property
    def full_name(self) -> str:
        """The target's name in the registry."""
        return f"nvidia:{self.name}"

    @property
    def has_portable_ptx(self) -> bool:
        """Whether newer devices' drivers assemble its PTX: not that with features of one architecture (sm_90a)."""
        return self.arch[-1].isdigit()

    def shared_by(self, blocks: int) -> Target:
        """What one of so many blocks has that share a multiprocessor."""
        if blocks == 1:
            return self
        shared = self.shared_per_sm // blocks // self.shared_granule * self.shared_granule - self.reserved_shared
        registers = self.registers_per_sm // blocks
        return replace(self, shared_per_block=min(shared, self.shared_per_block), registers_per_sm=registers)

    def registers_of_a_thread(self, threads: int) -> int:
        """Registers that each thread has if a block of so many has the multiprocessor for itself."""
        share = self.registers_per_sm // threads // self.register_granule * self.register_granule
        return min(share, self.max_registers)

    def blocks_per_sm(self, registers: int, threads: int, shared: int) -> int:
        """Blocks that are resident on one multiprocessor at a time; 0 if not even one fits."""
        if threads > self.max_threads or registers > self.max_registers or shared > self.shared_per_block:
            return 0
        warps = -(-threads // WARP)
        granules = -(-max(registers, 1) // self.register_granule) * self.register_granule
        by_registers = self.registers_per_sm // (granules * WARP) // 4 * 4 // warps  # four quadrants, whole warps each
        block_shared = -(-(shared + self.reserved_shared) // self.shared_granule) * self.shared_granule
        by_shared = self.shared_per_sm // block_shared
        return min(self.max_blocks_per_sm, self.warps_per_sm // warps, by_registers, by_shared)


def _warp_mma(a: str, acc: str, n: int, k: int, b: str | None = None) -> Mma:
    letters = {"fp8e4m3": "e4m3", "fp8e5m2": "e5m2", "i8": "s8", "i32": "s32"}
    names = (letters.get(t, t) for t in (acc, a, b or a, acc))
    return Mma(f"mma.sync.aligned.m16n{n}k{k}.row.col.{'.'.join(names)}", a, b or a, acc, 16, n, k)


def _fp8_pairs() -> Iterator[tuple[str, str]]:
    formats = ("fp8e4m3", "fp8e5m2")
    return ((a, b) for a in formats for b in formats)


def _wgmma(a: str, acc: str, n: int, k: int, b: str | None = None, *, transposes: bool = False) -> Mma:
    letters = {"fp8e4m3": "e4m3", "fp8e5m2": "e5m2", "i8": "s8", "i32": "s32"}
    names = (letters.get(t, t) for t in (acc, a, b or a))
    mnemonic = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{'.'.join(names)}"
    return Mma(mnemonic, a, b or a, acc, 64, n, k, WARPGROUP, transposes)


_SM80_MMA = (
    _warp_mma("f16", "f32", 8, 16),
    _warp_mma("f16", "f16", 8, 16),
    _warp_mma("bf16", "f32", 8, 16),
    _warp_mma("i8", "i32", 8, 32),
)
_SM89_MMA = (*_SM80_MMA, *(_warp_mma(a, "f32", 8, 32, b) for a, b in _fp8_pairs()))

# n of wgmma: every multiple of 8 up to 256 for floats; 8-bit integers have 8, 16, 24, 32 and multiples of 16 above.
WGMMA_N = tuple(range(8, 257, 8))
WGMMA_N_INT = (8, 16, 24, *range(32, 257, 16))

_SM90_MMA = (
    *(_wgmma("f16", acc, n, 16, transposes=True) for acc in ("f32", "f16") for n in WGMMA_N),
    *(_wgmma("bf16", "f32", n, 16, transposes=True) for n in WGMMA_N),
    *(_wgmma(a, "f32", n, 32, b) for a, b in _fp8_pairs() for n in WGMMA_N),
    *(_wgmma("i8", "i32", n, 32) for n in WGMMA_N_INT),
    *_SM89_MMA,
)

_ASYNC_COPIES = frozenset({"cp_async", "ldmatrix", "bf16_max"})

SM80 = Target(
    "sm80",
    "sm_80",
    (8, 0),
    runs_on=((8, 0), (8, 6), (8, 7)),
    chips=(Chip("A100", 108, 40, 2.0, 312), Chip("A30", 56, 24, 0.93, 165)),
    shared_per_sm=164 << 10,
    shared_per_block=163 << 10,
    warps_per_sm=64,
    max_blocks_per_sm=32,
    mma=_SM80_MMA,
    has=_ASYNC_COPIES,
)
SM89 = Target(
    "sm89",
    "sm_89",
    (8, 9),
    runs_on=((8, 9),),
    chips=(Chip("L40S", 142, 96, 0.86, 362), Chip("L4", 58, 48, 0.3, 121), Chip("RTX 4090", 128, 72, 1.0, 165)),
    shared_per_sm=100 << 10,
    shared_per_block=99 << 10,
    warps_per_sm=48,
    max_blocks_per_sm=24,
    mma=_SM89_MMA,
    has=_ASYNC_COPIES | {"fp8"},
)
SM90A = Target(
    "sm90a",
    "sm_90a",
    (9, 0),
    runs_on=((9, 0),),
    chips=(Chip("H200", 132, 60, 4.8, 989), Chip("H100 SXM", 132, 50, 3.35, 989), Chip("H100 PCIe", 114, 50, 2.0, 756)),
    shared_per_sm=228 << 10,
    shared_per_block=227 << 10,
    warps_per_sm=64,
    max_blocks_per_sm=32,
    mma=_SM90_MMA,
    has=_ASYNC_COPIES | {"fp8", "tma", "mbarrier", "wgmma", "setmaxnreg", "stmatrix", "cluster"},
    tensor_maps=TensorMapLimits(),
    max_cluster=8,  # 16 only with an opt-in that not every device grants
)
TARGETS = {target.name: target for target in (SM90A, SM89, SM80)}


def target_of(capability: tuple[int, int]) -> Target | None:
    """The target whose code a device of this compute capability executes."""
    return next((t for t in TARGETS.values() if capability in t.runs_on), None)
