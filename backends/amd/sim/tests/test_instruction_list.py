"""Every instruction that LLVM's disassembler knows of the targets is simulated, or of a kind that is refused by name."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpwave.backends.amd.sim import _sim
from warpwave.backends.amd.sim._code_object import find_llvm

from ._compile import TARGETS

# docs/simulator.md says so, too.
REFUSED = re.compile(
    r"ds_(gws_\w+|append|consume|ordered_count|\w*addtid_\w+|\w+_src2_\w+|condxchg32_\w+|wrxchg2\w*)"
    r"|tbuffer_\w+|buffer_(load|store)_format_\w+|scratch_load_lds_\w+"
    r"|s_(buffer_atomic|atomic|scratch_(load|store)|buffer_store|atc_probe|dcache_discard)\w*"
    r"|s_(sendmsg|sendmsghalt|cbranch_(g_fork|i_fork|join|cdbg\w+)|rfe_\w+|setkill|endpgm_\w+|movrel\w+)"
    r"|v_(clrexcp|cvt_pkaccum_u8_f32|mqsad_u32_u8|screen_partition_4se_b32|trig_preop_f64|mfma_ld_scale_b32)"
)
SUFFIX = re.compile(r"_(e32|e64|dpp|sdwa|e64_dpp)$")
V = [256 + n for n in range(64)]  # vector registers as sources


def encodings() -> Iterator[tuple[int, int]]:
    """An encoding of each operation of each format, with operands that some decoder accepts (CDNA3 ISA, chapter 13)."""
    for op in range(128):
        yield 0b10 << 30 | op << 23 | 4 << 16 | 8 << 8 | 12, 0  # SOP2
        yield 0b101111110 << 23 | op << 16 | 8 << 8 | 12, 0  # SOPC
        yield 0b101111111 << 23 | op << 16, 0  # SOPP
        yield 0b1011 << 28 | (op & 31) << 23 | 4 << 16 | 1, 0  # SOPK
        yield (op & 63) << 25 | 4 << 17 | 6 << 9 | V[8], 0x3F800000  # VOP2
    for op, source in itertools.product(range(256), (V[8], 8)):
        yield 0b101111101 << 23 | 4 << 16 | op << 8 | 8, 0  # SOP1
        yield 0b0111111 << 25 | 4 << 17 | op << 9 | source, 0  # VOP1
        yield 0b0111110 << 25 | op << 17 | 6 << 9 | source, 0  # VOPC
        yield 0b110000 << 26 | op << 18 | 4 << 6 | 1 << 17 | 4, 0x10  # SMEM
    yield from _three_sources()
    yield from _memory()


def _three_sources() -> Iterator[tuple[int, int]]:
    sources = ((V[8], V[10], V[12]), (V[8], V[10], 0x80), (8, 10, 12), (V[8], 10, 12), (V[16], V[32], V[48]))
    for op, (a, b, c), high, result in itertools.product(range(1024), sources, (0, 3 << 27, 1 << 27), (4, 0)):
        yield 0b110100 << 26 | op << 16 | result, a | b << 9 | c << 18 | high


def _memory() -> Iterator[tuple[int, int]]:
    for op, first, second, result in itertools.product(range(256), (6, 0), (8, 0), (10, 0)):
        yield 0b110110 << 26 | op << 17, 4 | first << 8 | second << 16 | result << 24  # DS
    for op, segment, data, result in itertools.product(range(128), range(3), (6, 0), (8, 0)):
        for scalar in (0x7F, 8, 0):
            yield 0b110111 << 26 | op << 18 | segment << 14, 4 | data << 8 | scalar << 16 | result << 24  # FLAT
    for op, flag in itertools.product(range(128), (0, 1 << 16)):
        yield 0b111000 << 26 | op << 18 | flag, 4 | 6 << 8 | 2 << 16 | 8 << 24  # MUBUF
        yield 0b111010 << 26 | (op & 15) << 15 | 7 << 19 | 4 << 23, 4 | 6 << 8 | 2 << 16 | 8 << 24  # MTBUF


@pytest.fixture(scope="module")
def llvm():
    for part in ("z", "zstd"):  # which libLLVM needs, as the simulator finds them
        ctypes.CDLL(str(Path(_sim.__file__).parent / "sysdeps" / f"librocm_sysdeps_{part}.so"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(find_llvm())
    for part in ("TargetInfo", "Target", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    library.LLVMCreateDisasmCPU.restype = ctypes.c_void_p
    library.LLVMDisasmInstruction.restype = ctypes.c_size_t
    return library


def mnemonics(llvm, target: str) -> set[str]:
    disassembler = llvm.LLVMCreateDisasmCPU(b"amdgcn-amd-amdhsa", target.encode(), None, 0, None, None)
    found, text = set(), ctypes.create_string_buffer(256)
    for first, second in encodings():
        code = first.to_bytes(4, "little") + second.to_bytes(4, "little") + bytes(16)
        arguments = ctypes.c_void_p(disassembler), code, ctypes.c_uint64(len(code)), ctypes.c_uint64(0)
        if llvm.LLVMDisasmInstruction(*arguments, text, ctypes.c_size_t(256)):
            found.add(SUFFIX.sub("", text.value.decode().split()[0]))
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_what_llvm_decodes_is_simulated_or_refused_by_name(llvm, target):
    known = mnemonics(llvm, target)
    assert len(known) > 1100  # or the encodings above are not those of the targets
    assert sorted(name for name in known - set(_sim.mnemonics()) if not REFUSED.fullmatch(name)) == []
