"""The pytest plugin in a project of a user: passes, failures, refusals and options, as pytest reports them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

KERNELS = """
import math
import warpwave as ww
from warpwave import cdiv, f32, gl, rt

@ww.kernel
def scale(x: gl, y: gl, *, B=16, N=64):
    i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, N))
    ww.store(y, (i, j), ww.load(x, (i, j), rt[f32, B, N]) * 2.0)

@ww.kernel
def sums(x: gl, total: gl, *, B=8, N=32):
    i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, N))
    ww.store(total, (0,), ww.sum(ww.load(x, (i, j), rt[f32, B, N]), axis=1))

@scale.samples
def _samples(rng):
    yield {"x": rng.standard_normal((5, 70), "f4"), "y": rng.standard_normal((5, 70), "f4")}
"""


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "-1")
    pytester.makepyfile(kernels=KERNELS)
    return pytester


def run(project, test, *options):
    project.makepyfile(test_it="from warpwave.conformance.testing import conforms\nimport kernels\n" + test)
    return project.runpytest_subprocess("-q", "-p", "no:cacheprovider", *options)


THREE_LINES = """
@conforms(kernels.scale, inputs=["f16[33,100]", "f16[33,100]"])
def test_scale():
    pass
"""


def test_three_lines_check_every_chosen_target(project):
    result = run(project, THREE_LINES, "--conform-targets", "reference,reference:sim", "-vv")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_scale?reference? PASSED*", "*test_scale?reference:sim? PASSED*"])


def test_samples_and_further_checks(project):
    test = """
import numpy as np
@conforms(kernels.scale, laws=[])
def test_scale(result):
    np.testing.assert_array_equal(result.outputs["y"], 2 * result.arguments["x"])
    assert result.target == "reference"
@conforms(kernels.scale, laws=[], N=32)
def test_fails(result):
    assert result.outputs["y"].shape == (1, 1)
"""
    result = run(project, test, "--conform-targets", "reference")
    result.assert_outcomes(passed=1, failed=1)


def test_a_kernel_whose_blocks_race_is_found(project):
    test = """
@conforms(kernels.sums, inputs={"x": "f32[8,64]", "total": "f32[8]"}, values=["normal"])
def test_sums():
    pass
"""
    run(project, test, "--conform-targets", "reference").assert_outcomes(passed=1)  # blocks in order
    result = run(project, test, "--conform-targets", "amd:gfx950:sim")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*race*"])


def test_an_unknown_target_is_a_usage_error(project):
    result = run(project, THREE_LINES, "--conform-targets", "amd:gfx99")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*--conform-targets: there is no target 'amd:gfx99'*"])
