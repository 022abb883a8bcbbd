"""Speed of the AMD simulator: VALU rates, a 256x256x256 bf16 GEMM, start-up, and scaling over cores.

    python -m warpwave.bench.sim_speed [--tinygrad CHECKOUT]

With a checkout of tinygrad its emulator runs the same code objects in the same process, and the ratio is printed.
Every measurement asserts its result first; times are the best of several, in process time of one core.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np

from warpwave.backends.amd import sim

REPOSITORY = Path(__file__).resolve().parents[1]
CORPUS = REPOSITORY / "backends" / "amd" / "sim" / "tests" / "corpus"
TARGET = "gfx950"
HIP = [
    "-x",
    "hip",
    "--cuda-device-only",
    "-nogpuinc",
    "-nogpulib",
    f"--offload-arch={TARGET}",
    "-O3",
    "-std=c++20",
    "-w",
]

LOOP = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.text
	.globl loop
	.p2align 8
	.type loop,@function
loop:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_movk_i32 s8, {turns}
{setup}
	s_waitcnt lgkmcnt(0)
.Lloop:
{body}
	s_sub_u32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .Lloop
	v_mov_b32_e32 v2, 1.0
	global_store_dword v1, v2, s[4:5]
	s_endpgm
.Lend:
	.size loop, .Lend-loop
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel loop
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 40
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 40
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
"""
BODIES = {
    "v_fma_f32": "v_fma_f32 v{d}, v{a}, v{b}, v{c}",
    "v_add_u32, scalar source": "v_add_u32_e32 v{d}, s8, v{a}",
    "v_mul_f32, constant": "v_mul_f32_e32 v{d}, 2.0, v{a}",
    "v_fma_f32 with -x": "v_fma_f32 v{d}, -v{a}, v{b}, v{c}",
    "v_lshl_add_u32": "v_lshl_add_u32 v{d}, v{a}, 2, v{b}",
    "v_exp_f32": "v_exp_f32_e32 v{d}, v{a}",
}


def loop_text(body: str, turns: int) -> str:
    """A loop of 32 copies of one instruction over defined registers."""
    lines = [body.format(d=8 + i % 8, a=16 + i % 8, b=24 + i % 8, c=8 + (i + 1) % 8) for i in range(32)]
    setup = [f"v_mov_b32_e32 v{i}, 1.0" for i in range(2, 40)]
    return LOOP.format(turns=turns, setup="\n".join("\t" + s for s in setup), body="\n".join("\t" + s for s in lines))


def best(run: Callable[[], object], repeats: int = 5) -> float:
    """Least process time of a call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def compile_hip(source: Path, *flags: str) -> bytes:
    """What clang makes of a HIP source: text with -S, else a linked code object."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        clang = [sys.executable, "-m", "ziglang", "clang", *HIP, *flags, str(source), "-o", str(out)]
        subprocess.run(clang, check=True, cwd=source.parent)
        return out.read_bytes()


def gemm_arguments(size: int) -> tuple[list[object], np.ndarray]:
    """Arguments of the corpus GEMM, and what the product must be."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    words = [m.view(np.uint16) for m in (a, b)]
    n = np.int32(size)
    return [c, *words, n, n, n], a.astype(np.float64) @ b.astype(np.float64).T


def report_valu() -> None:
    """Wave-instructions per second of single instructions, all checks on."""
    for name, body in BODIES.items():
        program = sim.load(loop_text(body, 2000), TARGET)
        out = np.zeros(64, np.float32)
        result = program.launch("loop", (1,), (64,), [out], threads=1)
        assert (out == 1).all()
        seconds = best(functools.partial(program.launch, "loop", (1,), (64,), [out], threads=1))
        print(f"{name:28} {result.instructions / seconds / 1e6:6.1f} M wave-instructions/s")


def report_gemm(size: int) -> None:
    """The corpus GEMM on one core and on all."""
    text = compile_hip(CORPUS / "k01_gemm_bf16.hip", "-S").decode()
    program = sim.load(text, TARGET)
    kernel = program.kernels[0]
    arguments, want = gemm_arguments(size)
    grid = (size // 128, size // 128)
    result = program.launch(kernel, grid, (256,), arguments, threads=1)
    assert np.abs(arguments[0] - want).max() < 1e-3 * size**0.5
    one = best(lambda: program.launch(kernel, grid, (256,), arguments, threads=1), 3)
    print(f"GEMM {size}^3 bf16, one core     {one:.3f} s, {result.instructions} wave-instructions")
    start = time.perf_counter()
    program.launch(kernel, grid, (256,), arguments)
    print(f"GEMM {size}^3 bf16, {os.cpu_count()} cores      {time.perf_counter() - start:.3f} s elapsed")
    loading = best(lambda: sim.load(text, TARGET))
    print(f"load (parse and decode)      {1e3 * loading:.1f} ms")


def tinygrad_seconds(checkout: Path, code: bytes, kernel: str, out: np.ndarray) -> float:
    """Time of tinygrad's emulator for one wave of `kernel`, after a first run that compiles it."""
    sys.path[:0] = [str(checkout)]
    from test.mockgpu.amd import emu  # type: ignore[import-not-found]

    image, entry, rsrc2 = _image(code, kernel)
    arguments = ctypes.c_uint64(out.ctypes.data)
    base = ctypes.addressof(image)

    def run() -> None:
        emu.run_asm(base + entry, 0, 1, 1, 1, 64, 1, 1, ctypes.addressof(arguments), rsrc2, 0, "cdna", None)

    run()
    return best(run, 2)


def _image(code: bytes, kernel: str) -> tuple[ctypes.Array[ctypes.c_char], int, int]:
    """A code object's loaded segments, the entry's offset and rsrc2 of a kernel's descriptor."""

    def word(at: int, size: int) -> int:
        return int.from_bytes(code[at : at + size], "little")

    headers = [word(32, 8) + 56 * i for i in range(word(56, 2))]
    segments = [(word(h + 8, 8), word(h + 16, 8), word(h + 32, 8), word(h + 40, 8)) for h in headers if word(h, 4) == 1]
    image = ctypes.create_string_buffer(max(v + m for _, v, _, m in segments) + 4096)
    for offset, address, size, _ in segments:
        ctypes.memmove(ctypes.addressof(image) + address, code[offset : offset + size], size)
    descriptor = _symbol(code, word, kernel + ".kd")
    raw = image.raw[descriptor : descriptor + 64]
    entry = descriptor + int.from_bytes(raw[16:24], "little", signed=True)
    return image, entry, int.from_bytes(raw[52:56], "little")


def _symbol(code: bytes, word: Callable[[int, int], int], name: str) -> int:
    sections = [word(40, 8) + 64 * i for i in range(word(60, 2))]
    for section in sections:
        if word(section + 4, 4) not in (2, 11):
            continue
        names = word(sections[word(section + 40, 4)] + 24, 8)
        for at in range(word(section + 24, 8), word(section + 24, 8) + word(section + 32, 8), 24):
            start = names + word(at, 4)
            if code[start : code.index(b"\0", start)].decode() == name:
                return word(at + 8, 8)
    raise LookupError(name)


def report_tinygrad(checkout: Path) -> None:
    """The same loop in both simulators, one wave each."""
    text = loop_text(BODIES["v_fma_f32"], 500)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "loop.s", Path(folder) / "loop.co"
        source.write_text(text)
        flags = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={TARGET}"]
        subprocess.run(
            [sys.executable, "-m", "ziglang", "clang", *flags, "-c", str(source), "-o", str(out) + ".o"], check=True
        )
        subprocess.run(
            [sys.executable, "-m", "ziglang", "ld.lld", "-shared", str(out) + ".o", "-o", str(out)], check=True
        )
        code = out.read_bytes()
    mine = sim.load(text, TARGET)
    result = np.zeros(64, np.float32)
    count = mine.launch("loop", (1,), (64,), [result], threads=1).instructions
    ours = best(lambda: mine.launch("loop", (1,), (64,), [result], threads=1))
    theirs = tinygrad_seconds(checkout, code, "loop", np.zeros(64, np.float32))
    print(
        f"v_fma_f32 loop: ours {count / ours / 1e6:.1f} M/s, "
        f"tinygrad {count / theirs / 1e6:.3f} M/s, ratio {theirs / ours:.0f}"
    )


def main() -> None:
    """Print every measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tinygrad", type=Path, help="checkout of tinygrad, for the side-by-side figure")
    options = parser.parse_args()
    report_valu()
    for size in (256, 512):
        report_gemm(size)
    if options.tinygrad:
        report_tinygrad(options.tinygrad)


if __name__ == "__main__":
    main()
