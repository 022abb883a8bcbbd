"""What a target, or what is installed here, cannot do."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import warpwave as ww
from warpwave import f16, f32, gl, rt
from warpwave.tiles.reference import BACKEND as REFERENCE
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Target
from warpwave.tiles.runtime.trials import captured

TOY = Path(__file__).parents[1] / "example_backend" / "src"
SPEC = ww.spec("f32[4,4]")


def with_backend(name, backend, problem=""):
    plugins = {name: registry.Plugin(name, f"{name}-package", backend, problem)}
    return mock.patch.object(registry, "_load", return_value=plugins)


def compile_for_the_toy(function, spec):
    with mock.patch.object(sys, "path", [str(TOY), *sys.path]):
        from warpwave_toy import BACKEND
    with with_backend("toy", BACKEND):
        ww.kernel(function).compile(spec, target="toy")


def op_that_a_target_lacks():
    def k(a: gl):
        ww.store(a, (0, 0), ww.exp(ww.load(a, (0, 0), rt[f32, 4, 4])))  # here

    compile_for_the_toy(k, SPEC)


def dtype_that_a_target_lacks():
    def k(a: gl):
        ww.store(a, (0, 0), ww.load(a, (0, 0), rt[f16, 4, 4]))  # here

    compile_for_the_toy(k, ww.spec("f16[4,4]"))


def configurations_of_which_none_can_be_used():
    def k(a: gl, *, B=4):
        ww.store(a, (0, 0), ww.exp(ww.load(a, (0, 0), rt[f32, B, B])))  # here

    tuned = ww.autotune([ww.Config(B=4), ww.Config(B=8)])(ww.kernel(k))
    with mock.patch.object(sys, "path", [str(TOY), *sys.path]):
        from warpwave_toy import BACKEND
    with with_backend("toy", BACKEND):
        tuned.compile(SPEC, target="toy")


def tuning_while_a_graph_is_captured():
    @ww.autotune([ww.Config(B=4), ww.Config(B=8)])
    @ww.kernel
    def k(a: gl, *, B=4):  # here
        ww.store(a, (0, 0), ww.zeros(rt[f32, B, B]))

    class Clocked(type(REFERENCE)):
        def clock(self, program, arguments):
            return ""

        def measure(self, programs, arguments):
            raise captured()

    with with_backend("reference", Clocked()):
        k.compile(SPEC, target="reference")


def nothing_installed():
    @ww.kernel
    def k(a: gl):  # here
        pass

    with mock.patch.object(registry, "_load", dict):
        k.compile(SPEC, target="reference")


def backend_that_does_not_load():
    @ww.kernel
    def k(a: gl):  # here
        pass

    with with_backend("gpu", None, "ImportError: libgpu.so is not there"):
        k.compile(SPEC, target="gpu:fast")


def missing_compiler():
    class Backend:
        name = "gpu"

        def targets(self):
            return [Target("gpu", "needs a compiler", missing="its compiler", remedy="pip install gpu-compiler")]

        def compile(self, kernel, target, options):
            raise ww.UnsupportedError(
                f"{target} cannot be built here: its compiler was not found", hint="pip install gpu-compiler"
            )

    @ww.kernel
    def k(a: gl):  # here
        pass

    with with_backend("gpu", Backend()):
        k.compile(SPEC, target="gpu")
