"""Pictures of layouts: what they say, against layouts counted by hand; both formats hold the same shapes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from warpwave.tiles.drawing import Access, Lanes, Placement, TileLayout, draw
from warpwave.tiles.drawing.canvas import Canvas, Rect, Text
from warpwave.tiles.drawing.lane_map import holders
from warpwave.tiles.drawing.page import picture
from warpwave.tiles.dtypes import bf16, f32
from warpwave.tiles.errors import Loc, TileValueError
from warpwave.tiles.types import TileType

SVG = "{http://www.w3.org/2000/svg}"


def striped(waves=2, lanes=4, items=4):
    """Wave w holds rows 4w to 4w+3; lane l holds row 4w+l; an item is a column."""
    w, lane, item = np.meshgrid(np.arange(waves), np.arange(lanes), np.arange(items), indexing="ij")
    return np.stack([w * lanes + lane, item], axis=-1)


def register_tile(coordinates, shape, dtype=f32):
    return TileLayout("acc", TileType(dtype, shape), Loc("k.py", 7), "toy", Lanes(coordinates))


def test_holders_of_a_striped_tile():
    found = holders(Lanes(striped()), (8, 4))
    assert found.wave.tolist() == [[0] * 4] * 4 + [[1] * 4] * 4
    assert found.lane[:, 0].tolist() == [0, 1, 2, 3] * 2
    assert (found.item == np.arange(4)).all()
    assert (found.copies == 1).all()


def test_copies_and_padding():
    """Both waves hold the same rows, of which the tile has only three; nobody holds the last column."""
    coordinates = striped()
    coordinates[1] = coordinates[0]
    found = holders(Lanes(coordinates), (3, 5))
    assert (found.waves[:, :4] == 0b11).all()
    assert (found.copies[:, :4] == 2).all()
    assert (found.wave[:, :4] == 0).all()
    assert (found.wave[:, 4] == -1).all()


def texts(canvas: Canvas) -> list[str]:
    return [s.text for s in canvas.shapes if isinstance(s, Text)]


def tips(canvas: Canvas) -> list[str]:
    return [s.tip for s in canvas.shapes if isinstance(s, Rect) and s.tip]


def test_lane_map_names_waves_lanes_and_registers():
    canvas = picture(register_tile(striped(), (8, 4), bf16))
    assert "acc: rt<bf16, 8x4>, line 7  (toy)" in texts(canvas)
    assert "2 waves of 4 lanes; each lane holds 4 elements in 2 registers" in texts(canvas)
    overview = [t for t in tips(canvas) if t.startswith("rows")]
    assert overview == ["rows 0-3, columns 0-3: waves 0", "rows 4-7, columns 0-3: waves 1"]
    assert "row 5, columns 0-3: wave 1, lane 1, elements 0-3, registers 0-1 of the tile" in tips(canvas)
    assert len([t for t in tips(canvas) if t.startswith("row ")]) == 8


def test_a_vector_is_one_row():
    coordinates = striped(1, 4, 2)[..., 1:] + 2 * np.arange(4)[None, :, None, None]
    coordinates = np.concatenate([np.zeros_like(coordinates), coordinates], axis=-1)
    layout = TileLayout("row", TileType(f32, (8,)), None, "toy", Lanes(coordinates, "warp"))
    assert "row 0, columns 2-3: warp 0, lane 1, elements 0-1, registers 0-1 of the tile" in tips(picture(layout))


def access(offsets, phases=((0, 1), (2, 3)), width=8, banks=4):
    return Access("read8", "test", np.array(offsets), phases, width, banks)


@pytest.mark.parametrize(
    ("offsets", "clocks", "conflicts"),
    [
        ((0, 8, 0, 8), 2, 0),
        ((0, 16, 0, 8), 3, 1),  # byte 16 is bank 0 again
        ((0, 0, 4, 12), 2, 0),  # the same word is served once
        ((0, 16, 32, 48), 4, 2),
    ],
)
def test_clocks_of_an_access(offsets, clocks, conflicts):
    assert (access(offsets).clocks, access(offsets).conflicts) == (clocks, conflicts)


def shared_tile(accesses, offsets=None):
    plain = np.arange(4)[:, None] * 16 + np.arange(8) * 2
    placement = Placement(plain if offsets is None else offsets, 4, "not swizzled", tuple(accesses))
    return TileLayout("at", TileType(bf16, (4, 8), "shared"), Loc("k.py", 3), "toy", placement=placement)


def test_bank_map_says_what_lies_where_and_what_it_costs():
    canvas = picture(shared_tile([access((0, 8, 0, 8)), access((0, 16, 0, 8))]))
    assert "2 kinds of access: 1 clock lost to bank conflicts" in texts(canvas)
    assert "read8, test: 2 clocks, free of conflicts" in texts(canvas)
    assert "read8, test: 3 clocks, 1 clock of conflicts" in texts(canvas)
    assert "row 2, columns 0-7: byte 32" in tips(canvas)
    assert "banks 0-1: lanes 0, 1, 2 clocks" in tips(canvas)
    assert "no bank conflicts" in texts(picture(shared_tile([access((0, 8, 0, 8))])))[2]


def test_a_swizzle_moves_chunks():
    rows = np.arange(4)[:, None]
    offsets = (rows * 16 + np.arange(8) * 2) ^ (rows % 2 * 16)
    found = tips(picture(shared_tile([], offsets)))
    assert "row 0, columns 0-7: byte 0" in found
    assert "row 1, columns 0-7: byte 0" in found  # 16 xor 16


@pytest.mark.parametrize("layout", [register_tile(striped(), (8, 4)), shared_tile([access((0, 16, 0, 8))])])
def test_svg_is_well_formed_and_holds_every_shape(layout, tmp_path):
    path = tmp_path / "picture.svg"
    draw(layout, path)
    root = ElementTree.parse(path).getroot()
    shapes = picture(layout).shapes
    assert [e.text for e in root.iter(f"{SVG}text")] == [s.text for s in shapes if isinstance(s, Text)]
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + sum(isinstance(s, Rect) for s in shapes)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.attrib.get("x", 0)) + float(rect.attrib["width"]) <= width
        assert float(rect.attrib.get("y", 0)) + float(rect.attrib["height"]) <= height


def test_png_has_the_size_of_the_canvas(tmp_path):
    layout = register_tile(striped(), (8, 4))
    path = tmp_path / "picture.png"
    draw(layout, path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    expected = picture(layout).size
    assert abs(width - 1.5 * expected[0]) <= 2
    assert abs(height - 1.5 * expected[1]) <= 2


def test_names_of_files_choose_the_format(tmp_path):
    with pytest.raises(TileValueError, match=r"cannot draw to .*\.pdf'[\s\S]*\.svg or \.png"):
        draw(register_tile(striped(), (8, 4)), tmp_path / "picture.pdf")


def test_texts_are_escaped(tmp_path):
    layout = TileLayout("a<b & c", TileType(f32, (8, 4)), None, "toy", Lanes(striped()))
    draw(layout, tmp_path / "p.svg")
    assert re.search("a&lt;b &amp; c", (tmp_path / "p.svg").read_text())
