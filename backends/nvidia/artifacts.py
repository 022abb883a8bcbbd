"""The disk cache of lowered kernels: found by what a kernel is made from, before it is lowered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import warpwave.tiles
from warpwave.backends.nvidia.build import FLAGS, INCLUDE, cache_directory, find_compiler
from warpwave.backends.nvidia.lowered import Lowered, TensorMap
from warpwave.tiles import disk_cache
from warpwave.tiles.dtypes import BY_NAME
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.ir.fingerprint import fingerprint
from warpwave.tiles.ir.serial import loc_from_json, loc_to_json
from warpwave.tiles.types import TileType

# What decides how a kernel is lowered; tests and the runtime do not.
_BACKEND = Path(__file__).parent
_TILES = Path(warpwave.tiles.__file__).parent
_SOURCES = (
    *((_BACKEND, pattern) for pattern in ("*.py", "lower/*.py")),
    *((_TILES, pattern) for pattern in ("*.py", "ir/*.py", "simt/*.py")),
    (INCLUDE, "**/*.cuh"),
)


def place(kernel: Kernel, target: str, options: Mapping[str, Any]) -> Path:
    """The file that holds a lowered kernel, by everything that it and its resources depend on."""
    compiler = find_compiler()
    chosen = repr(sorted(options.items()))
    parts = [fingerprint(kernel), target, chosen, compiler.version if compiler else "", *FLAGS, own_version()]
    return cache_directory() / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.json"


@cache
def own_version() -> str:
    """Differs with our version and with every source file that a lowering runs through."""
    try:
        release = version("warpwave")
    except PackageNotFoundError:  # run from the source tree
        release = ""
    return release + disk_cache.digest_of(path for folder, pattern in _SOURCES for path in folder.glob(pattern))


def load(path: Path) -> tuple[Lowered, Mapping[str, Any] | None] | None:
    """The lowered kernel, if it was kept, and its resources, if they were looked at."""
    text = disk_cache.load(path)
    if text is None:
        return None
    found = json.loads(text)
    return _lowered_from(found["lowered"]), found["resources"]


def save(path: Path, lowered: Lowered, resources: Mapping[str, Any] | None) -> None:
    """Keep a lowered kernel."""
    disk_cache.save(path, json.dumps({"lowered": _lowered_to(lowered), "resources": resources}))


# -- as JSON ------------------------------------------------------------------------------------------


def _lowered_to(lowered: Lowered) -> dict[str, Any]:
    ops = {name: [_op_to(op) for op in getattr(lowered, name)] for name in ("checks", "prints")}
    return {**vars(lowered), "maps": [vars(m) for m in lowered.maps], **ops}


def _lowered_from(found: dict[str, Any]) -> Lowered:
    maps = tuple(TensorMap(**{**m, "axes": tuple(m["axes"])}) for m in found["maps"])
    ops = {name: tuple(_op_from(op) for op in found[name]) for name in ("checks", "prints")}
    return Lowered(
        **{**found, "maps": maps, "reasons": tuple(found["reasons"]), "copied": tuple(found["copied"]), **ops}
    )


def _op_to(op: Op) -> list[Any]:
    """What the runtime needs of a check or print: its text, its place, and what it shows."""
    shown = [[v.tile.dtype.name, v.tile.shape, v.tile.space] for v in op.operands] if op.name == "print" else []
    return [op.name, op.attrs["message"], loc_to_json(op.loc), shown]


def _op_from(found: list[Any]) -> Op:
    name, message, loc, shown = found
    values = [Value(TileType(BY_NAME[dtype], tuple(shape), space)) for dtype, shape, space in shown]
    return Op(name, values, {"message": message}, [], [], loc_from_json(loc))
