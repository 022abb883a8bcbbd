"""What a statement binds: names, unpacking, items of lists and dicts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from warpwave.tiles.capture.interpreter import Interpreter
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.language.handles import Buffer, Tensor, Tile

IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.MatMult: operator.imatmul,
}


def bind(ip: Interpreter, target: ast.expr, value: Any) -> None:
    """Bind an assignment target to a value."""
    if isinstance(target, ast.Name):
        ip.assign(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(ip, target.elts, value)
    elif isinstance(target, ast.Subscript):
        owner, index = ip.eval(target.value), ip.eval(target.slice)
        _require_items(owner, target)
        owner[index] = value
    else:
        raise _attribute_refused(target)


def update(ip: Interpreter, node: ast.AugAssign) -> None:
    """`target op= value`: the old value is read first, and a list changes in place, as in Python."""
    function = IN_PLACE[type(node.op)]
    if isinstance(node.target, ast.Name):
        ip.binding_frame(node.target.id)  # refuse an outside name before its object is changed
        old = ip.lookup(node.target.id)
        ip.assign(node.target.id, _combine(ip, node, function, old))
    elif isinstance(node.target, ast.Subscript):
        owner, index = ip.eval(node.target.value), ip.eval(node.target.slice)
        _require_items(owner, node.target)
        owner[index] = _combine(ip, node, function, owner[index])
    else:
        raise _attribute_refused(node.target)


def delete(ip: Interpreter, target: ast.expr) -> None:
    """`del target`."""
    if isinstance(target, ast.Name):
        ip.lookup(target.id)
        del ip.binding_frame(target.id).vars[target.id]
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            delete(ip, part)
    elif isinstance(target, ast.Subscript):
        owner, index = ip.eval(target.value), ip.eval(target.slice)
        _require_items(owner, target)
        del owner[index]
    else:
        raise _attribute_refused(target)


def _combine(ip: Interpreter, node: ast.AugAssign, function: Callable[[Any, Any], Any], old: Any) -> Any:
    increment = ip.eval(node.value)
    ip.mark(node)
    return function(old, increment)


def _unpack(ip: Interpreter, targets: list[ast.expr], value: Any) -> None:
    items = list(value)
    stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    if len(items) < len(targets) - 1 or (not stars and len(items) != len(targets)):
        raise CaptureError(f"cannot unpack {len(items)} values into {len(targets)} targets")
    if stars:
        star, tail = stars[0], len(targets) - stars[0] - 1
        middle = items[star : len(items) - tail]
        items = [*items[:star], middle, *items[len(items) - tail :]]
        targets = [t.value if isinstance(t, ast.Starred) else t for t in targets]
    for target, item in zip(targets, items, strict=True):
        bind(ip, target, item)


def _require_items(owner: Any, target: ast.expr) -> None:
    if not isinstance(owner, list | dict | Tile | Tensor | Buffer):
        raise CaptureError(
            f"kernel code can change items of lists and dicts only, not of a {type(owner).__name__}",
            hint="arrays captured from outside are compile-time constants; run-time data are kernel arguments",
        )


def _attribute_refused(target: ast.expr) -> CaptureError:
    name = target.attr if isinstance(target, ast.Attribute) else "..."
    return CaptureError(
        f"kernel code cannot change the attribute {name!r} of a Python object",
        hint="keep run-time state in local variables, tuples, lists, dicts or dataclasses that are made anew",
    )
