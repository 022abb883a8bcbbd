"""Everything that differs between AMD targets, as data: matrix instructions, LDS, registers, chips.

Sources: AMD CDNA3 and CDNA4 ISA guides (matrix tables of chapter 7, LDS chapter), LLVM's SISchedule.td, the
AMD matrix instruction calculator, and HipKittens' phase measurements on MI355X. No AMD hardware was at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WAVE = 64
DIRECT = 16  # bytes a lane of the widest load straight to LDS, where the target has it


@dataclass(frozen=True)
class Mfma:
    """One dense matrix instruction: D[m, n] = C + A[m, k] B[k, n] for `blocks` independent products.

    `a`, `b` and `acc` are dtype names; `passes` are units of 4 clocks for which the matrix core is busy.
    `runs` is how many contiguous runs of k a lane's operand is made of (2 for the 8-bit f8f6f4 forms).
    """

    mnemonic: str
    builtin: str
    a: str
    b: str
    acc: str
    m: int
    n: int
    k: int
    passes: int
    blocks: int = 1
    runs: int = 1

    @property
    def flops_per_clock(self) -> float:
        """Dense FLOP per clock and CU, with the four matrix cores of a CU busy."""
        return 2 * self.m * self.n * self.k * self.blocks / (4 * self.passes) * 4


@dataclass(frozen=True)
class LdsAccess:
    """How one LDS instruction is served: bytes a lane, banks of 4 bytes, and lanes that compete, by clock."""

    instruction: str
    width: int
    banks: int
    phases: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Chip:
    """One product: XCDs, CUs in all, clock in GHz, memory bandwidth in TB/s."""

    name: str
    xcds: int
    cus: int
    clock: float
    bandwidth: float

    @property
    def cus_per_xcd(self) -> int:
        """CUs of one XCD."""
        return self.cus // self.xcds


@dataclass(frozen=True)
class Hazards:
    """Wait states between dependent instructions that the hardware does not interlock; of a matrix result by passes.

    `matrix_to_same` is for an accumulator that goes on by the same instruction, `matrix_to_overlap` for one that
    shares registers otherwise. `single` are products of f32. `addend_to_vector`: from reading an accumulator, except in
    those, to overwriting it. `mask` is a scalar register that a vector instruction wrote, `lanes` a use of a vector
    register through DPP or by swapping lanes, `store` the data of a store of three dwords or more.
    """

    matrix_to_factor: dict[int, int]
    matrix_to_vector: dict[int, int]
    matrix_to_overlap: dict[int, int]
    matrix_to_same: dict[int, int]
    single_to_vector: dict[int, int]
    single_to_overlap: dict[int, int]
    addend_to_vector: dict[int, int]
    vector_to_matrix: int = 2
    vector_to_lanes: int = 2
    transcendental_to_vector: int = 1
    mask_to_vector: int = 2
    mask_to_lane_select: int = 4
    mask_to_division: int = 4
    mask_to_memory: int = 5
    store_to_overwrite: int = 2
    pointer_to_load: int = 1  # from a scalar write of M0 to a direct load

    @property
    def reach(self) -> int:
        """The largest of all."""
        return max(*self.matrix_to_factor.values(), *self.matrix_to_vector.values())


@dataclass(frozen=True)
class Target:
    """One instruction-set target."""

    name: str
    lds_bytes: int
    lds_granule: int
    lds: dict[str, LdsAccess]
    mfma: tuple[Mfma, ...]
    direct_to_lds_widths: tuple[int, ...]
    fp8: tuple[str, str]
    chips: tuple[Chip, ...]
    hazards: Hazards
    registers_per_simd_lane: int = 512
    max_vgprs: int = 256
    max_agprs: int = 256
    register_granule: int = 8
    max_waves_per_simd: int = 8
    max_waves_per_group: int = 16
    simds_per_cu: int = 4
    max_vmcnt: int = 63
    max_lgkmcnt: int = 15
    lds_offset_bytes: int = 1 << 16  # what the offset of an LDS instruction reaches
    l2_bytes_per_xcd: int = 4 << 20
    infinity_cache_bytes: int = 256 << 20
    has: frozenset[str] = field(default_factory=frozenset)

    def waves_per_simd(self, registers: int) -> int:
        """Waves that fit one SIMD with this many unified registers (VGPRs + AGPRs) a lane."""
        granules = -(-max(registers, 1) // self.register_granule) * self.register_granule
        return min(self.max_waves_per_simd, self.registers_per_simd_lane // granules)

    def groups_per_cu(self, lds: int) -> int:
        """Workgroups whose LDS fits one CU."""
        granules = -(-max(lds, 1) // self.lds_granule) * self.lds_granule
        return self.lds_bytes // granules


# -- LDS ----------------------------------------------------------------------------------------------


def _consecutive(lanes: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(range(start, start + lanes)) for start in range(0, WAVE, lanes))


def _both_halves(*groups: tuple[range, ...]) -> tuple[tuple[int, ...], ...]:
    """Lane groups of the lower 32 lanes, and the same 32 further up."""
    lower = [tuple(lane for part in group for lane in part) for group in groups]
    return tuple(lower) + tuple(tuple(lane + 32 for lane in group) for group in lower)


# Eight lanes a clock: MI300's ds_read_b128 (CK's documentation, Triton) and MI355X's ds_read_b96 (HipKittens).
_EIGHTS = _both_halves(
    (range(0, 4), range(20, 24)),
    (range(4, 8), range(16, 20)),
    (range(8, 12), range(28, 32)),
    (range(12, 16), range(24, 28)),
)
# Sixteen lanes a clock: MI355X's ds_read_b128 (HipKittens, measured).
_SIXTEENS = _both_halves(
    (range(0, 4), range(12, 16), range(20, 28)),
    (range(4, 12), range(16, 20), range(28, 32)),
)


def _lds(*accesses: LdsAccess) -> dict[str, LdsAccess]:
    return {access.instruction: access for access in accesses}


_GFX942_LDS = _lds(
    LdsAccess("ds_read_b32", 4, 32, _consecutive(32)),
    LdsAccess("ds_read_b64", 8, 32, _consecutive(16)),
    LdsAccess("ds_read_b128", 16, 32, _EIGHTS),
    LdsAccess("ds_write_b32", 4, 32, _consecutive(32)),
    LdsAccess("ds_write_b64", 8, 32, _consecutive(16)),
    LdsAccess("ds_write_b128", 16, 32, _consecutive(8)),
)
_GFX950_LDS = _lds(
    LdsAccess("ds_read_b32", 4, 64, _consecutive(32)),
    LdsAccess("ds_read_b64", 8, 64, _consecutive(32)),
    LdsAccess("ds_read_b96", 12, 32, _EIGHTS),
    LdsAccess("ds_read_b128", 16, 64, _SIXTEENS),
    LdsAccess("ds_read_b64_tr_b16", 8, 64, _consecutive(32)),
    LdsAccess("ds_read_b64_tr_b8", 8, 64, _consecutive(32)),
    LdsAccess("ds_write_b32", 4, 32, _consecutive(32)),
    LdsAccess("ds_write_b64", 8, 32, _consecutive(16)),
    LdsAccess("ds_write_b128", 16, 32, _consecutive(8)),
)


# -- matrix instructions ------------------------------------------------------------------------------


def _pair(dtype: str, letters: str, k32: int, k16: int, builtin32: str, builtin16: str, acc: str = "f32") -> list[Mfma]:
    """The 32x32 and 16x16 forms of one dtype; both take 8 and 4 passes."""
    kind = "i32" if acc == "i32" else "f32"
    return [
        Mfma(f"v_mfma_{kind}_32x32x{k32}_{letters}", builtin32, dtype, dtype, acc, 32, 32, k32, 8),
        Mfma(f"v_mfma_{kind}_16x16x{k16}_{letters}", builtin16, dtype, dtype, acc, 16, 16, k16, 4),
    ]


def _fp8(e4m3: str, e5m2: str) -> list[Mfma]:
    """All combinations of the two 8-bit formats at K = 16 and 32."""
    names = {"fp8": e4m3, "bf8": e5m2}
    found = []
    for a, a_dtype in names.items():
        for b, b_dtype in names.items():
            for m, k, passes in ((32, 16, 8), (16, 32, 4)):
                builtin = f"__builtin_amdgcn_mfma_f32_{m}x{m}x{k}_{a}_{b}"
                mnemonic = f"v_mfma_f32_{m}x{m}x{k}_{a}_{b}"
                found.append(Mfma(mnemonic, builtin, a_dtype, b_dtype, "f32", m, m, k, passes))
    return found


def _f32() -> list[Mfma]:
    prefix = "__builtin_amdgcn_mfma_f32_"
    return [
        Mfma("v_mfma_f32_32x32x2_f32", f"{prefix}32x32x2f32", "f32", "f32", "f32", 32, 32, 2, 16),
        Mfma("v_mfma_f32_16x16x4_f32", f"{prefix}16x16x4f32", "f32", "f32", "f32", 16, 16, 4, 8),
    ]


def _f8f6f4(e4m3: str, e5m2: str) -> list[Mfma]:
    """gfx950's double-rate 8-bit forms; the operands' formats are the instruction's cbsz and blgp."""
    found = []
    for a in (e4m3, e5m2):
        for b in (e4m3, e5m2):
            for m, k, passes in ((32, 64, 16), (16, 128, 8)):
                builtin = f"__builtin_amdgcn_mfma_scale_f32_{m}x{m}x{k}_f8f6f4"
                found.append(Mfma(f"v_mfma_f32_{m}x{m}x{k}_f8f6f4", builtin, a, b, "f32", m, m, k, passes, runs=2))
    return found


_B = "__builtin_amdgcn_mfma_"
_COMMON = [
    *_pair("f16", "f16", 8, 16, f"{_B}f32_32x32x8f16", f"{_B}f32_16x16x16f16"),
    *_pair("bf16", "bf16", 8, 16, f"{_B}f32_32x32x8bf16_1k", f"{_B}f32_16x16x16bf16_1k"),
    *_pair("i8", "i8", 16, 32, f"{_B}i32_32x32x16_i8", f"{_B}i32_16x16x32_i8", acc="i32"),
    *_f32(),
]
_GFX942_MFMA = (*_COMMON, *_fp8("fp8e4m3fnuz", "fp8e5m2fnuz"))
_GFX950_MFMA = (
    *_pair("f16", "f16", 16, 32, f"{_B}f32_32x32x16_f16", f"{_B}f32_16x16x32_f16"),
    *_pair("bf16", "bf16", 16, 32, f"{_B}f32_32x32x16_bf16", f"{_B}f32_16x16x32_bf16"),
    *_pair("i8", "i8", 32, 64, f"{_B}i32_32x32x32_i8", f"{_B}i32_16x16x64_i8", acc="i32"),
    *_f8f6f4("fp8e4m3", "fp8e5m2"),
    *_COMMON,
    *_fp8("fp8e4m3", "fp8e5m2"),
)

# -- hazards ------------------------------------------------------------------------------------------


def _hazards(later: int) -> Hazards:
    """CDNA3 ISA guide table 11; on CDNA4 (table 38) results of 4 passes and more come a state `later`."""
    at_use = {2: 5, 4: 7 + later, 8: 11 + later, 16: 19 + later}
    overlap = {2: 3 + later, 4: 5 + later, 8: 9 + later, 16: 17 + later}
    return Hazards(
        at_use,
        at_use,
        overlap,
        matrix_to_same={2: 2, 4: 0, 8: 0, 16: 0},
        single_to_vector={2: 4, 4: 6, 8: 10, 16: 18},
        single_to_overlap={2: 2, 4: 4, 8: 8, 16: 16},
        addend_to_vector={2: 1, 4: 3, 8: 7, 16: 15},
    )


# -- targets ------------------------------------------------------------------------------------------

GFX942 = Target(
    "gfx942",
    lds_bytes=64 << 10,
    lds_granule=512,
    lds=_GFX942_LDS,
    mfma=_GFX942_MFMA,
    direct_to_lds_widths=(4,),
    fp8=("fp8e4m3fnuz", "fp8e5m2fnuz"),
    chips=(Chip("MI300X", 8, 304, 2.1, 5.3), Chip("MI325X", 8, 304, 2.1, 6.0)),
    hazards=_hazards(later=0),
)
GFX950 = Target(
    "gfx950",
    lds_bytes=160 << 10,
    lds_granule=1280,
    lds=_GFX950_LDS,
    mfma=_GFX950_MFMA,
    direct_to_lds_widths=(4, 12, 16),
    fp8=("fp8e4m3", "fp8e5m2"),
    chips=(Chip("MI350X", 8, 256, 2.2, 8.0), Chip("MI355X", 8, 256, 2.4, 8.0)),
    hazards=_hazards(later=1),
    has=frozenset({"cvt_pk_bf16", "ds_read_tr", "permlane_swap", "bitop3"}),
)
TARGETS = {target.name: target for target in (GFX942, GFX950)}
