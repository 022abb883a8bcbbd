"""One picture of one tile, in the format that a file's name asks for."""

from __future__ import annotations

from pathlib import Path

from warpwave.tiles.drawing.bank_map import draw_banks
from warpwave.tiles.drawing.canvas import Canvas
from warpwave.tiles.drawing.data import TileLayout
from warpwave.tiles.drawing.lane_map import draw_lanes
from warpwave.tiles.drawing.png import to_png
from warpwave.tiles.drawing.svg import to_svg
from warpwave.tiles.errors import TileValueError

FORMATS = (".svg", ".png")


def draw(layout: TileLayout, path: Path) -> None:
    """Write the picture; TileValueError if the name ends in no known format."""
    write(picture(layout), f"{layout.label}, {layout.target}", path)


def write(canvas: Canvas, title: str, path: Path) -> None:
    """Any picture, by the same rule."""
    if path.suffix not in FORMATS:
        raise TileValueError(f"cannot draw to {str(path)!r}", hint=f"the file's name ends in {' or '.join(FORMATS)}")
    if path.suffix == ".png":
        path.write_bytes(to_png(canvas))
    else:
        path.write_text(to_svg(canvas, title), encoding="utf-8")


def picture(layout: TileLayout) -> Canvas:
    """The shapes."""
    canvas = Canvas()
    canvas.text(16, 22, f"{layout.label}  ({layout.target})", size=16, bold=True)
    if layout.lanes is not None:
        draw_lanes(canvas, layout.lanes, layout.type, 16, 50)
    if layout.placement is not None:
        draw_banks(canvas, layout.placement, layout.type, 16, 50)
    return canvas
