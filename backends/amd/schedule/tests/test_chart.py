"""The chart of a schedule, and `warpwave show --schedule`."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwave.backends.amd.schedule.chart import chart
from warpwave.tiles.cli import main
from warpwave.tiles.drawing.canvas import Rect, Text
from warpwave.tiles.drawing.svg import to_svg

from .published import SOUND
from .small import ping_pong

TILES = ["bf16[4096,4096]"] * 3


@pytest.fixture(scope="module")
def drawn():
    return chart(ping_pong(ahead=2), 4)


def tips(drawn):
    return [shape.tip for shape in drawn.canvas.shapes if isinstance(shape, Rect)]


def test_every_load_of_both_groups_is_drawn(drawn):
    """Two ahead and four steps: loads of steps 0 to 5, by each group."""
    loads = [tip for tip in tips(drawn) if tip.endswith("instructions")]
    assert loads == 2 * [f"A[0] of step {step}: 2 instructions" for step in range(6)]


def test_clusters_carry_their_ops(drawn):
    memory = [tip for tip in tips(drawn) if tip.startswith("M\n")]
    assert len(memory) == 8
    assert memory[0] == "M\na <- A[0] of step 0\nload A[0] of step 2\nwait vm(2) lgkm(0)\nbarrier"


def test_the_lag_is_one_cluster_later(drawn):
    """Its first compute cluster begins where the lead's ends."""
    boxes = [s for s in drawn.canvas.shapes if isinstance(s, Rect) and s.tip.startswith("C\n")]
    lead, lag = boxes[:4], boxes[4:]
    assert all(a.x + a.width <= b.x + 1e-6 for a, b in zip(lead, lag, strict=True))
    assert lag[0].x < lead[1].x


def test_names_of_groups_and_phases(drawn):
    texts = {shape.text for shape in drawn.canvas.shapes if isinstance(shape, Text)}
    assert {"group lead", "group lag", "prologue", "step 0", "step 3", "epilogue"} <= texts


def test_in_words():
    lines = chart(SOUND["bf16-8-wave"]).text.splitlines()
    assert lines[0] == "HipKittens bf16 GEMM, 8 waves, gfx950"
    assert "  skew (lag only): barrier" in lines
    assert lines[lines.index("body:") + 1] == (
        "  M0.0: b0 <- B[0] of step 0; a <- A[0] of step 0; load A[1] of step 1; wait lgkm(8); barrier"
    )


def test_show_schedule_writes_the_picture(tmp_path, capsys):
    file = tmp_path / "schedule.svg"
    arguments = ["warpwave.kernels.gemm:gemm", *TILES, "--target", "amd:gfx950", "--schedule", "-o", str(file)]
    assert main(["show", *arguments, "--option", "schedule=ping-pong"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("ping-pong")
    assert "(lag only): barrier" in printed
    assert f"written to {file}" in printed
    assert "group lag" in file.read_text()


@pytest.mark.parametrize("target", ["amd:gfx950", "reference"])
def test_loops_without_a_schedule(target, capsys):
    arguments = ["show", "warpwave.kernels.softmax:softmax", "--target", target, "--schedule"]
    assert main(arguments) != 0
    said = capsys.readouterr()
    assert f"no loop of softmax has a generated schedule for {target}" in said.err + said.out


def test_the_picture_in_the_documentation_is_up_to_date():
    """`write` it again if the drawing was changed on purpose."""
    drawn = chart(SOUND["bf16-8-wave"], 4)
    picture = Path(__file__).resolve().parents[4] / "docs" / "pictures" / "schedule_8_wave.svg"
    assert picture.read_text() == to_svg(drawn.canvas, drawn.title)
