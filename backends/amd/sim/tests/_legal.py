"""Which assembler lines a target accepts: clang's own assembler is asked, once, and the answer is cached."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from ._compile import ASM_FLAGS, CACHE, _cached


def _ask(lines: list[str], target: str) -> list[bool]:
    command = [sys.executable, "-m", "ziglang", "clang", *ASM_FLAGS, f"-mcpu={target}", "-ferror-limit=0"]
    source = CACHE / f"legal-{target}-{abs(hash(tuple(lines)))}.s"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run([*command, str(source), "-o", "/dev/null"], capture_output=True, text=True, check=False)
    bad = {int(n) for n in re.findall(rf"{re.escape(str(source))}:(\d+):\d+: error", done.stderr)}
    source.unlink()
    if done.returncode and not bad:
        raise RuntimeError(done.stderr)
    return [i + 1 not in bad for i in range(len(lines))]


def legal(lines: list[str], target: str) -> list[bool]:
    """For each line (one instruction each), whether the assembler encodes it for the target."""
    flat = [line.replace("\n", " ; ") for line in lines]
    CACHE.mkdir(exist_ok=True)
    path = _cached(repr((flat, target)), ".json", lambda out: out.write_text(json.dumps(_ask(flat, target))))
    return json.loads(path.read_text())
