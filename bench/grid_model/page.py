"""The record as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = """# The grid model beside published measurements

Made by `python -m warpwave.bench.grid_model`. All "modelled" figures come from a model; nothing was run on a GPU.
What the rows mean, and why they differ where they do: [docs/grid_model.md](../../../docs/grid_model.md).

![measured and modelled](grid_model.png)
"""


def page(record: dict[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD, *_grid(record["grid tables"]), *_tiles(record["gluon tiles"]), *_record(record["record"])]
    return "\n".join([*parts, *_configurations(record["configurations"])]) + "\n"


def _header(*titles: str) -> str:
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def _grid(tables: dict[str, Any]) -> Iterator[str]:
    for name, rows in tables.items():
        yield f"## {name}\n"
        yield _header("size", "order", "L2 %", "Infinity Cache %", "effective TB/s", "TFLOPS", "error")
        for row in rows:
            cells = " | ".join(_pair(row, key) for key in ("l2", "cache", "effective", "tflops"))
            yield f"| {row['size']} | {row['order']} | {cells} | {row['tflops error']:+.1%} |"
        yield "\nEach cell: published / modelled.\n"


def _pair(row: dict[str, Any], key: str) -> str:
    digits = 1 if key == "effective" else 0
    published = f"{row['published'][key]:.{digits}f}" if key in row["published"] else "-"
    return f"{published} / {row['modelled'][key]:.{digits}f}"


def _tiles(tiles: dict[str, Any]) -> Iterator[str]:
    yield "## Tiles of AMD's Gluon tutorial\n"
    yield _header("tile", "measured: matrix cores busy %", "modelled TFLOPS")
    for name, row in tiles["rows"].items():
        yield f"| {name} | {row['busy %']} | {row['modelled TFLOPS']} |"
    yield f"\nRank correlation {tiles['rank correlation']}.\n"


def _record(sides: dict[str, Any]) -> Iterator[str]:
    keys = [key for key in sides["held out"] if key != "choices"]
    yield "## 61 shapes of hk-dsl's record\n"
    yield _header("", *sides)
    for key in keys:
        yield f"| {key} | " + " | ".join(str(side[key]) for side in sides.values()) + " |"
    yield "\nHeld-out shapes whose modelled best loses more than 5 %:\n"
    yield _header("shape", "chosen", "measured best", "loss")
    for choice in sides["held out"]["choices"]:
        if choice["loss"] > 0.05:
            shape = " x ".join(map(str, choice["shape"]))
            yield f"| {shape} | {choice['chosen']} | {choice['best']} | {choice['loss']:.0%} |"
    yield ""


def _configurations(found: dict[str, Any]) -> Iterator[str]:
    yield "## Held-out points by configuration\n"
    yield _header("configuration", "points", "median modelled / measured", "median error")
    for name, row in found.items():
        yield f"| {name} | {row['points']} | {row['median ratio']} | {row['median error']:.1%} |"
