"""The calibrated rates of the grid model: fitted to every third shape of a published record of one MI355X.

`python -m warpwave.bench.grid_model.fit` finds them again. What is published (cache sizes, clocks, bandwidths,
latencies) stands in `arch.py` and in the AMD backend's `rates.py` and is not fitted.
"""

from __future__ import annotations

from warpwave.backends.amd.model.grid import Rates, Work

CALIBRATED = Rates(
    work={"multistage": Work(0.02756, 1.01, 1.291), "ping-pong": Work(0.1121, 0.8168, 0.8975)},
    launch=2.529,
    round=1.654,
    heat=0.3301,
    shared=0.8409,
    hbm_efficiency=0.7683,
    stored=0.2891,
    overlap=3.99,
    narrow_lds=1.888,
    streaming=1.347,
)
