"""The comparison can fail: every kind of difference is seen for what it is."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.conformance.verdicts import Level, between, judge, same_bits, worst
from warpwave.tiles.reference import Estimate

INF, NAN = np.inf, np.nan


def estimate(value, bound=0.0):
    value = np.asarray(value, np.float64)
    return Estimate(value, np.broadcast_to(np.asarray(bound, np.float64), value.shape))


@pytest.mark.parametrize(
    ("got", "value", "bound", "level", "beyond"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, "BIT_EXACT", 0),
        ([1.0, 2.0], [1.0, 2.5], 0.5, "WITHIN", 0),
        ([1.0, 2.0], [1.0, 2.5], 0.4, "VIOLATION", 1),
        ([NAN, 2.0], [NAN, 2.0], 0.0, "BIT_EXACT", 0),
        ([NAN, 2.0], [1.0, 2.0], 10.0, "VIOLATION", 1),
        ([1.0], [NAN], 10.0, "VIOLATION", 1),
        ([INF], [INF], 0.0, "BIT_EXACT", 0),
        ([-INF], [INF], 5.0, "VIOLATION", 1),
        ([3e38], [INF], 5.0, "VIOLATION", 1),
        ([INF], [1.0], 5.0, "VIOLATION", 1),
        ([NAN], [1.0], INF, "UNKNOWN", 0),
        ([5.0, 1.0], [7.0, 1.0], [INF, 0.0], "WITHIN", 0),
        ([], [], 0.0, "BIT_EXACT", 0),
    ],
    ids=str,
)
def test_levels(got, value, bound, level, beyond):
    verdict = judge("y", np.array(got, np.float32), estimate(value, bound))
    assert (verdict.level.name, verdict.beyond) == (level, beyond)


def test_the_bits_decide_what_is_bit_exact():
    got = np.float32([1.0, 2.0])
    verdict = judge("y", got, estimate([1.0, 2.0], 0.5), exact=np.float32([1.0, 2.25]))
    assert verdict.level is Level.WITHIN
    assert verdict.bit_exact == 1


def test_an_exact_zero_has_its_sign():
    minus = np.float32([-0.0])
    assert judge("y", minus, estimate([0.0]), exact=np.float32([0.0])).level is Level.VIOLATION
    assert judge("y", minus, estimate([0.0], 0.1), exact=np.float32([0.0])).level is Level.WITHIN
    assert judge("y", minus, estimate([-0.0]), exact=minus).level is Level.BIT_EXACT


def test_the_worst_element_is_the_one_nearest_to_its_own_bound():
    verdict = judge("y", np.float32([[10.0, 1.0], [1.0, 1.5]]), estimate([[0.0, 1.0], [1.0, 1.0]], [[100, 1], [1, 1]]))
    assert verdict.index == (1, 1)
    assert (verdict.error, verdict.ratio) == (0.5, 0.5)


def test_truncation_is_a_drift():
    x = np.random.default_rng(0).uniform(1, 2, 4096)
    nearest, cut = x.astype(np.float32), np.nextafter(x.astype(np.float32), np.float32(0))
    cut = np.where(nearest > x, cut, nearest)
    bound = np.full(x.shape, 2.0**-23)
    assert abs(judge("y", nearest, estimate(x, bound)).drift) < 0.02
    assert judge("y", cut, estimate(x, bound)).drift < -0.4


@pytest.mark.parametrize(
    ("a", "b", "same"), [(0.0, -0.0, False), (NAN, -NAN, True), (1.0, 1.0, True), (1.0, NAN, False), (INF, INF, True)]
)
def test_same_bits(a, b, same):
    assert same_bits(np.float32([a]), np.float32([b]))[0] == same


def test_same_bits_of_integers_beyond_float64():
    big = np.array([2**62, 2**62 + 1])
    assert same_bits(big, np.array([2**62, 2**62])).tolist() == [True, False]


def test_two_targets_may_differ_by_both_bounds():
    a, b = np.float32([1.0]), np.float32([1.5])
    assert between("y", a, b, estimate([1.2], 0.3), estimate([1.2], 0.3)).level is Level.WITHIN
    assert between("y", a, b, estimate([1.2], 0.2), estimate([1.2], 0.2)).level is Level.VIOLATION
    assert between("y", a, a, estimate([1.2], 0.2), estimate([1.2], 0.2)).level is Level.BIT_EXACT


def test_a_nan_on_one_side_only_is_a_violation():
    assert between("y", np.float32([NAN]), np.float32([1]), estimate([1], 9), estimate([1], 9)).level is Level.VIOLATION


def test_worst_of_several():
    assert worst([Level.BIT_EXACT, Level.WITHIN]) is Level.WITHIN
    assert worst([Level.VIOLATION, Level.UNKNOWN]) is Level.VIOLATION
    assert worst([]) is Level.BIT_EXACT


def test_json_has_no_infinities():
    assert judge("y", np.float32([NAN]), estimate([1.0])).as_json() == {
        "output": "y", "level": "violation", "elements": 1, "bit_exact": 0, "beyond": 1, "unknown": 0, "index": [0],
        "got": "nan", "want": 1.0, "error": "inf", "bound": 0.0, "ratio": "inf", "drift": 0.0,
    }  # fmt: skip
