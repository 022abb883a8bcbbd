"""Loops, branches and helper functions around other statements."""

from __future__ import annotations

from collections.abc import Callable

from warpwave.conformance.programs.choose import pick
from warpwave.conformance.programs.model import Block, Helper, Let, Var
from warpwave.conformance.programs.writer import FLOATS, Writer
from warpwave.tiles.dtypes import DType, f32, i32

Production = Callable[[Writer], None]
MERGES = {
    "float": ("{0} * 0.5 + {1}", "ww.maximum({0}, {1})", "{0} - {1}", "{1}"),
    "int": ("{0} ^ {1}", "{0} + {1}", "{1}"),
    "bool": ("{0} & {1}", "{0} ^ {1}", "{1}"),
}


def _rebind(w: Writer, var: Var) -> None:
    """Give `var` a value that depends on what was computed last."""
    other = w.like(var.dtype, var.shape)
    w.rebind(var, pick(w.chooser, MERGES[var.dtype.kind]), (var, other))


def _carried(w: Writer) -> list[Var]:
    found = [v for v in w.having() if v.shape and not v.dtype.is_fp8]
    if not found:
        return [w.load(f32, w.shape())]
    return [pick(w.chooser, found) for _ in range(w.integer(1, 2))]


def loop(w: Writer, statement: Production) -> None:
    """A counted loop, a pipeline or a while; its count may be 0 or depend on the block."""
    carried = _carried(w)
    count = w.pick("2", "1", "3", f"{w.grid[0]} + 1", f"{w.grid[-1]}")
    kind = w.pick("ww.range", "range", "ww.pipeline", "while")
    name = w.fresh("k")
    with w.inner() as body:
        if kind == "while":
            body.append(Let(Var(name, i32), f"{name} - 1"))
        for _ in range(w.integer(1, 2)):
            statement(w)
        for var in carried:
            _rebind(w, var)
    if kind == "while":
        w.append(Block(f"while {name} > 0", tuple(body), before=(f"{name} = {count}",)))
    else:
        w.append(Block(f"for {name} in {kind}({count})", tuple(body)))
    w.read.update(v.name for v in carried)
    w.features.add("while" if kind == "while" else "loop")


def branch(w: Writer, statement: Production) -> None:
    """One of two bodies, by a scalar that is known exactly."""
    (carried, *_) = _carried(w)
    tensor = pick(w.chooser, w.tensors) if w.tensors else None
    options = [f"{w.grid[0]} % 2 == 0", f"{w.grid[-1]} < 1", f"{w.grid[0]} == 0 or {w.grid[-1]} > 1"]
    options += [f"{tensor.name}.cols > 16"] if tensor else []
    condition = w.pick(*options)
    with w.inner() as body:
        statement(w)
        _rebind(w, carried)
    with w.inner() as orelse:
        if w.chance(50):
            statement(w)
            _rebind(w, carried)
    w.append(Block(f"if {condition}", tuple(body), orelse=tuple(orelse)))
    w.features.add("if")


def call(w: Writer, statement: Production) -> None:
    """A helper function with a body of its own, called on a tile."""
    x = w.some(FLOATS)
    parameters = (Var("p", x.dtype, x.shape), Var("q", i32))
    outer, w.scope = w.scope, list(parameters)
    name = w.fresh("helper")
    tensors, grid = w.tensors, w.grid
    with w.inner() as body:
        w.tensors, w.grid = [], ("q",)
        _helper_body(w, parameters[0])
        result = Var("p", x.dtype, x.shape)
    w.tensors, w.grid, w.scope = tensors, grid, outer
    w.helpers.append(Helper(name, parameters, tuple(body), result))
    for _ in range(w.integer(1, 2)):
        w.let(f"{name}({{0}}, {grid[0]})", (x,), x.dtype, x.shape)
    w.features.add("helper")


def _helper_body(w: Writer, p: Var) -> None:
    dtype: DType = p.dtype
    y = w.let(w.pick("{0} * 2.0", "ww.abs({0})", "ww.relu({0}) - 1.0", "ww.tanh({0})"), (p,), dtype, p.shape)
    with w.inner() as body:
        w.rebind(p, w.pick("{1} + {0}", "ww.minimum({0}, {1})", "{1}"), (p, y))
    with w.inner() as orelse:
        w.rebind(p, w.pick("{0} - 0.25", "{1}"), (p, y))
    w.append(Block(w.pick("if q > 0", "if q % 2 == 0"), tuple(body), orelse=tuple(orelse)))
