"""A peer of the AMD simulator: tinygrad's emulator, run in the same process on the same code object."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np


def code_object(text: str, target: str) -> bytes:
    """What clang assembles and links of an assembly text."""
    with tempfile.TemporaryDirectory() as folder:
        source, unlinked, out = (Path(folder) / name for name in ("loop.s", "loop.o", "loop.co"))
        source.write_text(text)
        clang = [sys.executable, "-m", "ziglang", "clang"]
        flags = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-c", str(source)]
        subprocess.run([*clang, *flags, "-o", str(unlinked)], check=True)
        linker = [sys.executable, "-m", "ziglang", "ld.lld", "-shared", str(unlinked), "-o", str(out)]
        subprocess.run(linker, check=True)
        return out.read_bytes()


def runner(checkout: Path, code: bytes, kernel: str, out: np.ndarray) -> Callable[[], None]:
    """One wave of `kernel` on tinygrad's emulator; the first call, made here, compiles it."""
    sys.path[:0] = [str(checkout)]
    from test.mockgpu.amd import emu  # type: ignore[import-not-found]

    image, entry, rsrc2 = _image(code, kernel)
    arguments = ctypes.c_uint64(out.ctypes.data)
    base = ctypes.addressof(image)

    def run() -> None:
        emu.run_asm(base + entry, 0, 1, 1, 1, 64, 1, 1, ctypes.addressof(arguments), rsrc2, 0, "cdna", None)

    run()
    return run


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
