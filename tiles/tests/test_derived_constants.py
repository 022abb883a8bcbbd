from __future__ import annotations

import pytest

import warpwave as ww
from warpwave import bf16, gl, rt
from warpwave.tiles.runtime.derived import Derived

WIDTH = ww.derived(lambda x: -(-x.shape[-1] // 32) * 32)


@ww.kernel
def widen(x: gl, y: gl, *, D=WIDTH, E=1):
    ww.grid(1)
    ww.store(y, (0, 0), ww.load(x, (0, 0), rt[bf16, 16, D]))


def constants_for(text, **given):
    bound = widen._bind((ww.spec(text), ww.spec(text)), given)
    return widen._constants(bound, object(), "any")


@pytest.mark.parametrize(("extent", "width"), [(1, 32), (32, 32), (33, 64), (40, 64)])
def test_a_derived_constant_follows_the_arguments(extent, width):
    values, origins = constants_for(f"bf16[16,{extent}]")
    assert values == {"D": width, "E": 1}
    assert origins["D"] == "derived from the arguments"


def test_the_call_goes_before_the_derivation():
    values, origins = constants_for("bf16[16,40]", D=128)
    assert values["D"] == 128
    assert origins["D"] == "from the call"


def test_an_unknown_extent_is_an_error_that_names_the_constant():
    with pytest.raises(ww.TileTypeError, match=r"the constant D cannot be derived from x=bf16\[16,\?\]"):
        constants_for("bf16[16,?]")


def test_only_the_named_arguments_are_passed():
    assert Derived(lambda b: b + 1).value("N", {"a": None, "b": 2}) == 3
