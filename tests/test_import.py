"""What `import warpwave` gives and costs."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys

import warpwave as ww

HEAVY = ("rich", "torch", "cupy", "jax", "numba", "scipy", "pandas", "concurrent.futures.process", "hip", "cuda")


def run(code: str, **variables: str) -> str:
    environment = os.environ | variables
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    ).stdout


def test_import_loads_no_gpu_library_and_no_rich():
    code = "import sys, warpwave; print(*sys.modules)"
    loaded = {name for name in run(code).split() if name.startswith(HEAVY)}
    assert not loaded


def test_a_target_loads_its_own_backend_only():
    code = "import sys; from warpwave.tiles.runtime import registry; registry.resolve('reference'); print(*sys.modules)"
    assert not [name for name in run(code).split() if name.startswith("warpwave.backends")]


def test_import_is_quick(tmp_path):
    """Less than 0.2 s of CPU beyond NumPy's; where a busy machine slows everything, 1.5 times NumPy's own.

    Both from bytecode: compiling the source, as a first import does, costs more than the import.
    """
    code = (
        "import time; a = time.process_time(); import numpy, ml_dtypes; b = time.process_time(); "
        "import warpwave; c = time.process_time(); print(b - a, c - b)"
    )
    bytecode = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    run("import warpwave", **bytecode)
    times = [tuple(map(float, run(code, **bytecode).split())) for _ in range(5)]
    numpy, ours = min(t[0] for t in times), min(t[1] for t in times)
    assert ours < max(0.2, 1.5 * numpy)


def test_all_names_what_exists_once():
    assert len(ww.__all__) == len(set(ww.__all__))
    assert all(hasattr(ww, name) for name in ww.__all__)


def test_star_import_shadows_no_builtin():
    assert not [name for name in ww.__all__ if hasattr(builtins, name)]


def test_ops_named_like_builtins_are_attributes():
    for name in ("abs", "max", "min", "print", "range", "round", "sum"):
        assert getattr(ww, name).__module__.startswith("warpwave.tiles.language")


def test_every_public_op_of_the_language_modules_is_exported():
    from warpwave.tiles.language import control, creation, elementwise, memory, random, reduce

    internal = {"as_tile", "broadcast_shapes", "check_representable", "constant", "index", "is_number", "make_range"}
    internal |= {"natural_dtype", "positive_axis", "promoted_dtype"}
    for module in (control, creation, elementwise, memory, random, reduce):
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and name[0].islower():
                if name[0] == "_" or name in internal:
                    continue
                assert hasattr(ww, name), f"{module.__name__}.{name} is not exported"
