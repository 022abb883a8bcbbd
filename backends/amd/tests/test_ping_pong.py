"""Ping-pong products: what a step costs a wave, from simulated launches, and that any interleaving gives the sums."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32, gl, rt, st
from warpwave.backends.amd.assembly import parse
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.tests.harness import assert_allowed
from warpwave.backends.amd.tests.harness import launch as launch_on_copies
from warpwave.backends.amd.tests.harness import program as program_of
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.reference import oracle
from warpwave.tiles.runtime.arrays import borrow

WAVES = 8
DTYPES = {"bf16": ml_dtypes.bfloat16, "fp8e4m3": ml_dtypes.float8_e4m3fn, "fp8e4m3fnuz": ml_dtypes.float8_e4m3fnuz}
# Elements of depth of a step, and of what the baselines are counted per.
CASES = {("gfx950", "bf16"): (64, 64), ("gfx950", "fp8e4m3"): (128, 128), ("gfx942", "bf16"): (32, 64)}
# Instructions of a wave per 64 of depth, 128 for fp8, in HipKittens' loops (f09e968; branch cdna3), clang 22.
BEST = {
    ("gfx950", "bf16"): {"mfma": 64, "ds": 24, "loads": 8, "waits": 5, "barriers": 8, "scalar": 28, "vector": 0},
    ("gfx950", "fp8e4m3"): {"mfma": 32, "ds": 24, "loads": 8, "waits": 5, "barriers": 8, "scalar": 17, "vector": 7},
    ("gfx942", "bf16"): {"mfma": 128, "ds": 64, "loads": 8, "waits": 11, "barriers": 8, "scalar": 21, "vector": 0},
}


@lru_cache
def program(target, dtype, block, transposed=(False, True), narrow=False):
    """The product with 256 x 256 tiles, for operands of a dtype."""
    kind = DTYPES[dtype]
    a, b = (np.zeros((512, 512), kind) for _ in range(2))
    built = gemm.compile(
        a,
        b,
        np.zeros((512, 512), np.float32),
        transpose_a=transposed[0],
        transpose_b=transposed[1],
        BM=256,
        BN=256,
        BK=block,
        target="reference",
    )
    return BACKEND.compile(built.ir, f"amd:{target}", {"schedule": "ping-pong"})


def launch(built, dtype, shape, transposed=(False, True), pitch=0, **how):
    """Run on small integers, whose sums are exact; the report."""
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)

    def array(rows, cols):
        wide = rng.integers(-3, 4, (rows, cols + (-cols % pitch if pitch else 0))).astype(DTYPES[dtype])
        return wide[:, :cols]

    a = array(k, m) if transposed[0] else array(m, k)
    b = array(n, k) if transposed[1] else array(k, n)
    c = np.zeros((m, n), np.float32)
    report = built.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)}, **how)
    left, right = (x.astype(np.float32) for x in (a.T if transposed[0] else a, b.T if transposed[1] else b))
    np.testing.assert_array_equal(c, left @ right)
    return report


@lru_cache
def reports(target, dtype):
    """Of a shorter and a longer loop, eight and twelve times the unit that baselines are counted per."""
    block, unit = CASES[target, dtype]
    built = program(target, dtype, block)
    return tuple(launch(built, dtype, (256, 256, length * unit)) for length in (8, 12))


def step(target, dtype):
    """Executed instructions of one wave per unit of depth."""
    short, long = reports(target, dtype)
    counts = Counter(long.by_mnemonic())
    counts.subtract(short.by_mnemonic())
    return {name: n / (4 * WAVES) for name, n in counts.items() if n}


def classes(counts):
    """Totals by class of instruction."""
    found = Counter()
    for name, n in counts.items():
        kind = "vector" if name.startswith("v_") else "scalar" if name.startswith("s_") else "loads"
        kind = "ds" if name.startswith("ds_") else kind
        kind = {"s_waitcnt": "waits", "s_barrier": "barriers", "s_nop": "nops"}.get(name, kind)
        found["mfma" if "mfma" in name else kind] += n
    return found


@pytest.mark.parametrize(("target", "dtype"), CASES)
def test_no_more_instructions_of_any_class_than_hipkittens(target, dtype):
    found = classes(step(target, dtype))
    found.pop("nops", None)
    best = BEST[target, dtype]
    assert {kind: n for kind, n in found.items() if n > best[kind]} == {}
    assert found["waits"] == (4 if target == "gfx942" else 2)
    assert found["barriers"] == 4


@pytest.mark.parametrize(("target", "dtype"), CASES)
def test_nothing_keeps_bursts_waiting(target, dtype):
    """The loop counts and branches in memory clusters: behind every other barrier a burst begins at once."""
    flow = parse(program(target, dtype, CASES[target, dtype][0]).asm)
    names = [i.mnemonic for i in flow.every_iteration(flow.hot_loop) if i.mnemonic not in ("s_setprio", "s_nop")]
    behind = ["mfma" in after for name, after in pairwise(names) if name == "s_barrier"]
    assert sum(behind) * 2 == len(behind) == names.count("s_barrier")


@pytest.mark.parametrize(("target", "dtype"), CASES)
def test_full_rate_products_and_16_byte_accesses(target, dtype):
    counts = step(target, dtype)
    fast = {"gfx942": "v_mfma_f32_16x16x16_bf16", "bf16": "v_mfma_f32_16x16x32_bf16"}
    assert [name for name in counts if "mfma" in name] == [
        fast.get(target) or fast.get(dtype, "v_mfma_f32_16x16x128_f8f6f4")
    ]
    memory = {name for name in counts if name.startswith(("ds_", "buffer_", "global_", "scratch_"))}
    assert memory == {"ds_read_b128", "buffer_load_dwordx4"} | ({"ds_write_b128"} if target == "gfx942" else set())


@pytest.mark.parametrize(("target", "dtype"), CASES)
def test_registers_and_conflicts(target, dtype):
    built = program(target, dtype, CASES[target, dtype][0])
    assert built.resources["spills"] == built.resources["scratch_bytes"] == built.resources["agprs"] == 0
    assert "v_accvgpr" not in built.asm
    assert all(report.bank_conflicts == 0 for report in reports(target, dtype))


@pytest.mark.parametrize(("target", "dtype"), [case for case in CASES if case[0] == "gfx950"])
def test_no_wait_drains_the_loads_in_flight(target, dtype):
    def drains(report):
        waits = (line for line in report.listing_lines if line.text.startswith("s_waitcnt"))
        return sum(line.executed for line in waits if "vmcnt(0)" in line.text)

    short, long = reports(target, dtype)
    assert drains(long) == drains(short)


@pytest.mark.parametrize(("target", "dtype"), [*CASES, ("gfx942", "fp8e4m3fnuz")])
def test_any_interleaving_and_any_depth(target, dtype):
    """Depths around whole steps and rounds, rows that end inside a tile, several blocks."""
    block = CASES.get((target, dtype), (64, 64))[0]
    built = program(target, dtype, block)
    for seed, depth in enumerate((block // 2, block, block + 16, 3 * block, 5 * block - 32, 9 * block)):
        launch(built, dtype, (256, 256, depth), pitch=16, seed=seed)
    launch(built, dtype, (300, 270, 4 * block + 16), pitch=16, seed=1)


def test_rows_that_cannot_be_moved_16_bytes_at_a_time_go_by_the_default_schedule():
    for target in ("gfx942", "gfx950"):
        launch(program(target, "bf16", CASES[target, "bf16"][0]), "bf16", (256, 256, 257), seed=3)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize("transposed", [(True, False), (False, False)])
def test_operands_whose_depth_runs_across_rows(target, transposed):
    built = program(target, "bf16", CASES[target, "bf16"][0], transposed)
    for seed, depth in enumerate((32, 160, 288)):
        launch(built, "bf16", (256, 256, depth), transposed, seed=seed)


# -- chained products ---------------------------------------------------------------------------------------


@lru_cache
def attention_program(target, causal, keys, width=64):
    """Attention with 8 waves of 32 queries each."""
    spec = [np.zeros((1, 1, 256, width), ml_dtypes.bfloat16)] * 4
    built = attention.compile(
        *spec, np.zeros((1, 1, 256), np.float32), causal=causal, BQ=256, BK=keys, target="reference"
    )
    return program_of(built.ir, target, schedule="ping-pong")


ATTENTION = [("gfx950", 128, True, 64), ("gfx950", 64, False, 128), ("gfx942", 32, False, 64)]
MORE = [
    ("gfx950", 64, True, 64),
    ("gfx950", 64, False, 64),
    ("gfx950", 128, False, 64),
    ("gfx950", 64, True, 128),
    ("gfx942", 32, True, 64),
    ("gfx942", 32, True, 128),
]


@pytest.mark.parametrize(
    ("target", "keys", "causal", "width"),
    [*ATTENTION, *(pytest.param(*case, marks=pytest.mark.sweep) for case in MORE)],
)
def test_attention_with_any_interleaving(target, keys, causal, width):
    """Softmax beside products of the other group and of its own; the second product comes a step late.

    Later keys are larger, so that some steps of a wave rescale what it has accumulated and others do not.
    """
    built = attention_program(target, causal, keys, width)
    rng = np.random.default_rng(keys)
    for seed, (queries, many) in enumerate(((256, 64), (256, 200), (40, 333), (256, 768))):
        q, o = (rng.standard_normal((1, 1, queries, width)).astype(ml_dtypes.bfloat16) for _ in range(2))
        k, v = (rng.standard_normal((1, 1, many, width)) for _ in range(2))
        k[..., many // 2 :, :] *= 3
        k, v = k.astype(ml_dtypes.bfloat16), v.astype(ml_dtypes.bfloat16)
        arguments = {"q": q, "k": k, "v": v, "o": o, "lse": np.zeros((1, 1, queries), np.float32)}
        allowed = oracle(built.kernel, arguments)
        for name, got in launch_on_copies(built, arguments, seed=seed).items():
            assert_allowed(got, allowed[name], f"{name} of {queries} queries, {many} keys on {target}")


@pytest.mark.parametrize(("width", "bursts"), [(64, 2), (128, 4)])
def test_attention_has_a_wait_and_two_barriers_for_each_burst_and_few_vector_instructions(width, bursts):
    """HipKittens' loops have 135 vector instructions where they do not rescale."""
    built = attention_program("gfx950", False, 64, width)
    mix = built.resources["hot_loop"]["each_iteration"]
    steps = mix["mfma"] / (width // 4)
    assert (mix["waits"] / steps, mix["barriers"] / steps) == (bursts, 2 * bursts)
    assert mix["valu"] / steps <= 147
    assert built.resources["spills"] == built.resources["scratch_bytes"] == 0
    assert "accvgpr_moves" not in mix


@lru_cache
def narrow_heads_report(keys):
    """Of attention with 64-wide heads and steps of 128 keys, all of them seen by all queries."""
    q, o = (np.zeros((1, 1, 256, 64), ml_dtypes.bfloat16) for _ in range(2))
    k, v = (np.zeros((1, 1, keys, 64), ml_dtypes.bfloat16) for _ in range(2))
    arrays = {"q": q, "k": k, "v": v, "o": o, "lse": np.zeros((1, 1, 256), np.float32)}
    built = attention_program("gfx950", True, 128)
    return built.simulate({name: borrow(array) for name, array in arrays.items()})


def test_packed_work_waits_for_the_end_of_bursts():
    """It would hold up matrix instructions: no cluster has both. HipKittens' loop has 135 vector instructions."""
    lines = narrow_heads_report(256 + 1280).listing_lines
    rounds = [line.text.split()[0] for line in lines if line.executed == WAVES * 5]
    clusters = [cluster.split() for cluster in " ".join(rounds).split("s_barrier")]
    packed = [cluster for cluster in clusters if any(name.startswith("v_pk_") for name in cluster)]
    assert packed
    assert not [name for cluster in packed for name in cluster if "mfma" in name]
    vector = [name for name in rounds if name.startswith("v_") and "mfma" not in name]
    assert len(vector) / 4 <= 106  # a round is 256 keys
    assert sum(name.startswith("v_pk_") for name in vector) / 4 >= 31


def test_rounds_go_to_the_end_where_all_tiles_are_whole():
    """Each load to LDS is one of a round or of the prologue: none of a step by itself, which computes its addresses."""
    lines = narrow_heads_report(256 + 1280).listing_lines
    executed = {line.executed for line in lines if line.text.startswith("buffer_load") and " lds" in line.text}
    masked = WAVES * 2  # two steps of the diagonal, by the default schedule
    assert executed <= {0, WAVES, masked, WAVES * 5}


def test_the_reasons_say_what_was_generated():
    text = program("gfx950", "fp8e4m3", 128).explain()
    assert "ping-pong of two groups of 4 waves, 2 bursts a step, operands in 2 x 1 parts, 8 + 16 reads" in text


# -- where it does not apply ----------------------------------------------------------------------------


def compiled(kernel, *arrays, **options):
    built = kernel.compile(*arrays, target="reference")
    return BACKEND.compile(built.ir, "amd:gfx950", {"schedule": "ping-pong", **options})


@ww.kernel
def rows_times(x: gl, w: gl, y: gl):
    """A product whose second operand is made in the loop."""
    i = ww.grid(ww.cdiv(x.rows, 128))
    acc = ww.zeros(rt[f32, 128, 128])
    for k in ww.pipeline(ww.cdiv(x.cols, 32)):
        a = ww.load(x, (i, k), st[bf16, 128, 32])
        b = ww.load(w, (0, k), rt[bf16, 128, 32])
        acc = ww.mma_ABt(acc, a, b * 2.0)
    ww.store(y, (i, 0), acc)


@ww.kernel
def normalised(x: gl, w: gl, y: gl):
    """Rows are summed over waves between two products."""
    i = ww.grid(ww.cdiv(x.rows, 128))
    acc = ww.zeros(rt[f32, 128, 128])
    for k in ww.pipeline(ww.cdiv(x.cols, 32)):
        a = ww.load(x, (i, k), st[bf16, 128, 32])
        b = ww.load(w, (0, k), st[bf16, 128, 32])
        acc = ww.mma_ABt(acc, a, b)
        acc = acc - ww.sum(acc, axis=0)[None, :]
    ww.store(y, (i, 0), acc)


def arrays():
    return [np.zeros((128, 128), ml_dtypes.bfloat16)] * 2 + [np.zeros((128, 128), np.float32)]


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (rows_times, {}, "`load` is neither a product nor work on registers"),
        (normalised, {}, "its body exchanges data between waves"),
        (gemm, {"waves": 4}, "it needs 8 waves, there are 4"),
        (gemm, {"stages": 1}, "only one step's tiles fit the LDS"),
    ],
)
def test_a_loop_that_it_does_not_fit_is_named_with_the_reason(kernel, options, message):
    with pytest.raises(UnsupportedError, match=r"schedule='ping-pong' does not apply to this loop") as caught:
        compiled(kernel, *arrays(), **options)
    assert message in str(caught.value)
    assert caught.value.loc is not None


def test_tiles_that_waves_do_not_share_evenly_are_refused():
    """A wait counts what every wave issues."""
    spec = [np.zeros((384, 384), ml_dtypes.bfloat16)] * 2 + [np.zeros((384, 384), np.float32)]
    built = gemm.compile(*spec, transpose_b=True, BM=192, BN=256, target="reference")
    with pytest.raises(UnsupportedError, match=r"the loads of st<bf16, 192x32> are not the same number"):
        program_of(built.ir, "gfx950", schedule="ping-pong")


FORMATS = [
    ("gfx950", "float16", "float32", 64),
    ("gfx950", "float32", "float32", 32),
    ("gfx950", "int8", "int32", 128),
    ("gfx950", "float8_e5m2", "float32", 128),
    ("gfx942", "float8_e4m3fn", "float32", 64),  # which it has no instruction for: as f16
    ("gfx942", "float16", "float32", 32),
    ("gfx942", "float32", "float32", 16),
    ("gfx942", "int8", "int32", 64),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("target", "operand", "result", "block"), FORMATS)
@pytest.mark.parametrize("tile", [(128, 128), (256, 128)])
def test_other_formats_and_tiles(target, operand, result, block, tile):
    """Three batches of products with a bias; operands of small integers, whose sums are exact."""
    kind, rng = np.dtype(getattr(ml_dtypes, operand, operand)), np.random.default_rng(block)
    a, b = (rng.integers(-3, 4, (3, 256, 320)).astype(kind) for _ in range(2))
    bias = rng.integers(-3, 4, 256).astype(result)
    c = np.zeros((3, 256, 256), result)
    built = gemm.compile(a, b, c, bias, transpose_b=True, BM=tile[0], BN=tile[1], BK=block, target="reference")
    code = program_of(built.ir, target, schedule="ping-pong")
    code.simulate({name: borrow(x) for name, x in {"a": a, "b": b, "c": c, "bias": bias}.items()}, seed=block)
    np.testing.assert_array_equal(c, a.astype(result) @ b.astype(result).swapaxes(-1, -2) + bias)


def test_unknown_schedules_are_refused_with_those_there_are():
    with pytest.raises(UnsupportedError, match=r"unknown schedule 'pingpong'") as caught:
        compiled(gemm, *arrays(), schedule="pingpong")
    assert "ping-pong" in str(caught.value)
