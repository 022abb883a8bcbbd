"""Code objects are read back to what the compiler wrote: instructions, descriptors, arguments, source lines."""

from __future__ import annotations

import contextlib
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from warpwave.backends.amd import sim
from warpwave.backends.amd.sim import _code_object

from . import _compile

SOURCES = [p for folder in ("corpus", "kernels") for p in sorted((_compile.HERE / folder).glob("*.hip"))]
SMALL = _compile.HERE / "corpus" / "k05_rotary.hip"
PADDING = {"s_nop 0", "s_code_end"}  # fills the space between functions


def instructions(assembly: str) -> list[str]:
    """Instructions of an assembly text in order, with labels made equal and padding after the end removed."""
    found = []
    for raw in assembly.splitlines():
        line = re.split(r";|//", raw)[0].strip()
        if line.startswith(".section") and ".text" not in line:
            continue
        if not line or line.startswith(".") or line.endswith(":") or not re.match(r"[a-z]+_", line):
            continue
        if re.match(r"s_(c?branch|call)", line):
            line = re.sub(r"[.\w]+$", "LABEL", line)
        found.append(re.sub(r"\s+", " ", line))
    return found


def without_padding(lines: list[str]) -> list[str]:
    """Drop runs of padding that follow the end of a function."""
    kept: list[str] = []
    ended = False
    for line in lines:
        ended = line == "s_endpgm" or (ended and line in PADDING)
        if not (ended and line in PADDING):
            kept.append(line)
    return kept


def directives(assembly: str) -> dict[str, dict[str, int]]:
    """Values of the .amdhsa_ directives that are plain numbers, by kernel."""
    kernels: dict[str, dict[str, int]] = {}
    for block in re.findall(r"\.amdhsa_kernel (.*?)\.end_amdhsa_kernel", assembly, re.S):
        name, *lines = block.split("\n")
        pairs = re.findall(r"\.amdhsa_(\w+)\s+(\d+)\s*$", "\n".join(lines), re.M)
        kernels[name.strip()] = {key: int(value) for key, value in pairs}
    return kernels


def arguments(assembly: str) -> list[tuple[int, int, str]]:
    """(offset, size, kind) of all arguments in the metadata, in order."""
    pattern = r"\.offset:\s+(\d+)\n\s+\.size:\s+(\d+)\n\s+\.value_kind:\s+(\w+)"
    return [(int(o), int(s), k) for o, s, k in re.findall(pattern, assembly)]


def section(path: Path, name: bytes) -> bytes:
    """Contents of an ELF section, read here and not by the reader under test."""
    data = path.read_bytes()
    table = struct.unpack_from("<Q", data, 40)[0]
    count, names = struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        if data[start : data.index(0, start)] == name:
            return data[header[4] : header[4] + header[5]]
    raise KeyError(name)


@pytest.mark.parametrize("target", _compile.TARGETS)
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_disassembly_is_what_the_compiler_wrote(source, target):
    written = _compile.hip(source, target)
    read = sim.disassemble(_compile.assemble(written, target))
    assert without_padding(instructions(read)) == without_padding(instructions(written))
    assert arguments(read) == arguments(written)


@pytest.mark.parametrize("target", _compile.TARGETS)
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_disassembly_assembles_to_the_same_bytes(source, target):
    original = _compile.assemble(_compile.hip(source, target), target)
    again = _compile.assemble(sim.disassemble(original), target)
    assert section(again, b".text") == section(original, b".text")


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("target", _compile.TARGETS)
def test_descriptor_fields_survive(target, version):
    written = re.sub(
        r"\.amdhsa_code_object_version \d", f".amdhsa_code_object_version {version}", _compile.hip(SMALL, target)
    )
    read = sim.disassemble(_compile.assemble(written, target, code_object=version))
    assert f".amdhsa_code_object_version {version}" in read
    rounded = {"next_free_vgpr": 8, "next_free_sgpr": 16, "accum_offset": 4}
    for kernel, wanted in directives(written).items():
        got = directives(read)[kernel]
        for key, value in wanted.items():
            if key in ("reserve_vcc", "reserve_xnack_mask", "user_sgpr_kernarg_preload"):
                continue
            if key in rounded:
                assert value <= got[key] < value + 2 * rounded[key], key
            else:
                assert got[key] == value, key


def test_every_descriptor_bit_is_read(tmp_path):
    text = _compile.hip(SMALL, "gfx950")
    kernel = next(iter(directives(text)))
    changes = {
        "float_round_mode_32": 1,
        "float_round_mode_16_64": 2,
        "float_denorm_mode_32": 0,
        "float_denorm_mode_16_64": 1,
        "dx10_clamp": 0,
        "ieee_mode": 0,
        "fp16_overflow": 1,
        "tg_split": 1,
        "system_sgpr_workgroup_id_y": 1,
        "system_sgpr_workgroup_id_z": 1,
        "system_sgpr_workgroup_info": 1,
        "system_vgpr_workitem_id": 2,
        "exception_fp_ieee_overflow": 1,
    }
    for key, value in changes.items():
        changed = re.sub(rf"(\.amdhsa_{key}) \d+", rf"\1 {value}", text, count=1)
        read = directives(sim.disassemble(_compile.assemble(changed, "gfx950")))[kernel]
        assert read[key] == value, key


@pytest.mark.parametrize("dwarf", [4, 5])
def test_source_lines_are_those_of_the_debug_information(dwarf):
    written = _compile.hip(SMALL, "gfx950", "-g", f"-gdwarf-{dwarf}")
    read = sim.disassemble(_compile.assemble(written, "gfx950"))
    assert line_per_instruction(read) == line_per_instruction(written)
    assert any(file == SMALL.name for file, _ in line_per_instruction(read).values())


def line_per_instruction(assembly: str) -> dict[int, tuple[str, int]]:
    """(file name, line) of each instruction number, following .file and .loc as the assembler does."""
    files: dict[int, str] = {}
    here = ("", 0)
    found: dict[int, tuple[str, int]] = {}
    number = 0
    for raw in assembly.splitlines():
        line = re.split(r";|//", raw)[0].strip() if ".file" not in raw else raw.strip()
        if match := re.match(r'\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"', line):
            files[int(match[1])] = Path(match[2]).name
        elif match := re.match(r"\.loc\s+(\d+) (\d+)", line):
            here = (files[int(match[1])], int(match[2]))
        elif re.match(r"(s|v|ds|global|buffer|flat|scratch)_", line) and not line.endswith(":"):
            if line not in PADDING and here[1]:
                found[number] = here
            number += line not in PADDING
    return found


def test_stripped_object_still_loads(tmp_path):
    path = tmp_path / "stripped.hsaco"
    path.write_bytes(_compile.assemble(_compile.hip(SMALL, "gfx950"), "gfx950").read_bytes())
    arguments = [sys.executable, "-m", "ziglang", "ld.lld", "-shared", "-s", "-o", str(path)]
    unlinked = tmp_path / "x.o"
    source = tmp_path / "x.s"
    source.write_text(_compile.hip(SMALL, "gfx950"))
    _compile._zig("clang", *_compile.ASM_FLAGS, "-mcpu=gfx950", str(source), "-o", str(unlinked))
    subprocess.run([*arguments, str(unlinked)], check=True)
    assert b".symtab" not in path.read_bytes()
    assert sorted(sim.load(path).kernels) == sorted(_compile.kernel_names(source.read_text()))


def bundle(entries: list[tuple[str, bytes]]) -> bytes:
    """A clang offload bundle, from the format's description in clang's documentation."""
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    size = len(head) + sum(24 + len(name) for name, _ in entries)
    table, body = b"", b""
    start = (size + 4095) // 4096 * 4096
    for name, code in entries:
        table += struct.pack("<QQQ", start + len(body), len(code), len(name)) + name.encode()
        body += code + bytes(-len(code) % 4096)
    return head + table + bytes(start - size) + body


def objects() -> dict[str, bytes]:
    return {t: _compile.assemble(_compile.hip(SMALL, t), t).read_bytes() for t in _compile.TARGETS}


def test_offload_bundle_gives_the_target_asked_for():
    code = objects()
    both = bundle(
        [("host-x86_64-unknown-linux-gnu-", b"")] + [(f"hipv4-amdgcn-amd-amdhsa--{t}", c) for t, c in code.items()]
    )
    for target in _compile.TARGETS:
        assert sim.load(both, target).target == target
        assert instructions(sim.disassemble(both, target)) == instructions(sim.disassemble(code[target]))
    with pytest.raises(sim.LoadError, match=r"holds \[gfx942, gfx950\], wanted one device entry"):
        sim.load(both)
    with pytest.raises(sim.LoadError, match="wanted gfx90a"):
        sim.disassemble(both, "gfx90a")
    one = bundle([("hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", code["gfx942"])])
    assert sim.load(one).target == "gfx942"


def test_compressed_bundle_is_refused_with_the_way_out():
    with pytest.raises(sim.LoadError, match="--no-offload-compress"):
        sim.load(b"CCOB" + bytes(100))


def test_missing_disassembler_names_the_command_that_mends_it(monkeypatch):
    monkeypatch.setattr("warpwave.backends.amd.sim._program.find_llvm", lambda: "")
    with pytest.raises(sim.LoadError, match="pip install rocm-bindings-compiler"):
        sim.load(objects()["gfx950"])
    monkeypatch.setattr("warpwave.backends.amd.sim._program.find_llvm", lambda: "/nonexistent/libLLVM.so")
    with pytest.raises(sim.LoadError, match=r"/nonexistent/libLLVM.so.*pip install rocm-bindings-compiler"):
        sim.load(objects()["gfx950"])


def test_environment_names_the_disassembler(monkeypatch):
    _code_object.find_llvm.cache_clear()
    monkeypatch.setenv("WARPWAVE_LLVM", "/elsewhere/libLLVM.so")
    assert _code_object.find_llvm() == "/elsewhere/libLLVM.so"
    _code_object.find_llvm.cache_clear()


def test_object_for_another_target_is_refused(tmp_path):
    text = "\t.text\nk:\n\ts_endpgm\n"
    source, linked = tmp_path / "k.s", tmp_path / "k.o"
    source.write_text(text)
    _compile._zig("clang", *_compile.ASM_FLAGS, "-mcpu=gfx950", str(source), "-o", str(linked))
    with pytest.raises(sim.LoadError, match="relocatable object: link it first"):
        sim.load(linked)
    with pytest.raises(sim.LoadError, match="is for gfx950, not gfx942"):
        sim.load(objects()["gfx950"], "gfx942")
    with pytest.raises(sim.LoadError, match="another processor"):
        sim.load(_compile.assemble(text, "gfx90a").read_bytes())
    with pytest.raises(sim.LoadError, match="not an AMDGPU HSA code object"):
        sim.load(Path(shutil.which("true") or sys.executable).read_bytes())


def test_bytes_that_are_no_instruction_are_refused():
    code = objects()["gfx950"]
    text = section(_compile.assemble(_compile.hip(SMALL, "gfx950"), "gfx950"), b".text")
    damaged = code.replace(text[:8], b"\xff" * 8)
    assert ".long 0xffffffff" in sim.disassemble(damaged)
    with pytest.raises(sim.LoadError, match=r"address 0x\w+ \(.long 0xffffffff\) is no instruction of gfx950"):
        sim.load(damaged)


def test_truncated_objects_are_refused():
    code = objects()["gfx950"]
    for size in range(5, len(code), 61):
        with pytest.raises(sim.LoadError):
            sim.disassemble(code[:size])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 255)), min_size=1, max_size=8))
@example([(784, 0), (23388, 128)])  # a name that is not UTF-8
def test_damaged_objects_never_crash(changes):
    code = bytearray(_compile.assemble(_compile.hip(SMALL, "gfx950", "-g"), "gfx950").read_bytes())
    for position, value in changes:
        code[position % len(code)] = value
    with contextlib.suppress(sim.LoadError):
        sim.disassemble(bytes(code))
