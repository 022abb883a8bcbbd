"""Assembly with the user's source lines as comments, from the compiler's line table."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

GENERATED = ("kernel.hip", "generated")  # lines of the prelude and of the frame, which say nothing to the user


def annotated(asm: str) -> str:
    """`asm` with a comment wherever code of another of the user's lines begins; it assembles to the same code."""
    return "\n".join([*_lines(asm), ""])


def _lines(asm: str) -> Iterator[str]:
    current = None
    for text in asm.splitlines():
        place = user_place(text) if text.lstrip().startswith(".loc") else None
        if place is not None and place != current:
            current = place
            code = linecache.getline(*place).strip()
            yield f"; {place[0]}:{place[1]}" + (f": {code}" if code else "")
        yield text


def user_place(loc: str) -> tuple[str, int] | None:
    """The user's file and line of a `.loc` directive, whose comment lists the place and what it is inlined into."""
    _, _, comment = loc.partition(";")
    for part in comment.split("@["):
        file, _, rest = part.strip(" ]").partition(":") if part.count(":") == 2 else ("", "", "")
        line = rest.partition(":")[0]
        if file and file not in GENERATED and line.isdecimal() and line != "0":
            return file, int(line)
    return None
