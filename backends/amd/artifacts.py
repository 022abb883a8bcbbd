"""The disk cache of compiled kernels: found by what a kernel is made from, before it is lowered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import warpwave.tiles
from warpwave.backends.amd.build import FLAGS, cache_file, find_compiler
from warpwave.tiles import disk_cache
from warpwave.tiles.dtypes import BY_NAME
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Kernel
from warpwave.tiles.ir.fingerprint import fingerprint
from warpwave.tiles.ir.serial import loc_from_json, loc_to_json
from warpwave.tiles.types import TileType

# What decides how a kernel is lowered; tests, the simulator and the runtime do not.
_BACKEND = Path(__file__).parent
_TILES = Path(warpwave.tiles.__file__).parent
_SOURCES = (
    *((_BACKEND, pattern) for pattern in ("*.py", "lower/*.py", "schedule/*.py", "model/schedules.*", "device/*")),
    *((_TILES, pattern) for pattern in ("*.py", "ir/*.py", "simt/*.py")),
)


@dataclass(frozen=True)
class Check:
    """A condition inside a kernel: what to say, and where, if it is false."""

    message: str
    loc: Loc | None


@dataclass(frozen=True)
class Print:
    """A `ww.print` of a kernel: its text and the types of what it shows."""

    message: str
    tiles: tuple[TileType, ...]


@dataclass(frozen=True)
class Artifact:
    """All that a compiled kernel keeps of its lowering. `built_source` is `source` with line directives.

    `schedule` is the one that its loops took, which `auto` may have chosen.
    """

    source: str
    built_source: str
    waves: int
    shared_bytes: int
    reasons: tuple[str, ...]
    checks: tuple[Check, ...]
    prints: tuple[Print, ...]
    resources: Mapping[str, Any] | None = None
    schedule: str = ""

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps(
            {
                **vars(self),
                "checks": [[c.message, loc_to_json(c.loc)] for c in self.checks],
                "prints": [[p.message, [[t.dtype.name, t.shape, t.space] for t in p.tiles]] for p in self.prints],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Artifact:
        """The artifact that was written."""
        found = json.loads(text)
        found["reasons"] = tuple(found["reasons"])
        found["checks"] = tuple(Check(m, loc_from_json(loc)) for m, loc in found["checks"])
        found["prints"] = tuple(
            Print(m, tuple(TileType(BY_NAME[d], tuple(shape), space) for d, shape, space in tiles))
            for m, tiles in found["prints"]
        )
        return cls(**found)


def place(kernel: Kernel, target: str, options: Mapping[str, Any]) -> Path:
    """The file that holds a kernel's artifact, by everything that the artifact depends on."""
    compiler = find_compiler()
    chosen = repr(sorted(options.items()))
    parts = [fingerprint(kernel), target, chosen, compiler.identity if compiler else "", *FLAGS, own_version()]
    return cache_file(parts, ".json")


@cache
def own_version() -> str:
    """Differs with every source file that a lowering runs through, and so between releases."""
    return disk_cache.digest_of(path for folder, pattern in _SOURCES for path in folder.glob(pattern))


def load(path: Path) -> Artifact | None:
    """The artifact, if it was kept."""
    text = disk_cache.load(path)
    return None if text is None else Artifact.from_json(text)


def save(path: Path, artifact: Artifact) -> None:
    """Keep an artifact."""
    disk_cache.save(path, artifact.to_json())
