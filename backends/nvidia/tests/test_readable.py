"""What makes the generated text readable says the same as what it replaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwave.backends.nvidia import nvrtc
from warpwave.backends.nvidia.layout import LANES, accumulator_layout, operand_layout
from warpwave.backends.nvidia.lower.place import st_type, swizzle_bytes
from warpwave.backends.nvidia.lower.readable import closed_form, constant, register_type, source_comment, without_ones
from warpwave.backends.nvidia.tests.device_kernels import FLAGS
from warpwave.tiles import dtypes
from warpwave.tiles.errors import Loc
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.layout import Layout


@given(st.integers(0, 100), st.lists(st.integers(-64, 64), max_size=7), st.integers(0, 30))
def test_a_closed_form_computes_the_table(first, steps, fewer):
    count = max(1, (1 << len(steps)) - fewer)
    table = [first + sum(step for bit, step in enumerate(steps) if i >> bit & 1) for i in range(count)]
    text = closed_form(table)
    assert text is not None
    assert [eval(text, {"i": i}) for i in range(count)] == table  # C and Python agree on these operators


@pytest.mark.parametrize("table", [(0, 1, 3, 2), (0, 1, 2, 4), (5, 5, 5, 6)])
def test_other_tables_stay_tables(table):
    assert closed_form(table) is None


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.0, "f32", "0.0f"),
        (-0.0, "f32", "-0.0f"),
        (0.1, "f32", "0x1.99999a0000000p-4f"),  # no short decimal is exact
        (0.375, "bf16", "(bf16)(0.375f)"),
        (float("-inf"), "f32", "-F32_INF"),
        (3, "i32", "3"),
    ],
)
def test_constants_have_decimals_where_these_are_exact(value, dtype, text):
    assert constant(value, getattr(dtypes, dtype)) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_constants_are_exact(value):
    text = constant(value, dtypes.f32).removesuffix("f")
    read = float.fromhex(text) if "0x" in text else float(text)
    assert np.float32(read).tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize(
    ("shape", "over", "expected"), [((128, 256), (8, 1), "16, 256"), ((128, 384), (4, 1), "32, 384")]
)
def test_accumulators_are_register_tiles(shape, over, expected):
    layout = accumulator_layout(shape, over[0] * over[1], over, warpgroups=True)
    assert register_type(dtypes.f32, layout) == f"rt_fl<{expected}>"
    rows = expected.split(",")[0]
    assert register_type(dtypes.bf16, operand_layout(64, layout)) == f"rt_bf<{rows}, 64, 8>"


def test_other_layouts_have_no_such_name():
    plain = Layout(LANES, (), ((0, 0), (0, 1)))
    assert register_type(dtypes.f32, plain) is None


@pytest.mark.skipif(not nvrtc.version(), reason="NVRTC is not installed")
def test_tiles_in_shared_memory_are_those_of_the_headers():
    """Panels as the lowering lays them out, where it calls a tile by a type of kittens."""
    lines, named = ['#include "warpwave/statements.cuh"', "using namespace ww::tk;", "using ww::u32;"], 0
    for dtype in (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.i8):
        for rows, cols in ((16, c) for c in range(16, 272, 16) if c * dtype.nbytes % 32 == 0):
            pitch = swizzle_bytes(cols * dtype.nbytes)
            kind = st_type(SharedTile(0, pitch, (), dtype, (rows, cols), panels=rows * pitch))
            named += bool(kind)
            if kind:
                same = f"sizeof({kind}) == {rows * cols * dtype.nbytes} && {kind}::swizzle_bytes == {pitch}"
                lines.append(f"static_assert({same});")
    assert named > 60
    nvrtc.compile_source("\n".join(lines), "tiles.cu", (*FLAGS, "--gpu-architecture=sm_90a"))


def test_comments_show_the_users_line(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("x = 1\ny = x + 2  # a \\\n" + "z = " + "1 + " * 60 + "1\n")
    assert source_comment(Loc(str(file), 2)) == "// k.py:2  y = x + 2  # a"  # no backslash that would go on
    assert source_comment(Loc(str(file), 3)).endswith("...")
    assert source_comment(Loc("elsewhere.py", 7)) == "// elsewhere.py:7"


def test_factors_of_one_are_left_out():
    assert without_ones("(lane & 3) * 1 + lane * 16 + warp_id * 1") == "(lane & 3) + lane * 16 + warp_id"
