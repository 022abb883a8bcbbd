"""Writes a canvas as PNG, by matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
from typing import Any

from warpwave.tiles.drawing.canvas import Canvas, Rect
from warpwave.tiles.errors import UnsupportedError

DPI = 96  # one pixel of the canvas for one of CSS
SCALE = 1.5  # pixels of the file for one of the canvas
POINTS = 72 / DPI


def to_png(canvas: Canvas) -> bytes:
    """The same picture as `to_svg`, without the tips."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError as error:
        raise UnsupportedError(
            "PNG needs matplotlib", hint="pip install 'warpwave[plot]', or write an .svg, which needs nothing"
        ) from error
    width, height = canvas.size
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI * SCALE, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for shape in canvas.shapes:
        if isinstance(shape, Rect):
            corner = (shape.x, shape.y)
            axes.add_patch(
                Rectangle(
                    corner, shape.width, shape.height, facecolor=shape.fill, edgecolor=shape.stroke, linewidth=0.7
                )
            )
            continue
        align = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
        weight = "bold" if shape.bold else "normal"
        style: dict[str, Any] = {"fontsize": shape.size * POINTS, "color": shape.fill, "fontweight": weight}
        axes.text(shape.x, shape.y, shape.text, ha=align, va="center_baseline", parse_math=False, **style)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
