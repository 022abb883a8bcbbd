"""The table of modelled kernels: one small case from file to page, and what the committed record must show."""

from __future__ import annotations

import json

import pytest

from warpwave.bench import amd_timing

KERNEL = """	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.text
	.globl k
k:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_load_dword s6, s[0:1], 0x8
	v_mov_b32_e32 v0, 0
	s_waitcnt lgkmcnt(0)
{products}
	s_endpgm
	.rodata
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 24
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 24
		.amdhsa_user_sgpr_count 2
	.end_amdhsa_kernel
	.amdgpu_metadata
damaged: [
	.end_amdgpu_metadata
"""
CASE = {
    "name": "products",
    "file": "k.s",
    "grid": [512],
    "block": [256],
    "args": [{"shape": [16], "bytes": 2}, {"i32": 7}],
    "flops": 512 * 4 * 100 * 2 * 16 * 16 * 32,
    "dtype": "bf16",
    "published": 1000.0,
    "groups": [0],
    "note": "made for this test",
}


@pytest.fixture(scope="module")
def committed():
    rows = json.loads((amd_timing.RESULTS / "record.json").read_text())["rows"]
    return {r["case"]: r for r in rows}


def test_a_case_goes_from_a_file_to_a_page(tmp_path, capsys):
    product = "	v_mfma_f32_16x16x32_bf16 v[4:7], v[8:11], v[12:15], v[4:7]\n"
    (tmp_path / "k.s").write_text(KERNEL.format(products=product * 100))
    (tmp_path / "cases.json").write_text(json.dumps({"about": "A test.", "cases": [CASE]}))
    out = tmp_path / "out"
    amd_timing.main([str(tmp_path / "cases.json"), "--folder", str(tmp_path), "--record", str(out)])
    (row,) = json.loads((out / "record.json").read_text())["rows"]
    assert 1600 <= row["clocks"] <= 1600 + 120
    assert row["rounds"] == 2
    seconds = 2 * row["clocks"] / (row["ghz"] * 1e9)
    assert row["tflops"] == pytest.approx(CASE["flops"] / seconds / 1e12, rel=0.01)
    assert row["error"] == pytest.approx(row["tflops"] / 1000 - 1, abs=0.01)
    page = (out / "README.md").read_text()
    assert "nothing here ran on an AMD GPU" in page
    assert "made for this test" in page
    assert "| products | 1000 |" in capsys.readouterr().out
    kept = {**row, "case": "older", "published": None, "error": None}
    amd_timing.save([kept], "", out)
    amd_timing.main(
        [str(tmp_path / "cases.json"), "--folder", str(tmp_path), "--only", "products", "--record", str(out)]
    )
    rows = json.loads((out / "record.json").read_text())["rows"]
    assert [r["case"] for r in rows] == ["older", "products"]
    assert rows[0] == kept


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("HipKittens bf16 8 waves, 16 rows", "HipKittens bf16 8 waves, 32 rows"),
        ("HipKittens bf16 8 waves, 16 rows", "HipKittens bf16 no producers, 192x256"),
        ("HipKittens bf16 no producers, 192x256", "HipKittens bf16 4 producers, 12 consumers, 192x256"),
        ("HipKittens bf16 no producers, 192x256", "HipKittens bf16 4 producers, 8 consumers, 128x256"),
        ("HipKittens attention backward, 4 waves, compiler's registers", "HipKittens attention backward, 8 waves"),
        (
            "HipKittens attention backward, 4 waves, pinned registers",
            "HipKittens attention backward, 4 waves, compiler's registers",
        ),
        ("HipKittens attention forward D=128", "Triton 3.9 attention forward D=128"),
        ("HipKittens attention forward D=64", "Triton 3.9 attention forward D=64"),
        ("HipKittens bf16 8 waves, 16 rows", "Triton 3.9 bf16 256x256x64, 8 waves, gfx950"),
    ],
)
def test_the_record_has_published_orderings(committed, better, worse):
    assert committed[better]["tflops"] > committed[worse]["tflops"]


@pytest.mark.parametrize("schedule", ["ping-pong", "interleave"])
def test_the_record_shows_what_the_schedules_are_for(committed, schedule):
    own = committed[f"Warpwave bf16 256x256x64, {schedule}, gfx950"]
    assert own["loop_matrix_busy"] >= 0.98
    assert own["tflops"] >= 1.2 * committed["Triton 3.9 bf16 256x256x32, 8 waves, 3 stages, gfx950"]["tflops"]
    assert own["tflops"] > committed["Warpwave bf16 256x256x64, multistage, gfx950"]["tflops"]


SIDE_BY_SIDE = [  # a default call, what Triton's and HipKittens' code are called, and how much of each it has
    (
        "bf16 256x256x64, default call, gfx950",
        ("bf16 256x256x32, 8 waves, 3 stages, gfx950", 1.2),
        ("bf16 8 waves, 16 rows", 0.98),
    ),
    ("fp8 256x256x128, default call, gfx950", ("fp8 256x256x128, 8 waves, gfx950", 1.14), ("fp8 8 waves", 0.98)),
    (
        "attention forward D=128, default call, gfx950",
        ("attention forward D=128, 128x64, 4 waves", 1.33),
        ("attention forward D=128", 0.93),
    ),
    (
        "attention forward D=64, default call, gfx950",
        ("attention forward D=64, 128x128, 4 waves", 1.12),
        ("attention forward D=64", 1.01),
    ),
    (
        "bf16 256x256x32, default call, gfx942",
        ("bf16 256x256x64, 8 waves, gfx942", 0.98),
        ("bf16 CDNA3, 8 waves, MI300X", 0.98),
    ),
    ("fp8 256x256x64, default call, gfx942", ("fp8 256x256x128, 8 waves, gfx942", 0.97), None),
    ("attention forward D=128, default call, gfx942", ("attention forward D=128, gfx942", 1.25), None),
    ("attention forward D=64, default call, gfx942", ("attention forward D=64, gfx942", 1.0), None),
]


@pytest.mark.parametrize(("own", "triton", "hipkittens"), SIDE_BY_SIDE)
def test_default_calls_side_by_side(committed, own, triton, hipkittens):
    """No row falls below what docs/timing.md says of it."""
    made = committed[f"Warpwave {own}"]["tflops"]
    for prefix, other in (("Triton 3.9", triton), ("HipKittens", hipkittens)):
        if other is not None:
            assert made >= other[1] * committed[f"{prefix} {other[0]}"]["tflops"]


def test_waves_that_only_load_cost_what_is_published_of_them(committed):
    """HipKittens, TFLOPS at 7680 x 8192 x 8192: the model of code of the same roles and tiles has this order, too."""
    by_roles = {
        "128x256x64, producer-consumer 4 + 8": 964,
        "192x256x64, producer-consumer 4 + 12": 1251,
        "192x256x64, ping-pong": 1522,
        "256x256x64, ping-pong": 1580,
    }
    modelled = [committed[f"Warpwave bf16 {name}, gfx950"]["tflops"] for name in by_roles]
    assert modelled == sorted(modelled)
    assert modelled[1:] == pytest.approx(list(by_roles.values())[1:], rel=0.1)


def test_busy_shares_are_those_of_thread_traces(committed):
    cases = json.loads((amd_timing.RESULTS / "cases.json").read_text())["cases"]
    traced = {c["name"]: c["published_busy"] for c in cases if "published_busy" in c}
    assert len(traced) == 4
    for name, busy in traced.items():
        assert committed[name]["loop_matrix_busy"] == pytest.approx(busy, abs=0.03)


def test_every_case_is_in_the_record(committed):
    cases = json.loads((amd_timing.RESULTS / "cases.json").read_text())["cases"]
    assert {c["name"] for c in cases} <= committed.keys()
