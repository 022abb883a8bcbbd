"""Records survive a round trip, and comparing two of them finds what differs and nothing else."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from warpwave.conformance.records import Record, Result, compare, read_record, write_record
from warpwave.conformance.records.against import rerun
from warpwave.conformance.records.compare import Difference, by_pair
from warpwave.conformance.records.kept import SAMPLE, Kept, digest, keep, spread
from warpwave.conformance.records.record import merge
from warpwave.conformance.runners import Outcome, Status, run_case
from warpwave.conformance.suite import make_case
from warpwave.conformance.verdicts import Level, Verdict
from warpwave.tiles.errors import TileValueError
from warpwave.tiles.runtime.kernel import Kernel

EXP = "o0"  # of ops:functions:f32
CASES = ("program:5", "ops:functions:f32", "ops:moves:i32")


@pytest.fixture(scope="module")
def record():
    results = [Result.of(o) for c in CASES for o in run_case(make_case(c), ["reference"])]
    stored = {c: make_case(c).stored for c in CASES}
    return Record({"profile": "quick"}, {"python": "3"}, tuple(results), stored)


def altered(kept, elements):
    return replace(kept, elements=elements, digest=digest(elements))


def changed(record, case, change, target="amd:gfx950"):
    """The record as of another target, with one case's outputs changed."""
    results = []
    for result in record.results:
        outputs = result.outputs
        if result.outcome.case == case:
            outputs = {n: altered(k, change(n, k.elements.copy())) for n, k in outputs.items()}
        results.append(Result(replace(result.outcome, target=target), outputs))
    return replace(record, results=tuple(results))


def levels(comparison):
    return {d.case: d.verdict.level for d in comparison.differences if d.verdict.level is not Level.BIT_EXACT}


def test_a_record_survives_its_file(record, tmp_path):
    write_record(tmp_path / "new" / "r.safetensors", record)
    again = read_record(tmp_path / "new" / "r.safetensors")
    assert (again.run, again.environment, again.complete) == (record.run, record.environment, True)
    assert repr(again.results[0].outcome) == repr(record.results[0].outcome)
    assert [r.outcome.as_json() for r in again.results] == [r.outcome.as_json() for r in record.results]
    for before, after in zip(record.results, again.results, strict=True):
        for name, kept in before.outputs.items():
            assert after.outputs[name].digest == kept.digest
            assert after.outputs[name].elements.tobytes() == kept.elements.tobytes()
    assert again.case("program:5").input_digest() == record.results[0].outcome.inputs
    assert not (tmp_path / "r.safetensors.part").exists()


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"something else")
    with pytest.raises(TileValueError, match="no conformance record"):
        read_record(tmp_path / "x")


def test_equal_records_are_bit_exact(record):
    found = compare(record, changed(record, "", None))
    assert len(found.differences) == sum(len(r.outputs) for r in record.results)
    assert levels(found) == {}
    assert not found.left_out


def test_a_difference_of_one_ulp_in_a_function_is_within_both_bounds(record):
    def nudge(name, x):
        ordinary = (np.abs(x) > 1e-30) & np.isfinite(x) & (x != 1) & (name == EXP)  # e ** 0 is exact
        return np.where(ordinary, np.nextafter(x, np.float32(0)), x)

    found = compare(record, changed(record, "ops:functions:f32", nudge))
    assert levels(found) == {"ops:functions:f32": Level.WITHIN}


def test_a_wrong_bit_of_an_exact_op_is_a_violation(record):
    def flip(_, x):
        x[3] ^= 1
        return x

    found = compare(record, changed(record, "ops:moves:i32", flip))
    assert levels(found) == {"ops:moves:i32": Level.VIOLATION}
    assert found.violations[0].targets == ("reference", "amd:gfx950")


def test_other_inputs_and_missing_cases_are_said_not_compared(record):
    other = changed(record, "", None)
    results = list(other.results)
    results[0] = Result(replace(results[0].outcome, inputs="0"), results[0].outputs)
    results[1] = Result(replace(results[1].outcome, status=Status.REFUSED), {})
    found = compare(record, replace(other, results=tuple(results[:2])))
    assert set(found.left_out) == {"the inputs are not the same", "refused on amd:gfx950", "only in the first record"}
    assert not found.differences


def test_inputs_that_this_version_makes_differently_are_not_compared(record):
    other = changed(record, "ops:functions:f32", lambda _, x: -x)
    stale = [Result(replace(r.outcome, inputs="old"), r.outputs) for r in record.results]
    stale_other = [Result(replace(r.outcome, inputs="old"), r.outputs) for r in other.results]
    found = compare(replace(record, results=tuple(stale)), replace(other, results=tuple(stale_other)))
    assert "this version makes other inputs" in found.left_out


@pytest.mark.parametrize("target", ["nvidia:sm90a", "elsewhere:chip"])
def test_a_library_kernel_of_a_target_that_cannot_be_built_here_is_compared(target, monkeypatch):
    """Its bounds need the kernel with that target's constants, but no compiler for it."""
    monkeypatch.setattr(Kernel, "_build", reference_only(Kernel._build))
    (outcome,) = run_case(make_case("kernel:gemm:0"), ["reference"])
    record = Record({}, {}, (Result.of(outcome),))

    found = compare(record, changed(record, "kernel:gemm:0", lambda _, x: -x, target))
    assert levels(found) == {"kernel:gemm:0": Level.VIOLATION}
    assert not found.left_out


def reference_only(build):
    def checked(self, bound, backend, target, *rest):
        assert target == "reference"
        return build(self, bound, backend, target, *rest)

    return checked


def test_a_record_is_checked_on_targets_here(record):
    here = rerun(record, ["reference"], limit=2)
    assert len(here.results) == 2
    assert compare(record, here).count(Level.BIT_EXACT) == len(compare(record, here).differences) > 0


def test_merging_keeps_the_first_of_each_result(record):
    part = replace(record, results=record.results[:1], environment={"host": "b"}, complete=False)
    merged = merge([record, part])
    assert len(merged.results) == len(record.results)
    assert merged.environment == {"python": "3", "host": "b"}
    assert not merged.complete
    assert [pair for pair, _ in by_pair(compare(record, merged))] == [("reference", "reference")]


# -- what is kept of an output ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (1000, 7)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fnuz, np.int64, np.bool_])
def test_kept_outputs_survive_json(shape, dtype):
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    kept = keep(array)
    again = Kept.from_json(kept.as_json())
    assert (again.dtype, again.shape, again.digest) == (kept.dtype, kept.shape, kept.digest)
    assert again.elements.tobytes() == kept.elements.tobytes()
    assert kept.whole == (kept.elements.size == array.size)
    assert kept.elements.tobytes() == array.reshape(-1)[kept.indices].tobytes()


def test_records_that_hold_other_samples_are_compared_where_both_have_elements(record, monkeypatch):
    def fewer(result):
        outputs = {n: resampled(k, 40) for n, k in result.outputs.items()}
        return Result(replace(result.outcome, target="amd:gfx950"), outputs)

    def resampled(kept, sample):
        if kept.whole:
            return kept
        shared = np.isin(kept.indices, spread(int(np.prod(kept.shape)), sample))
        return replace(kept, elements=-kept.elements[shared], digest="other", sample=sample)

    found = compare(record, replace(record, results=tuple(map(fewer, record.results))))
    assert found.violations
    assert max(d.verdict.elements for d in found.violations) <= 40


def test_a_sample_is_spread_over_a_large_output():
    at = spread(1_000_000, SAMPLE)
    assert SAMPLE * 0.9 < len(at) <= SAMPLE
    assert np.diff(at).max() < 3 * 1_000_000 / SAMPLE


def test_any_nan_has_one_digest_and_signed_zeros_have_two():
    nans = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    assert len({digest(nans[i : i + 1]) for i in range(3)}) == 1
    assert digest(np.array([0.0])) != digest(np.array([-0.0]))


def test_a_problem_is_kept(tmp_path):
    result = Result(Outcome("program:1", "x", Status.ERROR, problem="lost"))
    write_record(tmp_path / "r", Record({}, {}, (result,)))
    assert read_record(tmp_path / "r").results[0].outcome.problem == "lost"


def test_a_difference_that_the_ledger_knows_is_explained():
    """exp2 keeps subnormal results on one side and gives 0 on the other."""
    numbers = {"got": 0.0, "want": 1e-40, "error": 1e-40, "bound": 1e-38, "ratio": 0.5}
    verdict = Verdict("o", 1, 0, 0, (0,), **numbers, level=Level.WITHIN, bit_exact=0, drift=0.0)
    known = Difference("ops:functions:f32", ("exp2", "f32"), ("reference", "amd:gfx950"), verdict)
    assert "subnormal" in known.why
    assert replace(known, label=("exp2", "f16")).why is None
    assert replace(known, verdict=replace(verdict, level=Level.BIT_EXACT)).why is None
