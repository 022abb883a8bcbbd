"""The machine code as text: SASS from NVIDIA's disassembler, instruction by instruction with the user's lines."""

from __future__ import annotations

import linecache
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

REMEDY = "pip install nvidia-cuda-nvdisasm"

_LABEL = re.compile(r"^(\.L\w+|\w+):$")
_LINE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*(\(\*.*\*\))?\s*;\s*$")
_TARGET = re.compile(r"`\((\.L\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its address and text, the place it was compiled from, and the label it jumps to."""

    address: int
    text: str
    place: tuple[str, int] | None
    jumps_to: str = ""
    spills: bool = False  # it moves a spilled register, as nvdisasm of CUDA 13.1 and later marks

    @property
    def always_leaves(self) -> bool:
        """Whether the instruction behind it is not executed next: a jump or an end without any condition."""
        if self.text.startswith("@"):
            return False
        return self.kind in ("EXIT", "RET", "JMP", "BRX") or self.text.startswith("BRA `")

    @property
    def mnemonic(self) -> str:
        """The operation with its modifiers, without predicate and operands."""
        words = self.text.split()
        return words[1] if words[0].startswith("@") else words[0]

    @property
    def registers(self) -> int:
        """How many 32-bit registers a load or store moves."""
        parts = self.mnemonic.split(".")
        return 4 if "128" in parts else 2 if "64" in parts else 1

    @property
    def kind(self) -> str:
        """The operation alone, e.g. HGMMA, LDSM, STG."""
        return self.mnemonic.split(".")[0]


@lru_cache(maxsize=1)
def find_disassembler() -> str:
    """The path of nvdisasm: from its Python package, on the PATH, or in a CUDA toolkit; empty if nowhere."""
    package = find_spec("nvidia")
    for folder in package.submodule_search_locations or () if package else ():
        for found in sorted(Path(folder).glob("*/bin/nvdisasm")):
            return str(found)
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = os.pathsep.join(os.path.join(home, "bin") for home in homes if home)
    return shutil.which("nvdisasm") or shutil.which("nvdisasm", path=folders) or ""


def disassemble(cubin: bytes) -> str:
    """nvdisasm's listing with line information; empty if there is no disassembler."""
    tool = find_disassembler()
    if not tool:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        result = subprocess.run([tool, "-gi", "-c", str(path)], capture_output=True, text=True, cwd=folder)
        return result.stdout.replace(f"{folder}/", "") if result.returncode == 0 else ""


def parse(listing: str) -> tuple[list[Instruction], dict[str, int]]:
    """The instructions, and for each label the index of the instruction that it stands before.

    An instruction of an inlined function counts as of the outermost call: the last of the comments before it.
    """
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    place: tuple[str, int] | None = None
    for line in listing.splitlines():
        text = line.strip()
        if match := _LINE.search(text):
            place = (match[3] or match[1], int(match[4] or match[2]))
        elif match := _LABEL.match(text):
            labels[match[1]] = len(instructions)
        elif match := _INSTRUCTION.search(text):
            target = _TARGET.search(match[2])
            to, spills = target[1] if target else "", "Spill" in (match[3] or "")
            instructions.append(Instruction(int(match[1], 16), match[2], place, to, spills))
    return instructions, labels


def mix(instructions: Iterable[Instruction]) -> dict[str, int]:
    """How often each kind of instruction stands in the code, most frequent first."""
    return dict(Counter(i.kind for i in instructions if i.kind != "NOP").most_common())


def annotated(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> str:
    """The listing, with the user's source line before the instructions that it became."""
    starts: dict[int, list[str]] = {}
    for label, index in labels.items():
        starts.setdefault(index, []).append(label)
    shown: list[str] = []
    place: tuple[str, int] | None = None
    for index, instruction in enumerate(instructions):
        shown += [f"{label}:" for label in starts.get(index, ()) if not label.startswith(".text")]
        if instruction.place not in (place, None) and (source := _source(instruction.place)):
            place = instruction.place
            shown.append(source)
        shown.append(f"    /*{instruction.address:04x}*/  {instruction.text};")
    return "\n".join(shown) + "\n"


def _source(place: tuple[str, int] | None) -> str:
    """The user's line as a comment, empty for lines of generated code."""
    file, line = place or ("", 0)
    text = linecache.getline(file, line).strip()
    return f"  // {Path(file).name}:{line}: {text}" if text else ""
