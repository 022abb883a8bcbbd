"""Generated code: which instructions the library's kernels are built of, and which schedules are chosen when."""

from __future__ import annotations

import re

import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, st
from warpwave.backends.nvidia.arch import TARGETS
from warpwave.backends.nvidia.plan import make_plan
from warpwave.backends.nvidia.tuned import TILES, constants_for
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import dropout_residual_layernorm


@pytest.fixture(scope="module")
def product():
    x = ww.spec("bf16[1024,1024]")
    return gemm.compile(x, x, x, target="nvidia:sm90a", transpose_b=True, BM=128, BN=256)


@pytest.fixture(scope="module")
def scores():
    x = ww.spec("bf16[1,2,512,128]")
    return attention.compile(x, x, x, x, target="nvidia:sm90a", causal=True)


def test_a_product_uses_the_matrix_and_copy_engines(product):
    mix, loop = product.resources["mix"], product.resources["hot_loop"]
    assert loop["HGMMA"] == 4  # 64 of depth, 16 each, by one instruction of 256 columns
    assert mix["UTMALDG"] == 2
    assert mix["UTMASTG"] >= 1
    assert mix["STSM"] == 16  # 64 x 256 of bf16 a warpgroup, 16 x 16 a warp and instruction
    assert not set(mix) & {"LDL", "STL", "LDGSTS", "HMMA"}
    assert product.resources["spills"] == 0
    assert product.resources["blocks_per_sm"] == 1


def test_the_matrix_engine_never_waits_for_the_loop(product):
    """Between two products there is no wait for the first, and no accumulator is moved."""
    body = re.findall(r"for \(int iteration_\w+ = 0.*?mma_async_wait<(\d)>", product.source, re.DOTALL)
    assert body[0] == "1"
    lines = product.asm.splitlines()
    first, last = (f(i for i, x in enumerate(lines) if "HGMMA" in x) for f in (min, max))
    moved = [x for x in lines[first:last] if re.search(r"\bMOV R\d+, R\d+|IMAD\.MOV\.U32 R\d+, RZ, RZ, R\d+", x)]
    assert len(moved) < 8


def hot_loops(source: str) -> list[list[str]]:
    """The producer's and the computing warps' loop, without the numbers behind names; comments apart."""
    found = re.findall(r"\n( +)for \(int iteration_\w+ = 0;[^\n]*\n(.*?)\n\1}", source.split("#else  //")[0], re.DOTALL)
    loops = [[re.sub(r"_\d+\b", "", line).strip() for line in body.splitlines()] for _, body in found]
    return [[line for line in loop if not line.startswith("//")] for loop in loops]


def test_hot_loops_are_operations_of_thunderkittens(product):
    """Semaphores, tiles and accumulators by name: no address is computed in the text."""
    produce, compute = hot_loops(product.source)
    assert produce == [
        "const int k = iteration;",
        "wait(inputs_finished[stage], phase ^ 1);",
        "tma::expect_bytes(inputs_arrived[stage], 49152);",
        "tma::load_async(a_tile[stage], a_map, coord(m, k), inputs_arrived[stage]);",
        "tma::load_async(b_tile[stage], b_map, coord(n, k), inputs_arrived[stage]);",
        "if (++stage == 4) stage = 0, phase ^= 1;",
    ]
    assert compute == [
        "const int k = iteration;",
        "if (iteration == signal_at) group<8>::arrive(2);",
        "wait(inputs_arrived[stage], phase);",
        "warpgroup::mma_ABt_in_flight(acc, a_tile[stage], b_tile[stage]);",
        "warpgroup::mma_async_wait<1>();",
        "if (iteration > 0) {",
        "__syncwarp();",
        "if (lane == 0) arrive(inputs_finished[(stage + 3) % 4]);",
        "}",
        "if (++stage == 4) stage = 0, phase ^= 1;",
    ]
    assert "constexpr shared_tiles<st_bf<128, 64>, 32768> a_tile;" in product.source
    assert re.search(r"rt_fl<16, 256> acc_\d+;", product.source)
    assert re.search(r"// gemm\.py:\d+  a_tile = ww\.load\(a, ", product.source)


@ww.kernel
def mma_ABt(a: gl, b: gl, c: gl):
    """Called like a macro of the headers; its accumulator is padded from 192 rows to four times 64."""
    acc = ww.zeros(rt[f32, 192, 64], over=(8, 1))
    m, n = ww.grid(cdiv(c.rows, 192), cdiv(c.cols, 64))
    for k in ww.pipeline(cdiv(a.cols, 64)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[bf16, 192, 64]), ww.load(b, (n, k), st[bf16, 64, 64]))
    ww.store(c, (m, n), acc)


@ww.kernel
def halves(a: gl, b: gl, c: gl, *, OVER):
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    acc = ww.zeros(rt[f32, 64, 64], over=OVER)
    for k in ww.pipeline(cdiv(a.cols, 64)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[bf16, 64, 64]), ww.load(b, (n, k), st[bf16, 64, 64]))
    ww.store(c, (m, n), acc)


def test_products_read_padded_tiles():
    """The first operand is a larger tile for the product than for the load; a kernel may be called like an operation."""
    built = mma_ABt.compile(*[ww.spec("bf16[192,64]")] * 3, target="nvidia:sm90a", options={"warps": 8})
    assert built.resources["hot_loop"]["HGMMA"] == 8  # 64 of depth in steps of 16, for two times 64 rows
    ours = built.source.split("#else")[0]  # the text with a producer
    (tile,) = re.findall(r"constexpr shared_tiles<st_bf<256, 64>, \d+> (\w+);", ours)
    assert re.search(rf"mma_ABt_in_flight\(acc_\d+, {tile}\[stage\], b_tile\[stage\]\)", built.source)


@pytest.mark.parametrize(
    ("over", "engine"),
    [((8, 1), "wgmma"), ((4, 2), "wgmma"), ((2, 2), "mma"), ((2, 1), "mma"), ((1, 1), "mma")],
    ids=str,
)
def test_over_says_how_many_warps_there_are_if_the_options_do_not(over, engine):
    kernel = halves.compile(*[ww.spec("bf16[?,?]")] * 3, OVER=over, target="reference").ir
    plan = make_plan(kernel, TARGETS["sm90a"], {})
    (choice,) = plan.products.values()
    assert (plan.warps, choice.over, choice.engine) == (over[0] * over[1], over, engine)


@pytest.mark.parametrize(("over", "options"), [((64, 1), {}), ((4, 1), {"warps": 64})])
def test_more_warps_than_a_block_has_are_refused(over, options):
    kernel = halves.compile(*[ww.spec("bf16[?,?]")] * 3, OVER=over, target="reference").ir
    with pytest.raises(ww.UnsupportedError, match="64 warps, a block of nvidia:sm90a has at most 32"):
        make_plan(kernel, TARGETS["sm90a"], options)


def test_a_producer_needs_loads_that_no_tile_decides(product):
    assert "a producer warp" in product.explain()
    x = ww.spec("bf16[64,64]")
    with pytest.raises(ww.UnsupportedError, match="no producer warp can feed"):
        looked_up.compile(x, x, x, ww.spec("i32[8]"), target="nvidia:sm90a", options={"schedule": "producer"})


@ww.kernel
def shifted(a: gl, b: gl, c: gl, *, FIRST):
    """c = a[:, FIRST:] @ b[:, FIRST:].T, stored from column FIRST on."""
    acc = ww.zeros(rt[f32, 64, 64])
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    for k in ww.pipeline(cdiv(a.cols, 64)):
        at = k * 64 + FIRST
        left = ww.load(a, (m * 64, at), st[a.dtype, 64, 64], unit="element")
        right = ww.load(b, (n * 64, at), st[b.dtype, 64, 64], unit="element")
        acc = ww.mma_ABt(acc, left, right)
    ww.store(c, (m * 64, n * 64 + FIRST), acc, unit="element")


@pytest.mark.parametrize(("first", "copied"), [(0, True), (8, True), (4, False), (1, False)])
def test_boxes_of_the_copy_engine_begin_at_multiples_of_16_bytes(first, copied):
    """Else it faults: an illegal instruction on an H200."""
    x = ww.spec("bf16[256,256]")
    built = shifted.compile(x, x, x, FIRST=first, target="nvidia:sm90a", options={"allow_spills": True})
    assert ("tma::load_async(" in built.source) == ("tma::store_async(" in built.source) == copied


@ww.kernel
def looked_up(a: gl, b: gl, c: gl, order: gl):
    """The order of the depth is the sum of a tile: not known before the block has computed it."""
    acc = ww.zeros(rt[f32, 64, 64])
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    start = ww.sum(ww.load(order, 0, ww.rv[ww.i32, 8]), axis=0)
    for k in ww.pipeline(start, cdiv(a.cols, 64)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[bf16, 64, 64]), ww.load(b, (n, k), st[bf16, 64, 64]))
    ww.store(c, (m, n), acc)


def test_attention_overlaps_softmax_with_both_products(scores):
    """The second product is issued behind the next iteration's first one; only then the first one is waited for."""
    assert scores.explain().count("one iteration late") == 2
    for steady in _steady_loops(scores.source):
        order = re.findall(r"(?<=warpgroup::)mma?_r?AB\w*|mma_async_wait<\d>|exp2_\(", steady)
        assert order[:3] == ["mm_ABt", "mma_rAB", "mma_async_wait<1>"]
        assert "exp2_(" in order[: order.index("mma_async_wait<0>")]


def _steady_loops(source: str) -> list[str]:
    """From the head of each consumer loop on."""
    parts = re.split(r"for \(int iteration_\w+ = \(?[1t]", source)[1:]
    assert len(parts) == 2
    return parts


def test_masked_tiles_go_on_where_whole_ones_end(scores):
    """What the first loop leaves over is issued behind the second loop's first product: nothing is in flight twice."""
    whole, masked = re.findall(r"for \(int iteration_\w+ = (.*?); iteration_\w+ < (trips_\w+)", scores.source)[2:4]
    assert whole[0] == "1"
    assert masked[0] == f"({whole[1]} > 0 ? 0 : 1)"
    assert scores.source.count(f"if ({masked[1]} > 0 && !({whole[1]} > 0))") == 1
    assert scores.source.count(f"if ({whole[1]} > 0 || {masked[1]} > 0)") == 1


def test_a_mask_keeps_warps_apart(scores):
    """Indices of rows and of columns are made in their own layouts: none goes through shared memory."""
    loop = scores.resources["hot_loop"]
    assert not set(loop) & {"LDS", "STS", "BAR", "MEMBAR"}


def test_warpgroups_can_take_turns():
    x = ww.spec("bf16[1,2,512,128]")
    apart, turns = (
        attention.compile(x, x, x, x, target="nvidia:sm90a", causal=True, options={"turns": t}) for t in (False, True)
    )
    assert "BAR" not in apart.resources["hot_loop"]
    assert turns.resources["hot_loop"]["BAR"] == 2
    assert "in turns" in turns.explain()


def test_blocks_of_unequal_length_are_paired(scores):
    full = attention.compile(*[ww.spec("bf16[1,2,512,128]")] * 4, target="nvidia:sm90a")
    assert "persistent: all blocks" in full.explain()
    assert "folded_blocks" not in full.source
    assert "long ones are paired with short ones" in scores.explain()
    assert "folded_blocks" in scores.source


def test_blocks_can_share_a_multiprocessor():
    """Each has half of the registers and of the shared memory; the computing warps take no more than it began with."""
    x = ww.spec("bf16[1,2,512,64]")
    options = {"blocks": 2, "overlap": False}
    built = attention.compile(x, x, x, x, target="nvidia:sm90a", BQ=128, BK=64, options=options)
    assert built.resources["blocks_per_sm"] == 2
    assert "KERNEL(384, 2)" in built.source
    began = 384 * built.resources["registers"]
    (computing,), (producer,) = (
        re.findall(rf"{word}_registers<(\d+)>", built.source) for word in ("increase", "decrease")
    )
    assert 256 * int(computing) + 128 * int(producer) <= began


def test_small_products_have_one_warpgroup_and_a_deep_ring():
    x = ww.spec("bf16[1024,1024]")
    small = gemm.compile(x, x, x, target="nvidia:sm90a", transpose_b=True, BM=64, BN=128)
    assert "warps 4 x 1 over 64 x 128" in small.explain()
    assert "through 8 stages by a producer warp" in small.explain()
    assert "R2UR" not in small.resources["hot_loop"]  # descriptors are computed once for the warp


def test_the_second_warpgroup_stays_behind(product):
    """Its last products run while the first one stores; with too few stages it would hold up the first one."""
    assert product.source.count("group<8>::arrive(2)") == 2
    x = ww.spec("bf16[1024,1024]")
    tile = {"transpose_b": True, "BM": 128, "BN": 256}
    for options in ({"lag": 0}, {"stages": 2}):
        built = gemm.compile(x, x, x, target="nvidia:sm90a", options=options, **tile)
        assert "group<8>::arrive(2)" not in built.source


@ww.kernel
def uneven(a: gl, b: gl, c: gl, lengths: gl):
    """How long a block's loop is depends on both coordinates."""
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    acc = ww.zeros(rt[f32, 64, 64])
    for k in ww.pipeline(m + n):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[bf16, 64, 64]), ww.load(b, (n, k), st[bf16, 64, 64]))
    ww.store(c, (m, n), acc)


def test_blocks_of_unknown_length_are_no_persistent_grid():
    x = ww.spec("bf16[64,64]")
    assert "persistent" not in uneven.compile(x, x, x, x, target="nvidia:sm90a").explain()


def test_older_chips_use_the_same_source():
    x = ww.spec("bf16[512,512]")
    built = gemm.compile(x, x, x, target="nvidia:sm80")
    assert built.resources["mix"]["HMMA"] > 0
    assert built.resources["mix"]["LDSM"] > 0
    assert built.resources["mix"]["LDGSTS"] > 0
    assert built.resources["spills"] == 0


def test_rows_leave_registers_for_other_blocks():
    x, w = ww.spec("bf16[65536,2048]"), ww.spec("bf16[2048]")
    built = dropout_residual_layernorm.compile(x, x, x, x, w, w, 1, 0, p=0.1, target="nvidia:sm90a")
    warps = built.program.lowered.threads // 32
    assert built.resources["blocks_per_sm"] * warps >= 32
    assert built.resources["spills"] == 0
    assert f"registers for {32 // warps} blocks a multiprocessor" in built.program.explain()


@pytest.mark.parametrize("overlap", [False, True])
def test_options_are_refused_by_name(overlap):
    x = ww.spec("bf16[512,512]")
    with pytest.raises(ww.UnsupportedError, match="unknown option 'waves'"):
        gemm.compile(x, x, x, target="nvidia:sm90a", options={"waves": 4, "overlap": overlap})


@pytest.mark.parametrize(("size", "blocks"), [(4096, 512), (2048, 128), (3072, 384)])
def test_tiles_fill_the_multiprocessors(size, blocks):
    x = ww.spec(f"bf16[{size},{size}]")
    chosen = constants_for("warpwave.kernels.gemm:gemm", "nvidia:sm90a", {"a": x, "b": x, "c": x})
    assert (chosen["BM"], chosen["BN"]) in dict(TILES["sm90a"])
    assert cdiv_int(size, chosen["BM"]) * cdiv_int(size, chosen["BN"]) == blocks
    assert chosen["BK"] == 64


@pytest.mark.parametrize(
    ("width", "queries", "causal", "tile"),
    [
        (128, 4096, True, (128, 128)),
        (64, 4096, True, (192, 96)),
        (64, 4096, False, (192, 128)),
        (64, 1024, True, (128, 128)),
        (64, 1024, False, (192, 128)),
        (64, 640, False, (128, 128)),
    ],
)
def test_tiles_of_attention(width, queries, causal, tile):
    x = ww.spec(f"bf16[1,1,{queries},{width}]")
    built = attention.compile(x, x, x, x, target="nvidia:sm90a", causal=causal)
    assert (built.constants["BQ"], built.constants["BK"]) == tile
    assert built.resources["spills"] == 0
    assert ("in turns" in built.explain()) == (tile == (192, 96))


def cdiv_int(a: int, b: int) -> int:
    return -(-a // b)
