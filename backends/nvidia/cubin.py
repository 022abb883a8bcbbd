"""What a cubin says about its kernels: registers, local memory and static shared memory, from its ELF sections.

The assembler's log says the same, but is empty where NVRTC takes code from the driver's compute cache. Attribute
numbers as cuobjdump names them: EIATTR_REGCOUNT and EIATTR_FRAME_SIZE in section .nv.info.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_REGISTERS, _FRAME = 0x2F, 0x11
_VALUE_OF_SYMBOL = 4  # EIFMT_SVAL: a length, then a symbol and its value
_SYMBOLS = 2  # SHT_SYMTAB


@dataclass(frozen=True)
class Figures:
    """Registers and bytes of local memory of a thread, bytes of static shared memory of a block."""

    registers: int
    local_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


def figures(cubin: bytes, entry: str, reserved_shared: int) -> Figures:
    """Of one kernel. `reserved_shared` is what the system takes of each block, which the sections may include."""
    sections = list(_sections(cubin))
    names = {s.name: s for s in sections}
    symbols = _symbol_names(cubin, sections)
    found = {(attribute, symbols[symbol]): value for attribute, symbol, value in _attributes(cubin, names[".nv.info"])}
    shared = names[f".nv.shared.{entry}"].size if f".nv.shared.{entry}" in names else 0
    if ".nv.shared.reserved.0" in names:
        shared = max(0, shared - reserved_shared)
    return Figures(found[_REGISTERS, entry], found.get((_FRAME, entry), 0), shared)


def _sections(cubin: bytes) -> Iterator[_Section]:
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, strings = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQII", cubin, start + i * size) for i in range(count)]
    for name, kind, _, _, offset, length, link, _ in headers:
        yield _Section(_text(cubin, headers[strings][4] + name), kind, offset, length, link)


def _symbol_names(cubin: bytes, sections: list[_Section]) -> list[str]:
    table = next(s for s in sections if s.kind == _SYMBOLS)
    strings = sections[table.link].offset
    places = range(table.offset, table.offset + table.size, 24)
    return [_text(cubin, strings + struct.unpack_from("<I", cubin, place)[0]) for place in places]


def _attributes(cubin: bytes, section: _Section) -> Iterator[tuple[int, int, int]]:
    """Number, symbol and value of the attributes that have them."""
    place, end = section.offset, section.offset + section.size
    while place < end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, place)
        if form == _VALUE_OF_SYMBOL:
            if length == 8:
                yield attribute, *struct.unpack_from("<II", cubin, place + 4)
            place += length
        place += 4


def _text(cubin: bytes, place: int) -> str:
    return cubin[place : cubin.index(b"\0", place)].decode()
