"""Memory that was never written: what reads of it taint, and what a store or a relaxed check changes."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile

KERNELS = """
#include "common.h"
extern "C" {
GLB void copy(u32* to, const u32* from) { to[tid()] = from[tid()]; }
GLB void ignore(u32* to, const u32* from) { u32 x = from[tid()]; asm volatile("" :: "v"(x)); to[tid()] = tid(); }
GLB void bytes(u32* to, const u8* from) { to[tid()] = from[4 * tid() + 1]; }
GLB void store_then_load(u32* x) { x[tid()] = tid(); sync(); x[tid()] = x[tid()] + 1; }
GLB void count(u32* x) { __hip_atomic_fetch_add(x, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
GLB void scalar(u32* to, const u32* from) { to[tid()] = from[bid()]; }
GLB void index(u32* to, const u32* from) { to[from[tid()] & 63] = 0; }
GLB void branch(u32* to, const u32* from) { if (from[0]) to[tid()] = 1; }
GLB void WG(64) through_lds(u32* to, const u32* from) {
  SHM u32 lds[64];
  lds[tid()] = from[tid()]; sync(); to[tid()] = lds[63 - tid()];
}
}
"""


@pytest.fixture(scope="module", params=_compile.TARGETS)
def program(request, tmp_path_factory):
    source = tmp_path_factory.mktemp("undefined") / "undefined.hip"
    source.write_text(KERNELS)
    return sim.load(_compile.hip(source, request.param))


def run(program, kernel, *arguments, **options):
    return program.launch(kernel, (1,), (64,), list(arguments), **options)


@pytest.mark.parametrize("kernel", ["copy", "scalar", "index", "branch", "through_lds"])
def test_use_of_memory_never_written_stops(program, kernel):
    out, nothing = np.zeros(64, np.uint32), sim.undefined(64, np.uint32)
    with pytest.raises(sim.SimError) as stopped:
        run(program, kernel, out, nothing)
    assert stopped.value.kind == "uninit"
    run(program, kernel, out, np.ones(64, np.uint32))


def test_a_value_that_goes_nowhere_is_no_error(program):
    out = np.zeros(64, np.uint32)
    run(program, "ignore", out, sim.undefined(64, np.uint32))
    assert np.array_equal(out, np.arange(64))


def test_single_bytes_are_followed(program):
    out, nothing = np.zeros(64, np.uint32), sim.undefined(256, np.uint8)
    with pytest.raises(sim.SimError) as stopped:
        run(program, "bytes", out, nothing)
    assert stopped.value.kind == "uninit"


def test_stores_define(program):
    x = sim.undefined(64, np.uint32)
    run(program, "store_then_load", x)
    assert np.array_equal(x, np.arange(64) + 1)


def test_atomics_need_a_value_to_start_from(program):
    with pytest.raises(sim.SimError, match="atomic on memory that was never written"):
        run(program, "count", sim.undefined(1, np.uint32))
    one = np.zeros(1, np.uint32)
    run(program, "count", one)
    assert one[0] == 64


def test_the_check_can_be_relaxed(program):
    out = np.ones(64, np.uint32)
    run(program, "copy", out, sim.undefined(64, np.uint32), relax=["uninit"])
    assert not out.any()
