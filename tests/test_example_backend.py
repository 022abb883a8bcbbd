"""A third-party backend from its own package, installed into an environment of its own, runs a kernel."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "example_backend"

KERNEL = '''
from __future__ import annotations

import numpy as np
import warpwave as ww
from warpwave import f32, gl, i32, rt, rv


@ww.kernel
def scan(a: gl[f32], c: gl[f32], n: int, *, B=4):
    """c = n * a + row + 10 * column, with a block's columns reversed where n is odd."""
    m = ww.grid(ww.cdiv(c.rows, B))
    rows = ww.cast(ww.iota(rv[i32, B]) + m * B, f32)[:, None]
    for k in range(ww.cdiv(c.cols, B)):
        tile = ww.load(a, (m, k), rt[f32, B, B]) * ww.cast(n, f32)
        if n % 2 == 1:
            tile = -tile
        cols = ww.cast(ww.iota(rv[i32, B]) + k * B, f32)[None, :]
        ww.store(c, (m, k), tile + rows + 10.0 * cols)


@ww.kernel
def exponential(a: gl[f32], c: gl[f32]):
    ww.store(c, (0, 0), ww.exp(ww.load(a, (0, 0), rt[f32, 4, 4])))


@ww.kernel
def halves(a: gl, c: gl):
    ww.store(c, (0, 0), ww.load(a, (0, 0), rt[a.dtype, 4, 4]) * 2)


if __name__ == "__main__":
    a = np.arange(30, dtype=np.float32).reshape(5, 6)[:, ::-1]
    for n in (2, 3):
        c = np.full((5, 6), np.nan, np.float32)
        scan(a, c, n, target="toy")
        sign = -1 if n % 2 else 1
        want = sign * n * a + np.arange(5)[:, None] + 10 * np.arange(6)
        assert np.array_equal(c, want), c
    for kernel, dtype in ((exponential, np.float32), (halves, np.float16)):
        try:
            kernel(np.zeros((4, 4), dtype), np.zeros((4, 4), dtype), target="toy")
        except ww.UnsupportedError as error:
            print(error)
'''


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment that sees this one's packages and has the toy installed."""
    folder = tmp_path_factory.mktemp("toy")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    ours = [p for p in (*site.getsitepackages(), site.getusersitepackages()) if Path(p).is_dir()]
    (packages / "ours.pth").write_text("".join(f"import site; site.addsitedir({p!r})\n" for p in ours))
    source = folder / "source"
    subprocess.run(["cp", "-r", EXAMPLE, source], check=True)
    install = ["install", "--no-index", "--no-build-isolation", "--no-deps", "--quiet", str(source)]
    subprocess.run([python, "-m", "pip", *install], check=True, env={**os.environ, "PIP_NO_CACHE_DIR": "1"})
    (folder / "kernel.py").write_text(KERNEL)
    return folder, python


def run(environment, *arguments):
    folder, python = environment
    return subprocess.run([python, *arguments], cwd=folder, capture_output=True, text=True)


def test_the_toy_runs_a_kernel_and_refuses_what_it_cannot(environment):
    done = run(environment, "kernel.py")
    assert done.returncode == 0, done.stderr
    assert "the toy has no op 'exp'" in done.stdout
    assert "ww.exp(ww.load(a, (0, 0), rt[f32, 4, 4]))" in done.stdout
    assert "the toy has no f16, which 'constant' needs here" in done.stdout


def test_warpwave_targets_lists_it_with_its_owner(environment):
    done = run(environment, "-m", "warpwave.tiles.cli", "targets", "--json")
    assert done.returncode == 0, done.stderr
    (toy,) = [t for t in json.loads(done.stdout)["targets"] if t["name"] == "toy"]
    assert (toy["owner"], toy["runs"]) == ("warpwave-toy", "Python lists")


def test_warpwave_check_compares_it_with_the_oracle(environment):
    arguments = ("kernel.py:scan", "f32[9,10]", "f32[9,10]", "i32=3", "--targets", "toy,reference", "--json")
    done = run(environment, "-m", "warpwave.tiles.cli", "check", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [r["target"] for r in report["cases"][0]["results"]] == ["toy", "reference"]


def test_this_environment_does_not_see_it():
    done = subprocess.run(
        [sys.executable, "-m", "warpwave.tiles.cli", "targets", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "toy" not in [t["name"] for t in json.loads(done.stdout)["targets"]]
