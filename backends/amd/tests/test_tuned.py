"""Constants that the backend suggests: depth by LDS, tiles by modelled time, nothing for what is not known."""

from __future__ import annotations

import pytest

import warpwave as ww
from warpwave.backends.amd.tuned import constants_for
from warpwave.kernels.gemm import gemm

PATH = "warpwave.kernels.gemm:gemm"


def suggested(a, c, target="amd:gfx950"):
    return dict(constants_for(PATH, target, {"a": ww.spec(a), "b": ww.spec(a), "c": ww.spec(c)}))


@pytest.mark.parametrize(("target", "dtype", "depth"), [
    ("amd:gfx950", "bf16", 64), ("amd:gfx950", "fp8e4m3", 128), ("amd:gfx942", "bf16", 32), ("amd:gfx942:sim", "f32", 16),
])  # fmt: skip
def test_depth_is_what_lds_holds(target, dtype, depth):
    assert suggested(f"{dtype}[4096,4096]", "f32[4096,4096]", target)["BK"] == depth


def test_tiles_follow_the_shape():
    small, large = (suggested(f"bf16[{n},{n}]", f"bf16[{n},{n}]") for n in (512, 8192))
    assert (small["BM"], small["BN"]) == (64, 64)
    assert (large["BM"], large["BN"]) == (256, 256)


def test_a_stored_the_other_way_has_the_same_depth():
    assert suggested("bf16[1024,4096]", "bf16[1024,4096]") == suggested("bf16[4096,1024]", "bf16[1024,4096]")


@pytest.mark.parametrize("shape", ["[?,?]", "[0,64]", "[64,0]", "[2,?,64]"])
def test_unknown_and_empty_shapes_keep_the_kernels_own_tiles(shape):
    assert suggested(f"bf16{shape}", f"bf16{shape}") == {"BK": 64}


def test_batches_count():
    one, many = (suggested(f"bf16[{batch},512,512]", f"bf16[{batch},512,512]") for batch in (1, 512))
    assert one["BM"] * one["BN"] < many["BM"] * many["BN"]


def test_explain_gives_the_modelled_times_and_the_call_decides():
    specs = [ww.spec("bf16[512,512]")] * 3
    text = gemm.compile(*specs, target="amd:gfx950", BN=128).explain()
    assert "BN = 128 (from the call)" in text
    assert "BM = 64 (tuned for amd:gfx950: modelled 64 x 64: " in text
    assert "256 x 256: " in text


ATTENTION = "warpwave.kernels.attention:attention"


@pytest.mark.parametrize(
    ("target", "heads", "keys", "expected"),
    [
        ("amd:gfx950", "bf16[1,8,4096,64]", "bf16[1,8,4096,64]", {"BK": 128}),
        ("amd:gfx950", "f16[1,8,64,32]", "f16[1,8,?,32]", {"BK": 128}),
        ("amd:gfx950", "bf16[1,8,4096,64]", "bf16[1,8,300,64]", {}),
        ("amd:gfx950", "f32[1,8,4096,64]", "f32[1,8,4096,64]", {}),
        ("amd:gfx950", "bf16[1,8,4096,128]", "bf16[1,8,4096,128]", {}),
        ("amd:gfx942", "bf16[1,8,4096,128]", "bf16[1,8,4096,128]", {"BK": 32}),
        ("amd:gfx942", "bf16[1,8,4096,64]", "bf16[1,8,4096,64]", {}),
    ],
)
def test_attention_steps(target, heads, keys, expected):
    assert dict(attention_constants(target, heads, keys)) == expected


def attention_constants(target, heads, keys="", **constants):
    q, k = ww.spec(heads), ww.spec(keys or heads)
    arguments = {"q": q, "k": k, "v": k, "o": q, "lse": None, **constants}
    return constants_for(ATTENTION, target, arguments)


MANY = "bf16[4,32,4096,128]"


@pytest.mark.parametrize(
    ("target", "heads", "expected"),
    [
        ("amd:gfx950", MANY, {"BQ": 256, "BK": 64}),
        ("amd:gfx950:sim", "f16[4,32,4096,32]", {"BQ": 256, "BK": 128}),
        ("amd:gfx950", "bf16[4,32,4096,96]", {}),  # whose loads eight waves do not share evenly
        ("amd:gfx950", "bf16[4,32,4096,64]", {"BQ": 256, "BK": 128}),
        ("amd:gfx950", "bf16[64,32,100,128]", {}),  # no more queries than one block has
        ("amd:gfx950", "bf16[1,8,4096,128]", {}),  # 128 blocks of 256 queries for 256 compute units
        ("amd:gfx950", "bf16[4,32,4096,160]", {}),  # wider than what is modelled
        ("amd:gfx950", "bf16[0,32,4096,128]", {}),
        ("amd:gfx942", MANY, {"BQ": 256, "BK": 32}),
    ],
)
def test_attention_takes_256_queries_where_there_are_enough(target, heads, expected):
    assert dict(attention_constants(target, heads)) == expected


def test_attention_constants_of_the_call_stay_and_others_suit_them():
    assert dict(attention_constants("amd:gfx950", "bf16[4,32,4096,64]", BQ=128)) == {"BK": 128}
    assert dict(attention_constants("amd:gfx950", "bf16[4,32,4096,64]", BK=64)) == {"BQ": 256, "BK": 64}
    assert dict(attention_constants("amd:gfx950", "bf16[4,32,4096,64]", D=128)) == {"BQ": 256, "BK": 64}


def test_causal_attention_counts_the_keys_that_blocks_see():
    """A block of 256 queries has 4 masked steps, which it waits for with 1024 keys, not with 4096."""
    short, long = (
        attention_constants("amd:gfx950", f"bf16[{b},16,{n},128]", causal=True) for b, n in ((16, 1024), (4, 4096))
    )
    assert dict(short) == {}
    assert dict(long) == {"BQ": 256, "BK": 64}
    assert long.reasons["BQ"].startswith("modelled 256 x 64: ")
