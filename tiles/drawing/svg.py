"""Writes a canvas as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from warpwave.tiles.drawing.canvas import Canvas, Rect, Text


def to_svg(canvas: Canvas, title: str) -> str:
    """The picture as a text of its own; what is tipped shows when the pointer rests on it."""
    width, height = (round(n) for n in canvas.size)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif">'
    )
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    body = [_rect(s) if isinstance(s, Rect) else _text(s) for s in canvas.shapes]
    return "\n".join([head, f"<title>{escape(title)}</title>", background, *body, "</svg>", ""])


def _rect(r: Rect) -> str:
    place = f'x="{r.x:g}" y="{r.y:g}" width="{r.width:g}" height="{r.height:g}"'
    look = f"fill={quoteattr(r.fill)} stroke={quoteattr(r.stroke)}"
    return f"<rect {place} {look}><title>{escape(r.tip)}</title></rect>" if r.tip else f"<rect {place} {look}/>"


def _text(t: Text) -> str:
    anchor = f' text-anchor="{t.anchor}"' if t.anchor != "start" else ""
    weight = ' font-weight="bold"' if t.bold else ""
    # The middle of the capitals, by the font's own measures, which all renderers place alike.
    baseline = t.y + 0.36 * t.size
    return (
        f'<text x="{t.x:g}" y="{baseline:g}" font-size="{t.size:g}" fill="{t.fill}"{anchor}{weight}>'
        f"{escape(t.text)}</text>"
    )
