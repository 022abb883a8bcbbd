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


TESTS = """
import numpy as np

@conforms(kernels.scale, inputs=["f16[33,100]", "f16[33,100]"])
def test_three_lines():
    pass

@conforms(kernels.scale, laws=[])
def test_samples(result):
    np.testing.assert_array_equal(result.outputs["y"], 2 * result.arguments["x"])
    assert result.target == "reference"

@conforms(kernels.scale, laws=[], N=32)
def test_further_check(result):
    assert result.outputs["y"].shape == (1, 1)

@conforms(kernels.sums, inputs={"x": "f32[8,64]", "total": "f32[8]"}, values=["normal"], laws=["repeat"])
def test_racing():
    pass
"""


def test_kernels_of_a_project_are_checked(project):
    result = run(project, TESTS, "--conform-targets", "reference", "-vv")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*test_three_lines?reference? PASSED*", "*test_further_check?reference? FAILED*"])


def test_a_kernel_whose_blocks_race_is_found(project):
    """On the reference, blocks run in order, and its sum is that of the last one."""
    result = run(project, TESTS, "--conform-targets", "amd:gfx950:sim", "-k", "racing")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(["*race*"])


def test_an_unknown_target_is_a_usage_error(project):
    result = run(project, TESTS, "--conform-targets", "amd:gfx99")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*--conform-targets: there is no target 'amd:gfx99'*"])
