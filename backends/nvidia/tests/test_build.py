"""CUDA C++ to cubin without a GPU: compilers, the cache, messages, and what is read from the machine code."""

from __future__ import annotations

import stat
import struct
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from warpwave.backends.nvidia import build as building
from warpwave.backends.nvidia import cubin, nvcc, nvrtc, resources, sass
from warpwave.backends.nvidia.arch import SM80, SM89, SM90A, TARGETS
from warpwave.backends.nvidia.build import build
from warpwave.backends.nvidia.cubin import figures
from warpwave.backends.nvidia.loops import hot_loop, loops
from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime.masks import ALL
from warpwave.backends.nvidia.tests.harness import lowered_scale, program_of
from warpwave.tiles.errors import InternalError, ResourceError, UnsupportedError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path / "cache"))
    find = building.find_compiler
    find.cache_clear()
    yield
    find.cache_clear()


def text(body: str, *, before: str = "", threads: int = 32) -> Lowered:
    """A kernel `k(float *p, int n)` with this body."""
    source = f'{before}\nextern "C" __global__ void __launch_bounds__({threads}) k(float *p, int n) {{\n{body}\n}}\n'
    return Lowered(source, source, "k", threads, 0, 1, False, (), (), (), ())


def counting(monkeypatch):
    """The number of compilations so far."""
    count = []
    real = nvrtc.compile_source
    monkeypatch.setattr(nvrtc, "compile_source", lambda *a: (count.append(a), real(*a))[1])
    return count


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_a_cubin_is_for_its_target(target):
    built = build(text("p[threadIdx.x] = n;"), target, ALL, 0)
    machine, flags = struct.unpack_from("<H", built.cubin, 18)[0], struct.unpack_from("<I", built.cubin, 48)[0]
    assert machine == 190  # EM_CUDA
    number = 10 * target.capability[0] + target.capability[1]
    assert number in (flags & 0xFF, flags >> 8 & 0xFF)  # where the capability lies depends on the ELF ABI's version
    assert f".target {target.arch}" in built.ptx


def resident(values: int) -> Lowered:
    """A kernel that asks for 16 blocks of 128 threads, 32 registers each, and holds so many values at once."""
    return replace(
        text(
            f"float x[{values}];\n"
            f"for (int i = 0; i < {values}; ++i) x[i] = p[i * 128 + threadIdx.x];\n"
            f"__syncthreads();\nfor (int i = 0; i < {values}; ++i) p[i * 128 + threadIdx.x + n] = x[i] * x[i ^ 1];",
            before="#ifndef RESIDENT\n#define RESIDENT 16\n#endif\n#pragma nv_diag_suppress 177",
        ),
        threads=128,
    )


@pytest.mark.parametrize(("values", "compilations"), [(8, 1), (64, 2)])
def test_registers_are_left_for_residents_unless_some_would_spill(monkeypatch, values, compilations):
    count = counting(monkeypatch)
    counted = nvrtc.compile_source
    monkeypatch.setattr(nvrtc, "compile_source", lambda *a: (*counted(*a)[:2], ""))  # as from the compute cache
    source = resident(values).built_source.replace("__launch_bounds__(32)", "__launch_bounds__(128, RESIDENT)")
    built = build(replace(resident(values), built_source=source), SM80, ALL, 0)
    assert len(count) == compilations
    assert figures(built.cubin, "k", 0).local_bytes == 0


def test_wide_and_tma_are_macros():
    built = build(text("p[0] = WIDE; p[1] = TMA; static_assert(WIDE == 5u && TMA == 2u);"), SM80, 5, 2)
    assert built.cubin


def test_products_are_not_contracted():
    """a * b + c rounds twice, as the language says; fma is there when it is asked for."""
    body = "p[0] = p[1] * p[2] + p[3];"
    assert "fma" not in build(text(body), SM90A, ALL, 0).ptx
    assert "fma.rn.f32" in build(text("p[0] = __fmaf_rn(p[1], p[2], p[3]);"), SM90A, ALL, 0).ptx


def test_division_and_square_root_are_ieee_and_keep_subnormals():
    ptx = build(text("p[0] = p[1] / p[2]; p[1] = sqrtf(p[3]);"), SM80, ALL, 0).ptx
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    assert ".ftz" not in ptx


def test_the_second_build_comes_from_the_cache(monkeypatch):
    count = counting(monkeypatch)
    first = build(text("p[0] = 1;"), SM90A, ALL, 0)
    assert build(text("p[0] = 1;"), SM90A, ALL, 0) == first
    assert len(count) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"lowered": text("p[0] = 2;")},
        {"target": SM89},
        {"wide": 1},
        {"tma": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_the_code_depends_on_is_in_the_key(monkeypatch, change):
    count = counting(monkeypatch)
    base = {"lowered": text("p[0] = 1;"), "target": SM90A, "wide": ALL, "tma": 0}
    build(**base)
    build(**{**base, **change})
    assert len(count) == 2


def test_headers_and_compiler_are_in_the_key(monkeypatch, tmp_path):
    count = counting(monkeypatch)
    monkeypatch.setattr(building, "INCLUDE", tmp_path)
    (tmp_path / "own.cuh").write_text("#define VALUE 1\n")
    kernel = text("p[0] = VALUE;", before='#include "own.cuh"')
    build(kernel, SM90A, ALL, 0)
    (tmp_path / "own.cuh").write_text("#define VALUE 2\n")
    assert "1073741824;" in build(kernel, SM90A, ALL, 0).ptx  # the bits of 2.0f
    monkeypatch.setattr(building, "find_compiler", lambda: building.Compiler("NVRTC of another version"))
    build(kernel, SM90A, ALL, 0)
    assert len(count) == 3


def test_many_threads_may_build_at_once():
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(build(text("p[0] = 3;"), SM80, ALL, 0))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert len(set(results)) == 1
    assert [p.name for p in building.cache_directory().iterdir() if p.name.startswith("tmp")] == []


def test_an_error_shows_the_generated_line():
    line = 'p[0] = missing;\n#line 900 "user.py"\np[1] = absent;'
    bad = replace(text(line.replace('#line 900 "user.py"\n', "")), built_source=text(line).source)
    with pytest.raises(InternalError) as caught:
        build(bad, SM90A, ALL, 0)
    message = str(caught.value)
    assert "does not compile for nvidia:sm90a (NVRTC" in message
    assert ">    3 | p[0] = missing;" in message
    assert ">    4 | p[1] = absent;" in message
    assert "user.py" not in message


def test_a_source_that_the_assembler_cannot_fit_is_too_large():
    asm = ", ".join(f'"+f"(v[{i}])' for i in range(128))
    registers = ", ".join(f"%{i}" for i in range(128))
    body = f"""
      float v[128];
      for (int i = 0; i < 128; i++) v[i] = p[i * n];
      asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{{registers}}}, %128, %129, 1, 1, 1, 0, 0;"
                   : {asm} : "l"(0ll), "l"(0ll));
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
      for (int i = 0; i < 128; i++) p[i * n] = v[i];"""
    with pytest.raises(
        ResourceError, match=r"k needs \d+ registers a thread, its 1024 threads leave 64 on nvidia:sm90a"
    ):
        build(text(body, threads=1024), SM90A, ALL, 0)


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nvrtc, "version", lambda: "")
    monkeypatch.setattr(nvcc, "find", lambda: "")
    with pytest.raises(UnsupportedError, match="no compiler for nvidia:sm90a: neither NVRTC") as caught:
        build(text(""), SM90A, ALL, 0)
    assert "pip install nvidia-cuda-nvrtc cuda-bindings" in str(caught.value)


# -- nvcc ---------------------------------------------------------------------------------------------

FAKE_NVCC = """#!{python}
import pathlib, sys
if "--version" in sys.argv:
    print("nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release 13.0, V13.0.88\\nBuild cuda_13.0.r13.0/1")
    sys.exit()
source = pathlib.Path(sys.argv[-1])
if "error" in source.read_text():
    print(f"{{source}}(2): error: no", file=sys.stderr)
    sys.exit(2)
keep = next(a for a in sys.argv if a.startswith("--keep-dir=")).split("=")[1]
(pathlib.Path(keep) / (source.stem + ".ptx")).write_text("ptx of " + " ".join(sys.argv[1:-3]))
pathlib.Path(sys.argv[-2]).write_bytes(b"cubin")
print("ptxas info    : Compiling entry function 'k' for 'sm_90a'", file=sys.stderr)
"""


@pytest.fixture
def fake_nvcc(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "nvcc"
    tool.write_text(FAKE_NVCC.format(python=sys.executable))
    tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(nvrtc, "version", lambda: "")
    return tool


def test_nvcc_is_used_where_there_is_no_nvrtc(fake_nvcc):
    built = build(text("p[0] = 1;"), SM90A, 7, 3)
    assert built.cubin == b"cubin"
    assert built.log.startswith("ptxas info")
    for option in ("--std=c++20", "--fmad=false", "--gpu-architecture=sm_90a", "-DWIDE=7u", "-DTMA=3u", "--cubin"):
        assert option in built.ptx.split()
    assert building.find_compiler().version.startswith("nvcc Cuda compilation tools, release 13.0, V13.0.88")


def test_nvcc_errors_show_the_generated_line(fake_nvcc):
    with pytest.raises(InternalError, match=r"(?s)k\.cu\(2\): error: no.*>    2 \| extern"):
        build(text("error"), SM90A, ALL, 0)


# -- what a kernel uses -------------------------------------------------------------------------------

SPILLING = """
  float v[120];
#pragma unroll
  for (int i = 0; i < 120; i++) v[i] = p[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 120; i++) p[i * n + threadIdx.x] = v[i] * v[119 - i];
"""


def test_resources_of_a_small_kernel():
    kernel, lowered = lowered_scale()
    used = program_of(kernel, lowered).resources
    assert 8 <= used["registers"] <= 64
    assert used["spills"] == used["scratch_bytes"] == used["shared_bytes"] == 0
    assert used["blocks_per_sm"] == 16  # 2048 threads of 128
    assert used["mix"]["LDG"] >= 1
    assert used["mix"]["STG"] >= 1
    assert used["mix"]["EXIT"] >= 1


def test_static_and_dynamic_shared_memory_are_added():
    kernel = text("__shared__ float s[1000]; s[threadIdx.x] = n; __syncthreads(); p[threadIdx.x] = s[n];")
    kernel = replace(kernel, shared_bytes=60000)
    used = resources.read_resources(build(kernel, SM90A, ALL, 0), kernel, SM90A)
    assert used["shared_bytes"] == 64000
    assert used["blocks_per_sm"] == 3  # 228 KB of (64000 + 1024) each


def test_spills_are_found():
    spilling = text(SPILLING, threads=1024)
    used = resources.read_resources(build(spilling, SM90A, ALL, 0), spilling, SM90A)
    assert used["spills"] > 50
    assert used["scratch_bytes"] > 200
    assert used["mix"]["STL"] >= used["spills"] // 4  # STL.128 stores four


@pytest.mark.parametrize("target", [SM90A, SM80], ids=lambda target: target.name)
@pytest.mark.parametrize(
    ("body", "threads"),
    [
        (SPILLING, 1024),
        ("p[0] = n;", 32),
        ("__shared__ float s[1000]; s[threadIdx.x] = n; __syncthreads(); p[threadIdx.x] = s[n];", 32),
        ("extern __shared__ float s[]; s[threadIdx.x] = n; __syncthreads(); p[threadIdx.x] = s[n];", 32),
        (
            "__shared__ int s[9]; extern __shared__ int d[]; s[n] = n; d[n] = 1; __syncthreads(); p[0] = s[1] + d[3];",
            32,
        ),
    ],
    ids=["spilling", "small", "static", "dynamic", "both"],
)
def test_the_machine_code_says_what_the_assembler_said(target, body, threads):
    kernel = text(
        body, threads=threads, before="__global__ void other(float *p) { __shared__ int s[99]; p[s[0]] = 1; }"
    )
    built = build(kernel, target, ALL, 0)
    figures = cubin.figures(built.cubin, "k", target.reserved_shared)
    own = built.log.partition("Compiling entry function 'k'")[2].split("Compiling entry function")[0]
    assert f"Used {figures.registers} registers" in own
    assert f"{figures.local_bytes} bytes stack frame" in own
    assert (f"{figures.shared_bytes} bytes smem" in own) == (figures.shared_bytes > 0)
    assert ("smem" in own) == (figures.shared_bytes > 0)


def test_resources_do_not_need_the_assemblers_log(monkeypatch):
    """NVRTC says nothing where it takes code from the driver's cache."""
    kernel = text(SPILLING, threads=1024)
    built = build(kernel, SM90A, ALL, 0)
    told = resources.read_resources(built, kernel, SM90A)
    silent = resources.read_resources(replace(built, log=""), kernel, SM90A)
    assert silent == told
    monkeypatch.setattr(sass, "find_disassembler", lambda: "")
    blind = resources.read_resources(replace(built, log=""), kernel, SM90A)
    assert blind["scratch_bytes"] == told["scratch_bytes"]
    assert blind["spills"] >= 1


def test_machine_code_is_shown_with_the_users_lines():
    kernel, lowered = lowered_scale()
    asm = program_of(kernel, lowered).asm
    assert "harness.py" in asm
    assert "ww.store(y, (m, n), ww.load(x, (m, n), st[f32, B, B]) * factor)" in asm
    after = asm[asm.index("ww.store(y") :]
    assert "LDG" in after
    assert "FMUL" in after


def test_without_a_disassembler_ptx_is_shown(monkeypatch):
    kernel, lowered = lowered_scale()
    monkeypatch.setattr(sass, "find_disassembler", lambda: "")
    program = program_of(kernel, lowered)
    assert program.asm == program.ptx
    assert program.resources["mix"] is None
    assert program.resources["hot_loop"] is None
    assert program.resources["registers"] > 0


LISTING = """
k:
.text.k:
	//## File "/home/u/header.cuh", line 9 inlined at "/home/u/kernel.cuh", line 3
	//## File "/home/u/kernel.cuh", line 3 inlined at "/home/u/user.py", line 12
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   UTMALDG.5D [UR4], [UR8] ;
.L_x_1:
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4].tnspB, R24, gsb0 ;
	//## File "/home/u/user.py", line 13
        /*0030*/                   STL [R1+0x4], R0                           (*"SpillRefill"*);
        /*0040*/               @P0 BRA `(.L_x_1) ;
        /*0050*/                   FADD R1, R2, R3 ;
        /*0060*/              @!P1 BRA `(.L_x_0) ;
.L_x_2:
        /*0070*/                   MUFU.EX2 R1, R1 ;
        /*0080*/                   MUFU.EX2 R2, R2 ;
        /*0090*/                   MUFU.EX2 R3, R3 ;
        /*00a0*/              @!P1 BRA `(.L_x_2) ;
.L_x_3:
        /*00b0*/                   BRA `(.L_x_3);
        /*00c0*/                   NOP;
"""


def test_listings_are_parsed():
    instructions, labels = sass.parse(LISTING)
    assert [i.kind for i in instructions[:6]] == ["LDC", "UTMALDG", "HGMMA", "STL", "BRA", "FADD"]
    assert [i.place for i in instructions[:4]] == [("/home/u/user.py", 12)] * 3 + [("/home/u/user.py", 13)]
    assert instructions[4].jumps_to == ".L_x_1"
    assert labels[".L_x_1"] == 2
    assert instructions[2].mnemonic == "HGMMA.64x256x16.F32.BF16"


def test_the_hot_loop_is_the_innermost_with_matrix_instructions():
    instructions, labels = sass.parse(LISTING)
    assert sorted(sorted(loop) for loop in loops(instructions, labels)) == [
        [1, 2, 3, 4, 5, 6],
        [2, 3, 4],
        [7, 8, 9, 10],
        [11],
    ]
    loop = hot_loop(instructions, labels)
    assert loop == [2, 3, 4]
    assert sass.mix(instructions[i] for i in loop) == {"HGMMA": 1, "STL": 1, "BRA": 1}
    assert "NOP" not in sass.mix(instructions)
    assert [i.spills for i in instructions[2:4]] == [False, True]


WAITING = """
.text.k:
        /*0000*/                   S2R R0, SR_TID.X ;
.L_loop:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R4 ;
        /*0020*/              @!P1 BRA `(.L_slow) ;
.L_ready:
        /*0030*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
.L_spin:
        /*0040*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR5], R4 ;
        /*0050*/              @!P2 BRA `(.L_spin) ;
        /*0060*/                   BRA.U UP0, `(.L_loop) ;
        /*0070*/                   STG.E desc[UR4][R2.64], R0 ;
        /*0080*/                   EXIT ;
.L_slow:
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R4 ;
        /*00a0*/              @!P1 BRA `(.L_slow) ;
        /*00b0*/                   BRA `(.L_ready) ;
.L_end:
        /*00c0*/                   BRA `(.L_end) ;
"""


def test_blocks_out_of_line_belong_to_their_loop():
    """A wait whose slow part lies behind the function's end, and one inside, do not hide the loop around them."""
    instructions, labels = sass.parse(WAITING)
    assert hot_loop(instructions, labels) == [1, 2, 3, 4, 5, 6, 9, 10, 11]
    assert hot_loop([], {}) == []


@pytest.mark.parametrize(
    ("target", "registers", "threads", "shared", "blocks"),
    [
        # CUDA's occupancy calculator: registers in units of 256 a warp, shared memory of 128, 1 KB of it reserved.
        (SM90A, 32, 1024, 0, 2),
        (SM90A, 64, 256, 0, 4),
        (SM90A, 168, 384, 0, 1),
        (SM90A, 128, 128, 100 << 10, 2),
        (SM90A, 128, 128, 114 << 10, 1),
        (SM90A, 255, 128, 0, 2),
        (SM90A, 32, 32, 0, 32),
        (SM80, 40, 192, 0, 8),
        (SM89, 32, 256, 0, 6),
        (SM89, 64, 128, 99 << 10, 1),
        (SM80, 32, 128, 164 << 10, 0),
        (SM90A, 32, 1056, 0, 0),
    ],
)
def test_occupancy(target, registers, threads, shared, blocks):
    assert target.blocks_per_sm(registers, threads, shared) == blocks


def test_the_header_path_is_in_the_package():
    assert Path(building.__file__).parent / "include" == building.INCLUDE
