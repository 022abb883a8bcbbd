"""VGPR indexing (s_set_gpr_idx_*), which compilers use for arrays with a uniform index, and skipping (s_setvskip)."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._compile import TARGETS, hip
from ._snippets import START, refused, run

pytestmark = pytest.mark.parametrize("target", TARGETS)

FILL = [*START, *(f"v_mov_b32_e32 v{10 + i}, {i + 20}" for i in range(8))]
STORE = ["global_store_dword v1, v30, s[6:7]"]

DYNAMIC = """
typedef float f32x32 __attribute__((ext_vector_type(32)));
extern "C" __attribute__((global)) void rotate(float* o, const float* a, int n) {
  int t = __builtin_amdgcn_workitem_id_x();
  f32x32 v;
  for (int i = 0; i < 32; ++i) v[i] = a[t + 64 * i];
  float s = 0;
  for (int i = 0; i < n; ++i) { s += v[(i * 3 + n) & 31]; v[(i + n) & 31] = s; }
  for (int i = 0; i < 32; ++i) o[t + 64 * i] = v[i];
}
"""


def body(*lines: str) -> list[str]:
    return [*FILL, *lines, *STORE]


def value(target: str, *lines: str) -> int:
    out = run(body(*lines), target, start=False)[:64]
    assert (out == out[0]).all()
    return int(out[0])


def test_an_indexed_source(target):
    on = "s_set_gpr_idx_on s8, gpr_idx(SRC0)"
    assert value(target, "s_mov_b32 s8, 5", on, "v_mov_b32_e32 v30, v10", "s_set_gpr_idx_off") == 25
    assert value(target, on.replace("s8", "3"), "v_add_u32_e32 v30, v10, v10", "s_set_gpr_idx_off") == 23 + 20
    both = on.replace("SRC0", "SRC0,SRC1").replace("s8", "2")
    assert value(target, both, "v_sub_u32_e32 v30, v11, v10", "s_set_gpr_idx_off") == 1
    third = on.replace("SRC0", "SRC2").replace("s8", "7")
    assert value(target, third, "v_add3_u32 v30, v10, v10, v10", "s_set_gpr_idx_off") == 20 + 20 + 27


def test_an_indexed_destination(target):
    on = "s_set_gpr_idx_on 4, gpr_idx(DST)"
    assert value(target, on, "v_mov_b32_e32 v26, v10", "s_set_gpr_idx_off") == 20
    assert value(target, on, "v_mov_b32_e32 v12, 9", "s_set_gpr_idx_off", "v_mov_b32_e32 v30, v16") == 9


def test_index_and_mode_can_change_while_on(target):
    lines = ["s_set_gpr_idx_on 1, gpr_idx()", "v_mov_b32_e32 v30, v10", "s_set_gpr_idx_mode gpr_idx(SRC0)"]
    assert value(target, *lines, "s_set_gpr_idx_off") == 20
    assert value(target, *lines, "v_mov_b32_e32 v30, v10", "s_set_gpr_idx_off") == 21
    lines += ["s_set_gpr_idx_idx 6", "v_mov_b32_e32 v30, v10", "s_set_gpr_idx_off"]
    assert value(target, *lines) == 26
    assert value(target, *lines, "v_mov_b32_e32 v30, v10") == 20


def test_scalar_and_memory_instructions_are_not_indexed(target):
    lines = ["s_set_gpr_idx_on 3, gpr_idx(SRC0,DST)", "s_mov_b32 s9, 7", "v_mov_b32_e32 v27, v10", *STORE]
    out = run([*FILL, *lines, "s_set_gpr_idx_off"], target, start=False)[:64]
    assert (out == 23).all()


def test_what_an_index_must_not_do(target):
    on = "s_set_gpr_idx_on s8, gpr_idx(SRC0)"
    refused("resources", body("s_movk_i32 s8, 250", on, "v_mov_b32_e32 v30, v10"), target, start=False)
    refused("uninit", body(on, "v_mov_b32_e32 v30, v10"), target, start=False)
    refused("uninit", body("s_mov_b32 s8, 40", on, "v_mov_b32_e32 v30, v10", "s_set_gpr_idx_off"), target, start=False)
    late = ["global_load_dword v14, v0, s[4:5]", "s_mov_b32 s8, 4", on, "v_mov_b32_e32 v30, v10"]
    refused("waits", body(*late), target, start=False)
    dpp = "v_mov_b32_dpp v30, v10 row_shl:1 row_mask:0xf bank_mask:0xf"
    refused("unsupported", body("s_mov_b32 s8, 1", on, "s_nop 4", dpp), target, start=False)


def test_skipped_vector_instructions(target):
    skip = ["v_mov_b32_e32 v30, 1", "s_mov_b32 s8, 4", "s_setvskip s8, 2", "s_nop 2", "v_mov_b32_e32 v30, 2"]
    skip += ["global_store_dword v1, v30, s[6:7]", "s_mov_b32 s9, 3", "s_setvskip 0, 0", "s_nop 2"]
    assert value(target, *skip) == 1
    assert value(target, *skip, "v_mov_b32_e32 v30, s9") == 3


def test_compiled_code_with_a_dynamic_index(target, tmp_path):
    source = tmp_path / "dynamic.hip"
    source.write_text(DYNAMIC)
    text = hip(source, target)
    assert "s_set_gpr_idx_on" in text
    a, n = np.arange(32 * 64, dtype=np.float32).reshape(32, 64), 45
    out, want, total = np.zeros_like(a), a.copy(), np.zeros(64, np.float32)
    for i in range(n):
        total += want[(i * 3 + n) & 31]
        want[(i + n) & 31] = total
    sim.load(text).launch("rotate", (1,), (64,), [out, a, np.int32(n)])
    np.testing.assert_array_equal(out, want)
