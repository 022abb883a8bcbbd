"""The picture of a shared tile: which elements lie in which banks, and what each access costs."""

from __future__ import annotations

from warpwave.tiles.drawing.canvas import Canvas, hue
from warpwave.tiles.drawing.data import BANK_BYTES, Access, Placement
from warpwave.tiles.types import TileType

MOST_LINES = 16
CHUNK_BYTES = 16
BANK_WIDTH, LINE_HEIGHT, PHASE_HEIGHT = 13.0, 18.0, 18.0
FREE, CONFLICT, UNUSED = "#c7e9c0", "#f4a582", "#f6f8fa"


def draw_banks(canvas: Canvas, placement: Placement, type_: TileType, x: float, y: float) -> None:
    """The map of the first lines of memory, then one panel for each access."""
    line_bytes = placement.banks * BANK_BYTES
    size = int(placement.offsets.max()) + type_.dtype.nbytes
    total = sum(a.conflicts for a in placement.accesses)
    canvas.text(x, y, f"{size} bytes; {placement.swizzle}", size=12)
    verdict = "no bank conflicts" if not total else f"{_count(total, 'clock')} lost to bank conflicts"
    known = (
        f"{_count(len(placement.accesses), 'kind')} of access: {verdict}"
        if placement.accesses
        else "accesses: not known"
    )
    canvas.text(x, y + 16, known, size=12)
    top = _draw_memory(canvas, placement, type_, line_bytes, x + 44, y + 58)
    for access in placement.accesses:
        top = _draw_access(canvas, access, x + 44, top + 54)


def _draw_memory(canvas: Canvas, placement: Placement, type_: TileType, line_bytes: int, x: float, y: float) -> float:
    """Lines of one word for each bank; a chunk shows its row and first column, its colour is the column's."""
    size = type_.dtype.nbytes
    cols = placement.offsets.shape[1]
    per_chunk = max(1, CHUNK_BYTES // size)
    whole = -(-(int(placement.offsets.max()) + size) // line_bytes)
    lines = min(MOST_LINES, whole)
    part = f"the first {lines} of {whole} lines" if lines < whole else "lines"
    heading = f"memory, {part} of {line_bytes} bytes: row and first column of each {per_chunk * size} bytes"
    canvas.text(x, y - 22, heading, size=12, bold=True)
    for bank in range(0, placement.banks, 4):
        canvas.text(x + bank * BANK_WIDTH + 2, y - 6, str(bank), size=8, fill="#656d76")
    canvas.text(x - 6, y - 6, "bank", size=8, anchor="end", fill="#656d76")
    for row in range(placement.offsets.shape[0]):
        for col in range(0, cols, per_chunk):
            line, within = divmod(int(placement.offsets[row, col]), line_bytes)
            if line < lines:
                width = min(per_chunk, cols - col) * size / BANK_BYTES * BANK_WIDTH
                place = x + within / BANK_BYTES * BANK_WIDTH, y + line * LINE_HEIGHT
                last = min(col + per_chunk, cols) - 1
                tip = f"row {row}, columns {col}-{last}: byte {int(placement.offsets[row, col])}"
                canvas.rect(*place, width, LINE_HEIGHT, fill=hue(col // per_chunk, -(-cols // per_chunk)), tip=tip)
                canvas.text(place[0] + width / 2, place[1] + LINE_HEIGHT / 2, f"r{row} c{col}", size=8, anchor="middle")
    for line in range(lines):
        label = str(line * line_bytes)
        canvas.text(x - 6, y + (line + 0.5) * LINE_HEIGHT, label, size=8, anchor="end", fill="#656d76")
    return y + lines * LINE_HEIGHT


def _draw_access(canvas: Canvas, access: Access, x: float, y: float) -> float:
    """One row for each phase, over the banks: the lanes that are served, and the clocks that it takes."""
    cost = "free of conflicts" if not access.conflicts else f"{_count(access.conflicts, 'clock')} of conflicts"
    canvas.text(
        x, y - 24, f"{access.instruction}, {access.what}: {_count(access.clocks, 'clock')}, {cost}", size=12, bold=True
    )
    canvas.text(x, y - 8, "lanes that are served together, at the banks that serve them", size=9, fill="#656d76")
    for number, phase in enumerate(access.phases):
        _draw_phase(canvas, access, phase, number, x, y + 2 + number * PHASE_HEIGHT)
    return y + 2 + len(access.phases) * PHASE_HEIGHT


def _draw_phase(canvas: Canvas, access: Access, phase: tuple[int, ...], number: int, x: float, y: float) -> None:
    canvas.text(x - 6, y + PHASE_HEIGHT / 2, f"phase {number}", size=8, anchor="end", fill="#656d76")
    canvas.rect(x, y, access.banks * BANK_WIDTH, PHASE_HEIGHT, fill=UNUSED)
    busy = access.words(phase)
    bank = 0
    while bank < access.banks:
        lanes = sorted({lane for lanes in busy.get(bank, {}).values() for lane in lanes})
        count, last = len(busy.get(bank, {})), bank + 1
        while last < access.banks and sorted({n for ns in busy.get(last, {}).values() for n in ns}) == lanes:
            last += 1
        if lanes:
            width = (last - bank) * BANK_WIDTH
            tip = f"banks {bank}-{last - 1}: lanes {', '.join(map(str, lanes))}, {count} clocks"
            colour = FREE if count == 1 else CONFLICT
            canvas.rect(x + bank * BANK_WIDTH, y, width, PHASE_HEIGHT, fill=colour, tip=tip)
            label = _fitting(lanes, width - 4)
            canvas.text(x + bank * BANK_WIDTH + width / 2, y + PHASE_HEIGHT / 2, label, size=8, anchor="middle")
        bank = last
    worst = max((len(words) for words in busy.values()), default=0)
    canvas.text(x + access.banks * BANK_WIDTH + 8, y + PHASE_HEIGHT / 2, _count(worst, "clock"), size=8)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _fitting(lanes: list[int], width: float) -> str:
    """As many lane numbers as there is room for."""
    most = max(1, int(width / 4.8))
    text = ",".join(map(str, lanes))
    return text if len(text) <= most else f"{len(lanes)}x" if most >= 2 else ""
