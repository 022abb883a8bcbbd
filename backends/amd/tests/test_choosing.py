"""`schedule="auto"`: what it takes and why, when it gives way to another schedule, and that names are orders."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, st
from warpwave.backends.amd import compilation
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.artifacts import Artifact
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.choosing import Offer, choose, offered
from warpwave.backends.amd.lower import lower as lowering
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import ResourceError, UnsupportedError
from warpwave.tiles.runtime.arrays import borrow

FITTING = {"spills": 0, "scratch_bytes": 0, "vgprs": 200, "agprs": 0, "waves_per_simd": 2}
# Instructions of a wave per 64 of depth in HipKittens' loop (f09e968, 256 x 256, 16x16x32), compiled with clang 22.
BEST = {"mfma": 64, "ds_": 24, "buffer_": 8, "s_waitcnt": 5, "s_barrier": 8, "s_nop": 8, "s_": 28, "v_": 0}


def product(m=256, n=256, step=64, *, dtype="bf16", transpose_a=False, transpose_b=True, **constants):
    specs = [ww.spec(f"{dtype}[?,?]")] * 2 + [ww.spec("f32[?,?]")]
    tiles = {"BM": m, "BN": n, "BK": step}
    return gemm.compile(
        *specs, target="reference", transpose_a=transpose_a, transpose_b=transpose_b, **tiles, **constants
    ).ir


def heads(dtype="bf16", width=128, rows=256, step=64, **constants):
    """Attention."""
    specs = [ww.spec(f"{dtype}[?,?,?,{width}]")] * 4
    return attention.compile(*specs, target="reference", BQ=rows, BK=step, **constants).ir


def captured(kernel):
    return kernel.compile(*[ww.spec("bf16[?,?]")] * 3, target="reference").ir


@ww.kernel
def two_sums(a: gl, b: gl, c: gl):
    """Two products in a loop, none of what became of the other."""
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    first, second = ww.zeros(rt[f32, 64, 64]), ww.zeros(rt[f32, 64, 64])
    for k in ww.pipeline(cdiv(a.cols, 64)):
        rows, columns = ww.load(a, (m, k), st[bf16, 64, 64]), ww.load(b, (n, k), st[bf16, 64, 64])
        first, second = ww.mma_ABt(first, rows, columns), ww.mma_AB(second, rows, columns)
    ww.store(c, (m, n), first + second)


@ww.kernel
def scaled(a: gl, b: gl, c: gl):
    """A product of more than what is loaded."""
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    acc = ww.zeros(rt[f32, 64, 64])
    for k in ww.pipeline(cdiv(a.cols, 64)):
        rows, columns = ww.load(a, (m, k), st[bf16, 64, 64]), ww.load(b, (n, k), st[bf16, 64, 64])
        acc = ww.mma_ABt(acc * 0.5, rows, columns)
    ww.store(c, (m, n), acc)


@lru_cache
def default_program():
    return BACKEND.compile(product(), "amd:gfx950", {})


def run(program, depth):
    """On small integers, whose sums are exact."""
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-3, 4, (256, depth)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    report = program.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    return report


# -- what is taken ------------------------------------------------------------------------------------------


def test_the_default_product_executes_no_more_of_any_class_than_hipkittens():
    """256 x 256 x 64 on gfx950, nothing asked for; each instruction counts for the first class that fits its name."""
    counts = Counter(run(default_program(), 768).by_mnemonic())
    counts.subtract(run(default_program(), 512).by_mnemonic())
    found: Counter[str] = Counter()
    for name, executed in (+counts).items():
        kind = "mfma" if "mfma" in name else next((prefix for prefix in BEST if name.startswith(prefix)), name)
        found[kind] += executed / (8 * 4)  # waves, steps
    assert {kind: n for kind, n in found.items() if n > BEST[kind]} == {}
    assert found["mfma"] == 64


def test_explain_gives_the_schedule_with_the_modelled_figures_of_all():
    text = default_program().explain()
    assert "schedule ping-pong: modelled clocks of 256 x 256 tiles, 4096 deep, alone on a compute unit" in text
    assert all(f"{name} " in text for name in ("ping-pong", "interleave", "multistage"))
    assert "count as the same" not in text
    assert "count as the same" not in offered(product(128, 128), TARGETS["gfx950"], {}).why
    near = offered(product(128, 256), TARGETS["gfx950"], {})  # interleave is modelled 4 % faster
    assert near.names[0] == "ping-pong"
    assert "; within 5% they count as the same" in near.why


def test_fp8_of_the_largest_tiles_does_not_take_the_default_which_spills():
    offer = offered(product(256, 256, 128, dtype="fp8e4m3"), TARGETS["gfx950"], {})
    assert offer.names == ("ping-pong", "interleave", "multistage")


@pytest.mark.parametrize(
    ("target", "tile", "step", "first"),
    [
        ("gfx950", (256, 256), 64, "ping-pong"),
        ("gfx950", (128, 128), 64, "interleave"),
        ("gfx950", (192, 256), 64, "ping-pong"),
        ("gfx950", (64, 64), 64, "multistage"),
        ("gfx942", (256, 256), 32, "ping-pong"),
        ("gfx942", (64, 64), 32, "multistage"),
    ],
)
def test_the_first_choice_by_tile(target, tile, step, first):
    assert offered(product(*tile, step), TARGETS[target], {}).names[0] == first


@pytest.mark.parametrize(
    ("target", "tile", "first"),
    [
        ("gfx950", (256, 64, 128), "ping-pong"),
        ("gfx950", (256, 64, 64), "ping-pong"),
        ("gfx950", (128, 64, 128), "multistage"),
        ("gfx950", (64, 64, 64), "multistage"),
        ("gfx942", (256, 32, 128), "ping-pong"),
        ("gfx942", (64, 64, 64), "multistage"),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_first_choice_of_attention(target, tile, first, causal):
    rows, step, width = tile
    offer = offered(heads("bf16", width, rows, step, causal=causal), TARGETS[target], {})
    assert offer.names[0] == first
    tiles = " x ".join(map(str, tile)) if rows > 64 else "128 x 64 x 64 tiles, the nearest that were modelled"
    assert offer.why.startswith(f"modelled clocks of {tiles}")
    assert ", 4096 deep, alone on a compute unit/of a full one: " in offer.why


def test_figures_of_attention_up_to_a_diagonal_are_others():
    whole, masked = (offered(heads(causal=causal), TARGETS["gfx950"], {}) for causal in (False, True))
    assert whole.names == masked.names
    assert whole.why != masked.why


def test_a_default_call_of_attention_with_many_queries_takes_ping_pong(monkeypatch):
    """What the README says of it; few queries take more blocks of the default schedule. Nothing is built."""
    monkeypatch.setattr(compilation, "find_compiler", lambda: None)
    for shape, rows, schedule in (("4,32,4096,128", 256, "ping-pong"), ("1,8,1024,128", 128, "multistage")):
        kernel = attention.capture(*[ww.spec(f"bf16[{shape}]")] * 4, target="amd:gfx950")
        found = compilation.chosen(kernel, TARGETS["gfx950"], {})
        assert (kernel.constants["BQ"], found.schedule) == (rows, schedule)
        asked = compilation.chosen(kernel, TARGETS["gfx950"], {"schedule": schedule})
        assert found.source == asked.source


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (lambda: product(dtype="f32", step=32), "nothing is modelled with operands of f32"),
        (lambda: product(dtype="fp8e4m3fnuz", step=128), "nothing is modelled with operands of fp8e4m3fnuz"),
        (lambda: heads("f32"), "nothing is modelled with operands of f32"),
        (
            lambda: captured(two_sums),
            "nothing is modelled but loops of one product of the two tiles that they load, and ",
        ),
        (lambda: captured(scaled), "nothing is modelled but loops of one product"),
    ],
)
def test_what_the_model_does_not_speak_about_stays_multistage(kernel, why):
    offer = offered(kernel(), TARGETS["gfx950"], {})
    assert offer.names == ("multistage",)
    assert offer.why.startswith(why)


def test_kernels_without_products_have_no_choice_and_nothing_to_say():
    @ww.kernel
    def doubled(x: gl[f32], y: gl[f32]):
        i = ww.grid(cdiv(x.rows, 16))
        ww.store(y, (i, 0), ww.load(x, (i, 0), rt[f32, 16, 16]) * 2.0)

    kernel = doubled.compile(*[ww.spec("f32[?,?]")] * 2, target="reference").ir
    assert offered(kernel, TARGETS["gfx950"], {}) == Offer(("multistage",))


# -- giving way ---------------------------------------------------------------------------------------------


@ww.kernel
def eighths_by_hand(a: gl, b: gl, c: gl, *, BM=128, BN=128, BK=64):
    """A product whose user wants eight waves, two by four."""
    m, n = ww.grid(cdiv(c.rows, BM), cdiv(c.cols, BN))
    acc = ww.zeros(rt[f32, BM, BN], over=(2, 4))
    for k in ww.pipeline(cdiv(a.cols, BK)):
        rows = ww.load(a, (m, k), st[bf16, BM, BK])
        columns = ww.load(b, (n, k), st[bf16, BN, BK])
        acc = ww.mma_ABt(acc, rows, columns)
    ww.store(c, (m, n), acc)


def reasons(program):
    return [r for r in program.artifact.reasons if r.startswith(("schedule", "not "))]


def test_eight_waves_rule_out_interleave_which_is_told_kept_and_computes_right(tmp_path, monkeypatch):
    """The next choice is taken; from the disk cache nothing is tried again."""
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    tried: list[str] = []
    lower = lowering.lower
    monkeypatch.setattr(lowering, "lower", lambda k, t, o: tried.append(o["schedule"]) or lower(k, t, o))
    first = BACKEND.compile(product(128, 128), "amd:gfx950", {"waves": 8})
    assert tried == ["interleave", "ping-pong"]
    head, note = reasons(first)
    assert head.startswith("schedule ping-pong: modelled clocks of 128 x 128 tiles")
    assert note == "not interleave: schedule='interleave' does not apply to this loop: it needs 4 waves, there are 8"
    assert note in first.explain()
    tried.clear()
    again = BACKEND.compile(product(128, 128), "amd:gfx950", {"waves": 8})
    assert tried == []
    assert again.artifact == first.artifact
    run(again, 256)


def test_a_single_stage_leaves_the_default_which_computes_right():
    program = BACKEND.compile(product(128, 128), "amd:gfx950", {"stages": 1})
    assert [reason.split(":")[0] for reason in reasons(program)] == [
        "schedule multistage",
        "not interleave",
        "not ping-pong",
    ]
    run(program, 256)


def test_what_the_kernel_fixes_rules_out_others():
    """Eight waves by `over=`: four waves cannot have it."""
    program = eighths_by_hand.compile(*[ww.spec("bf16[?,?]")] * 2, ww.spec("f32[?,?]"), target="amd:gfx950:sim").program
    head, note = reasons(program)
    assert head.startswith("schedule ping-pong: modelled clocks of 128 x 128 tiles")
    assert note.startswith("not interleave: over=(2, 4) asks for 8 waves, the kernel has 4")
    run(program, 192)


def artifact(schedule, resources=None):
    return Artifact("source", "built", 8, 0, (f"lowered {schedule}",), (), (), resources, schedule)


def made(**outcomes):
    """A maker that gives what it is told for each schedule, and notes what it was asked for."""
    asked = []

    def make(name):
        asked.append(name)
        outcome = outcomes[name.replace("-", "_")]
        if isinstance(outcome, Exception):
            raise outcome
        return artifact(name, outcome)

    return make, asked


OFFER = Offer(("ping-pong", "interleave", "multistage"), "figures")
SPILLING = {**FITTING, "spills": 7, "scratch_bytes": 32}
CROWDED = {**FITTING, "vgprs": 256, "agprs": 256, "waves_per_simd": 0}


def test_the_first_that_fits_is_taken_and_no_other_is_made():
    make, asked = made(ping_pong=FITTING)
    assert choose(OFFER, make).reasons == ("schedule ping-pong: figures", "lowered ping-pong")
    assert asked == ["ping-pong"]


def test_every_kind_of_refusal_is_told_and_its_code_is_not_used():
    make, asked = made(ping_pong=UnsupportedError("it needs 8 waves"), interleave=SPILLING, multistage=FITTING)
    found = choose(OFFER, make)
    assert (found.schedule, asked) == ("multistage", ["ping-pong", "interleave", "multistage"])
    assert found.reasons == (
        "schedule multistage: figures",
        "not ping-pong: it needs 8 waves",
        "not interleave: 7 registers spill to 32 bytes of scratch a lane",
        "lowered multistage",
    )


def test_waves_that_do_not_fit_and_lds_that_overflows_are_refusals_too():
    make, _ = made(ping_pong=CROWDED, interleave=ResourceError("needs 1 byte too many\n  table"), multistage=FITTING)
    assert choose(OFFER, make).reasons[1:3] == (
        "not ping-pong: 8 waves of 512 registers do not fit one CU",
        "not interleave: needs 1 byte too many",
    )


def test_if_nothing_fits_the_error_is_that_of_the_default():
    make, _ = made(ping_pong=SPILLING, interleave=UnsupportedError("no"), multistage=ResourceError("too large"))
    with pytest.raises(ResourceError, match="too large"):
        choose(OFFER, make)
    make, _ = made(ping_pong=SPILLING, interleave=UnsupportedError("no"), multistage=SPILLING)
    assert choose(OFFER, make).schedule == "multistage"  # which the gate refuses, unless spills are allowed


def test_other_errors_are_not_swallowed():
    make, _ = made(ping_pong=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        choose(OFFER, make)


# -- the disk cache, names, and who else looks at a lowering ------------------------------------------------


def test_a_name_is_an_order():
    with pytest.raises(UnsupportedError, match="needs 8 waves"):
        BACKEND.compile(product(128, 128), "amd:gfx950", {"waves": 2, "schedule": "ping-pong"})
    assert offered(product(), TARGETS["gfx950"], {"schedule": "multistage"}) == Offer(("multistage",))
    assert offered(product(), TARGETS["gfx950"], {"schedule": "interleave"}) == Offer(("interleave",))


def test_without_a_compiler_the_lowering_decides(monkeypatch):
    monkeypatch.setattr(compilation, "find_compiler", lambda: None)
    assert compilation.chosen(product(), TARGETS["gfx950"], {}).schedule == "ping-pong"


def test_charts_and_layouts_are_of_the_schedule_that_is_taken():
    (chart,) = BACKEND.schedules(product(), "amd:gfx950", {})
    assert "ping-pong" in chart.text
    assert BACKEND.schedules(product(64, 64), "amd:gfx950", {}) == []
    settled = compilation.settled(product(), TARGETS["gfx950"], {"stages": 2})
    assert settled == {"stages": 2, "schedule": "ping-pong"}


@pytest.mark.sweep
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lse", [False, True])
@pytest.mark.parametrize(
    ("target", "dtype", "width"),
    [("gfx950", d, w) for d, w in (("bf16", 128), ("bf16", 64), ("f16", 128), ("f16", 64), ("bf16", 32))]
    + [("gfx942", d, w) for d, w in (("bf16", 128), ("f16", 128), ("bf16", 64))],
)
def test_whatever_attention_is_suggested_can_be_built_as_offered(target, dtype, width, lse, causal):
    """Figures are of one variant, of bf16 with lse: others have about as many registers, which must not be too many."""
    whole = [ww.spec(f"{dtype}[4,32,4096,{width}]")] * 4
    specs = [*whole, ww.spec("f32[?,?,?]")] if lse else whole
    program = attention.compile(*specs, causal=causal, target=f"amd:{target}:sim").program
    assert program.artifact.schedule == offered(program.kernel, TARGETS[target], {}).names[0]
