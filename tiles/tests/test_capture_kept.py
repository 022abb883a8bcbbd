"""Captured kernels kept on disk: found again only if capturing again would give the same, whatever has changed."""

from __future__ import annotations

import importlib.util
import linecache
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from warpwave.tiles import disk_cache
from warpwave.tiles.capture import capture, kept, kept_or_captured, portable, source
from warpwave.tiles.dtypes import bf16, f16, f32
from warpwave.tiles.ir.fingerprint import fingerprint
from warpwave.tiles.types import TensorType

TYPES = {"x": TensorType(f32, 2), "y": TensorType(f32, 2)}

SETTINGS = "WIDTH = 32\nTABLE = {'scale': [2.0, 3.0]}\nNUMBERS = [1, 2]\nVOLUME = 0.25\n"

HELPERS = """
import settings

def scaled(tile, factor=2.0, *, shift=1.0):
    return tile * factor + shift

def by_table(tile):
    return tile * settings.TABLE['scale'][0]

def make(limit):
    def clipped(tile):
        return ww.minimum(tile, limit)
    return clipped

import warpwave as ww
CLIPPED = make(4.0)
"""

KERNELS = """
import warpwave as ww
from warpwave import f32, rt
import helpers
import settings
from settings import VOLUME
from helpers import scaled

def kernel(x, y, *, B=32, factor=2.0, function=None):
    i = ww.grid(x.rows)
    tile = ww.load(x, (i, 0), rt[f32, 16, settings.WIDTH])
    tile = helpers.CLIPPED(helpers.by_table(scaled(tile))) * VOLUME * factor
    for n in sorted(settings.NUMBERS, key=lambda v: -v):
        tile = tile + float(n)
    if function is not None:
        tile = function(tile)
    ww.store(y, (i, 0), tile * max(1.0, float(B)))

PAIR = lambda t: t + 1.0, lambda t: t + 2.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path / "cache"))
    for name, text in (("settings", SETTINGS), ("helpers", HELPERS), ("kernels", KERNELS)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture
def captures(monkeypatch):
    """Counts the captures."""
    made = []
    monkeypatch.setattr(kept, "capture", lambda *a: made.append(a) or capture(*a))
    return made


@pytest.fixture
def load(folder, monkeypatch):
    """The modules as another process would import them now."""

    def imported():
        source._find.cache_clear()
        linecache.clearcache()
        for name in ("settings", "helpers", "kernels"):
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            code = compile((folder / f"{name}.py").read_text(), str(folder / f"{name}.py"), "exec")
            exec(code, vars(module))  # not the loader, which takes a compiled file of the same second
        return sys.modules["kernels"]

    return imported


def edit(folder, name, old, new):
    path = folder / f"{name}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def outside(captured):
    return [(d.name, d.frozen) for d in captured.dependencies if not portable.is_ours(d.owner)]


def taken(module, types=TYPES, **constants):
    """The kernel from the cache or captured; it always equals what a capture gives."""
    constants = {"B": 32, "factor": 2.0, "function": None, **constants}
    found = kept_or_captured(module.kernel, types, constants)
    fresh = capture(module.kernel, types, constants)
    assert fingerprint(found.kernel) == fingerprint(fresh.kernel)
    assert found.kernel.constants == constants
    assert outside(found) == outside(fresh)
    assert found.up_to_date()
    return found


def test_a_second_process_captures_nothing(load, captures):
    taken(load())
    taken(load())
    assert len(captures) == 1


CHANGES = {
    "a number of another module": ("settings", "WIDTH = 32", "WIDTH = 64"),
    "a number taken by its name": ("settings", "0.25", "0.5"),
    "an int that becomes an equal float": ("settings", "[1, 2]", "[1, 2.0]"),
    "an int that becomes an equal bool": ("settings", "[1, 2]", "[True, 2]"),
    "a table's content": ("settings", "2.0, 3.0", "2.5, 3.0"),
    "a table's length": ("settings", "2.0, 3.0", "2.0"),
    "a list's order": ("settings", "1, 2", "2, 1"),
    "a helper": ("helpers", "tile * factor + shift", "tile * factor - shift"),
    "a helper's helper": ("helpers", "ww.minimum", "ww.maximum"),
    "a helper's closure": ("helpers", "make(4.0)", "make(5.0)"),
    "a helper's default": ("helpers", "factor=2.0", "factor=2.5"),
    "a helper's keyword default": ("helpers", "shift=1.0", "shift=1.5"),
    "a helper's line": ("helpers", "def by_table", "\n\ndef by_table"),
    "the kernel": ("kernels", "float(n)", "float(-n)"),
    "the kernel's line": ("kernels", "def kernel", "\ndef kernel"),
    "a comment, as texts are compared": ("kernels", "PAIR", "# two\nPAIR"),
    "a built-in that a global hides": ("kernels", "PAIR", "def max(a, b): return a\nPAIR"),
}

HARMLESS = (
    "an int that becomes an equal float",
    "an int that becomes an equal bool",
    "a table's length",
    "a list's order",
    "a comment, as texts are compared",
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_by_the_next_process(load, folder, captures, change):
    first = taken(load())
    edit(folder, *CHANGES[change])
    second = taken(load())
    assert len(captures) == 2
    taken(load())
    assert len(captures) == 2
    assert (fingerprint(first.kernel) == fingerprint(second.kernel)) == (change in HARMLESS)


def hide_a_builtin(m):
    m.max = lambda a, b: a


def change_a_default(m):
    m.scaled.__defaults__ = (7.0,)


def change_a_keyword_default(m):
    m.scaled.__kwdefaults__["shift"] = 7.0


def change_a_cell(m):
    m.helpers.CLIPPED.__closure__[0].cell_contents = 7.0


def replace_a_helper(m):
    m.scaled = m.helpers.by_table


def replace_a_module(m):
    m.settings = type(sys)("settings")
    vars(m.settings).update(vars(sys.modules["settings"]))


RUNNING = (
    lambda m: setattr(m.settings, "WIDTH", 64),
    lambda m: m.settings.NUMBERS.append(5),
    lambda m: m.settings.TABLE.update(scale=[4.0]),
    lambda m: setattr(m, "VOLUME", 3.0),
    lambda m: setattr(m.settings, "NUMBERS", np.array([1, 2])),
    hide_a_builtin,
    change_a_default,
    change_a_keyword_default,
    change_a_cell,
    replace_a_helper,
    replace_a_module,
)


@pytest.mark.parametrize("change", RUNNING, ids=range(len(RUNNING)))
def test_what_a_program_changes_after_its_imports_is_seen(load, captures, change):
    taken(load())
    module = load()
    kept_before = taken(module)
    assert len(captures) == 1
    change(module)
    assert not kept_before.up_to_date() or change is replace_a_module
    taken(module)
    assert len(captures) == 2


def test_a_text_edited_after_its_import_is_not_kept_as_the_new_one(load, folder, captures):
    module = load()
    capture(module.kernel, TYPES, {"B": 32, "factor": 2.0, "function": None})  # parses the files as they are
    edit(folder, "helpers", "tile * factor + shift", "tile * factor - shift")
    kept_or_captured(module.kernel, TYPES, {"B": 32, "factor": 2.0, "function": None})
    taken(load())
    assert len(captures) == 2


def test_constants_are_part_of_the_key(load, captures):
    module = load()
    pair = module.PAIR
    variants = [{"B": b} for b in (32, 64, 32.0, True)] + [{"function": f} for f in pair]
    variants += [{"factor": f} for f in (0.0, -0.0, float("nan"), float("inf"))]
    for _ in range(2):
        for variant in variants:
            taken(module, **variant)
    assert len(captures) == len(variants)


def test_types_parameters_and_surroundings_are_part_of_the_key(load, captures, monkeypatch):
    module = load()
    kinds = [TYPES, {**TYPES, "x": TensorType(f16, 2)}, {**TYPES, "x": TensorType(f32, 3)}, {**TYPES, "x": None}]
    kinds += [{"y": TYPES["y"], "x": TYPES["x"]}]
    places = {kept._place(module.kernel, types, {}) for types in kinds}
    monkeypatch.setattr(kept, "_SURROUNDINGS", ["another version"])
    places.add(kept._place(module.kernel, TYPES, {}))
    assert len(places) == len(kinds) + 1


def test_surroundings_cover_every_module_that_a_capture_runs():
    """In a process that imports the capture alone, and nothing of the runtime."""
    code = """
import sys, types
package = types.ModuleType("warpwave.tiles")  # without running its __init__, which imports everything
import importlib.util
package.__path__ = list(importlib.util.find_spec("warpwave").submodule_search_locations)
package.__path__ = [package.__path__[0] + "/tiles"]
outer = types.ModuleType("warpwave")
outer.__path__ = [package.__path__[0].removesuffix("/tiles")]
sys.modules.update({"warpwave": outer, "warpwave.tiles": package})
import warpwave.tiles.capture.kept as kept
import os
files = {os.path.realpath(path) for path, *_ in kept._SURROUNDINGS[2]}
loaded = {os.path.realpath(m.__file__) for n, m in sys.modules.items() if n.startswith("warpwave.tiles.")}
print(len(loaded), sorted(loaded - files))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    count, rest = done.split(" ", 1)
    assert int(count) > 30
    assert rest.strip() == "[]"


OPEN = """
import functools, operator, os
import numpy as np
import warpwave as ww
from warpwave import f32, rt

class Config:
    width = 32
    def __mul__(self, other):
        return other * 2.0

CONFIG = Config()
ARRAY = np.array([1.0, 2.0])
PARTIAL = functools.partial(lambda a, b: b, 1.0)
GETTER = operator.attrgetter("dtype")

def generated():
    yield 2.0

def hidden():
    return CONFIG.width

def kernel(x, y, *, B=32, factor=2.0, function=None):
    i = ww.grid(x.rows)
    tile = ww.load(x, (i, 0), rt[f32, 16, 32])
    ww.store(y, (i, 0), {})
"""


@pytest.mark.parametrize(
    "expression",
    [
        "CONFIG * tile",
        "tile * CONFIG.width",
        "tile * ARRAY[0]",
        "tile * float(np.float32(2.0))",
        "tile * PARTIAL(2.0)",
        "tile * [*generated()][0]",
        "tile * float(len(os.environ))",
        "tile * float(hash('text') % 7)",
        "tile * float(isinstance(3, Config))",
        "tile * (2.0 if GETTER(tile) == f32 else 1.0)",
        "tile * float(getattr(ww, 'missing', 2.0))",
        "(tile, print('captured'))[0]",
        "tile * float(Config.width)",
        "tile * float(hidden())",
    ],
)
def test_what_another_process_may_see_otherwise_is_captured_there(load, folder, captures, expression):
    (folder / "kernels.py").write_text(OPEN.replace("{}", expression))
    taken(load())
    taken(load())
    assert len(captures) == 2


@pytest.mark.parametrize(
    "expression",
    [
        "tile * float(max(1, 2))",
        "tile * sum(map(lambda v: v * 2.0, [1.0]))",
        "tile * math.sqrt(4.0)",
        "tile * operator.mul(2.0, 3.0)",
        "tile * len(','.join(['a', 'b']))",
        "tile * float(tile.dtype.bits)",
        "tile * (2.0 if isinstance(B, int) else 1.0)",
        "tile * [f * 2.0 for f in (1.0, factor)][1]",
        "ww.cast(tile, DTYPE)",
        "tile * float(sorted({3: 1, 2: 2})[0])",
    ],
)
def test_what_follows_from_its_arguments_is_kept(load, folder, captures, expression):
    text = OPEN.replace("{}", expression).replace("import functools", "import math, functools")
    (folder / "kernels.py").write_text(text + "\nDTYPE = ww.bf16\n")
    types = TYPES if "cast" not in expression else {**TYPES, "y": TensorType(bf16, 2)}
    taken(load(), types)
    taken(load(), types)
    assert len(captures) == 1


@pytest.mark.parametrize("thing", [np.ones(2), np.float32(2.0), object(), np.exp, {"a": object()}], ids=range(5))
def test_a_kernel_with_an_object_for_a_constant_is_not_kept(load, folder, thing):
    kept_or_captured(load().kernel, TYPES, {"B": 32, "factor": 2.0, "function": None, "thing": thing})
    assert not list((folder / "cache").rglob("*.json"))


def test_closures_of_one_kernel_do_not_take_each_others(load, captures):
    module = load()
    for limit in (1.0, 2.0, 1.0):
        taken(module, function=module.helpers.make(limit))
    assert len(captures) == 3  # one file, which the last one wrote
    taken(module, function=module.helpers.make(1.0))
    assert len(captures) == 3


def test_bypassed_neither_reads_nor_writes(load, folder, captures):
    module = load()
    with disk_cache.bypassed():
        taken(module)
        assert not list((folder / "cache").rglob("*.json"))
        taken(module)
    assert len(captures) == 2


@pytest.mark.parametrize("text", [None, "", "{", "{}"])
def test_a_cache_that_cannot_be_read_or_written_is_done_without(load, folder, captures, monkeypatch, text):
    module = load()
    if text is None:
        (folder / "file").write_text("")
        monkeypatch.setenv("WARPWAVE_CACHE", str(folder / "file" / "cache"))
    else:
        taken(module)
        (path,) = (folder / "cache").rglob("*.json")
        path.write_text(text)
    before = len(captures)
    taken(module)
    assert len(captures) == before + 1


def test_attention_is_kept(folder):
    """Attention in two processes: the second one neither parses nor traces."""
    code = """
import sys
from warpwave.tiles.capture import kept, source
from warpwave.kernels.attention import attention
if len(sys.argv) > 1:
    def refuse(*_): raise AssertionError("captured")
    kept.capture = source._functions = refuse
from warpwave.tiles.types import TensorType
from warpwave.tiles.dtypes import bf16
four = {n: TensorType(bf16, 4) for n in "qkvo"} | {"lse": None}
k = kept.kept_or_captured(attention.function, four, dict(causal=True, scale=None, D=128, BQ=128, BK=64))
from warpwave.tiles.ir.fingerprint import fingerprint
import hashlib
print(hashlib.sha256(fingerprint(k.kernel).encode()).hexdigest(), k.up_to_date())
"""
    run = lambda *a: subprocess.run([sys.executable, "-c", code, *a], capture_output=True, text=True, check=True).stdout  # noqa: E731
    first = run()
    assert run("again") == first
    assert first.endswith("True\n")
