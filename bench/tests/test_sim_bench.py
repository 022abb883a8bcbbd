"""The simulator's benchmark: its loops run, and what it promises about time holds in processor time, with room to spare."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim
from warpwave.bench import sim_speed
from warpwave.bench.sim_forms import BODIES, loop_text


@pytest.mark.parametrize("name", sorted(BODIES))
def test_every_measured_form_runs_in_strict_mode(name):
    out = np.zeros(64, np.float32)
    report = sim.load(loop_text(BODIES[name], 2), sim_speed.TARGET).launch("loop", (1,), (64,), [out])
    assert (out == 1).all()
    assert report.instructions > 64


def test_a_kernel_starts_within_fifty_milliseconds():
    times = sim_speed.start_up()
    assert times["load_gemm_ms"] < 50
    assert times["load_and_run_short_kernel_ms"] < 50


def test_a_small_product_takes_less_than_a_tenth_of_a_second():
    measured = sim_speed.gemm(256, threads=1)
    assert measured["processor_s"] < 0.1
