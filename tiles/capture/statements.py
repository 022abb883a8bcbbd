"""Execution of each kind of statement."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from warpwave.tiles.capture.calls import make_function
from warpwave.tiles.capture.expressions import BINARY, truth
from warpwave.tiles.capture.interpreter import NEXT, Flow, Handler, Interpreter
from warpwave.tiles.capture.merge import Mismatch
from warpwave.tiles.capture.regions import run_for, run_if, run_while
from warpwave.tiles.capture.source import assigned_names, contains, escapes_loop
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.language.control import RuntimeRange
from warpwave.tiles.language.handles import Buffer, Tensor, Tile

MAX_UNROLL = 4096

IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **BINARY,
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
}

# -- assignment ---------------------------------------------------------------------------------------


def bind_target(ip: Interpreter, target: ast.expr, value: Any) -> None:
    """Bind an assignment target to a value."""
    if isinstance(target, ast.Name):
        ip.assign(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(ip, target.elts, value)
    elif isinstance(target, ast.Subscript):
        _set_item(ip, target, value)
    else:
        raise CaptureError(
            "kernel code cannot assign attributes of Python objects",
            hint="keep run-time state in local variables, tuples, lists or dicts",
        )


def _unpack(ip: Interpreter, targets: list[ast.expr], value: Any) -> None:
    items = list(value)
    stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    if stars:
        star, tail = stars[0], len(targets) - stars[0] - 1
        if len(items) < len(targets) - 1:
            raise CaptureError(f"cannot unpack {len(items)} values into {len(targets)} targets")
        middle = items[star : len(items) - tail]
        items = [*items[:star], middle, *items[len(items) - tail :]]
        targets = [t.value if isinstance(t, ast.Starred) else t for t in targets]
    if len(items) != len(targets):
        raise CaptureError(f"cannot unpack {len(items)} values into {len(targets)} targets")
    for target, item in zip(targets, items, strict=True):
        bind_target(ip, target, item)


def _set_item(ip: Interpreter, target: ast.Subscript, value: Any) -> None:
    owner, index = ip.eval(target.value), ip.eval(target.slice)
    if not isinstance(owner, list | dict | Tile | Tensor | Buffer):
        raise CaptureError(
            f"kernel code can assign items of lists and dicts only, not of a {type(owner).__name__}",
            hint="arrays captured from outside are compile-time constants; run-time data are kernel arguments",
        )
    owner[index] = value  # type: ignore[index]


def _assign(ip: Interpreter, node: ast.Assign) -> Flow:
    value = ip.eval(node.value)
    for target in node.targets:
        bind_target(ip, target, value)
    return NEXT


def _annotated_assign(ip: Interpreter, node: ast.AnnAssign) -> Flow:
    if node.value is not None:
        bind_target(ip, node.target, ip.eval(node.value))
    return NEXT


def _augmented_assign(ip: Interpreter, node: ast.AugAssign) -> Flow:
    function = IN_PLACE[type(node.op)]
    if isinstance(node.target, ast.Subscript):
        owner, index = ip.eval(node.target.value), ip.eval(node.target.slice)
        if not isinstance(owner, list | dict):
            raise CaptureError(f"cannot update an item of a {type(owner).__name__} in kernel code")
        increment = ip.eval(node.value)
        ip.mark(node)
        owner[index] = function(owner[index], increment)
        return NEXT
    if not isinstance(node.target, ast.Name):
        raise CaptureError("kernel code cannot assign attributes of Python objects")
    current, increment = ip.lookup(node.target.id), ip.eval(node.value)
    ip.mark(node)
    ip.assign(node.target.id, function(current, increment))
    return NEXT


def _delete(ip: Interpreter, node: ast.Delete) -> Flow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            ip.lookup(target.id)
            ip.frame.vars.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            del ip.eval(target.value)[ip.eval(target.slice)]
        else:
            raise CaptureError("kernel code cannot delete attributes")
    return NEXT


# -- simple statements --------------------------------------------------------------------------------


def _expression(ip: Interpreter, node: ast.Expr) -> Flow:
    if not isinstance(node.value, ast.Constant):
        ip.eval(node.value)
    return NEXT


def _define(ip: Interpreter, node: ast.FunctionDef) -> Flow:
    if node.decorator_list:
        raise CaptureError("a function defined in a kernel cannot be decorated")
    ip.assign(node.name, make_function(ip, node, node.name))
    return NEXT


def _assert(ip: Interpreter, node: ast.Assert) -> Flow:
    test = truth(ip.eval(node.test))
    if isinstance(test, Tile):
        raise CaptureError("assert needs a compile-time condition", hint="use ww.check(condition, message)")
    if not test:
        message = ip.eval(node.msg) if node.msg else "assertion failed at compile time"
        raise CaptureError(str(message))
    return NEXT


def _raise(ip: Interpreter, node: ast.Raise) -> Flow:
    if ip.region_depth:
        raise CaptureError(
            "raise under a run-time condition or loop", hint="use ww.check(condition, message) for run-time checks"
        )
    error = ip.eval(node.exc) if node.exc else "raise"
    raise CaptureError(f"the kernel raised at capture: {error}")


def _return(ip: Interpreter, node: ast.Return) -> Flow:
    return Flow("return", ip.eval(node.value) if node.value else None)


def _break(_: Interpreter, __: ast.Break) -> Flow:
    return Flow("break")


def _continue(_: Interpreter, __: ast.Continue) -> Flow:
    return Flow("continue")


def _pass(_: Interpreter, __: ast.stmt) -> Flow:
    return NEXT


# -- control flow -------------------------------------------------------------------------------------


def _if(ip: Interpreter, node: ast.If) -> Flow:
    test = truth(ip.eval(node.test))
    if not isinstance(test, Tile):
        return ip.run(node.body if test else node.orelse)
    escape = escapes_loop(node.body + node.orelse)
    if escape is not None:
        word = type(escape).__name__.lower()
        with ip.located(escape):
            raise CaptureError(
                f"{word} under a run-time condition inside a loop",
                hint="write the rest of the body under an else, or use a while loop with the condition",
            )
    run_if(ip, test, lambda: ip.run(node.body) and None, lambda: ip.run(node.orelse) and None)
    return NEXT


def if_with_return(ip: Interpreter, node: ast.stmt, rest: tuple[ast.stmt, ...]) -> Flow | None:
    """An if outside loops whose branches return: what follows it becomes part of the branches that go on.

    None if `node` is no such statement.
    """
    if not isinstance(node, ast.If) or not contains([node], (ast.Return,)) or ip.frame.loops:
        return None
    test = truth(ip.eval(node.test))
    if not isinstance(test, Tile):
        return ip.run(node.body if test else node.orelse, rest)

    def branch(body: list[ast.stmt]) -> Callable[[], Any]:
        return lambda: ip.run([*body, *rest]).value

    try:
        return Flow("return", run_if(ip, test, branch(node.body), branch(node.orelse)))
    except Mismatch as mismatch:
        raise CaptureError(f"what is returned depends on a run-time condition, but {mismatch}") from None


def _for(ip: Interpreter, node: ast.For) -> Flow:
    iterable = ip.eval(node.iter)
    if isinstance(iterable, RuntimeRange):
        return _run_time_for(ip, node, iterable)
    if isinstance(iterable, Tile):
        iter(iterable)
    with ip.frame.in_loop():
        for count, item in enumerate(iterable):
            if count >= MAX_UNROLL:
                raise CaptureError(
                    f"a compile-time loop is unrolled more than {MAX_UNROLL} times",
                    hint="use ww.range(n) to keep a loop",
                )
            bind_target(ip, node.target, item)
            flow = ip.run(node.body)
            if flow.kind == "break":
                return NEXT
            if flow.kind == "return":
                return flow
    return ip.run(node.orelse)


def _run_time_for(ip: Interpreter, node: ast.For, iterable: RuntimeRange) -> Flow:
    if not isinstance(node.target, ast.Name):
        raise CaptureError("a run-time loop has one simple loop variable")
    _refuse_escape(ip, node)
    body = lambda: _loop_body(ip, node.body)  # noqa: E731
    run_for(ip, iterable, node.target.id, body, assigned_names(node.body))
    return NEXT


def _while(ip: Interpreter, node: ast.While) -> Flow:
    with ip.frame.in_loop():
        for _ in range(MAX_UNROLL):
            test = truth(ip.eval(node.test))
            if isinstance(test, Tile):
                return _run_time_while(ip, node)
            if not test:
                return ip.run(node.orelse)
            flow = ip.run(node.body)
            if flow.kind == "break":
                return NEXT
            if flow.kind == "return":
                return flow
    raise CaptureError(f"a compile-time while runs more than {MAX_UNROLL} times", hint="is its condition ever false?")


def _run_time_while(ip: Interpreter, node: ast.While) -> Flow:
    _refuse_escape(ip, node)
    test = lambda: truth(ip.eval(node.test))  # noqa: E731
    body = lambda: _loop_body(ip, node.body)  # noqa: E731
    run_while(ip, test, body, assigned_names(node.body))
    return NEXT


def _loop_body(ip: Interpreter, body: list[ast.stmt]) -> None:
    with ip.frame.in_loop():
        ip.run(body)


def _refuse_escape(ip: Interpreter, node: ast.For | ast.While) -> None:
    if node.orelse:
        raise CaptureError("else after a run-time loop", hint="put the code after the loop")
    escape = escapes_loop(node.body)
    if escape is None:
        return
    word = type(escape).__name__.lower()
    hints = {
        "break": "use a while loop whose condition says when to stop",
        "continue": "put the rest of the body under an if",
        "return": "store the result in a variable and return it after the loop",
    }
    with ip.located(escape):
        raise CaptureError(f"{word} inside a run-time loop", hint=hints[word])


def _scope_declaration(_: Interpreter, __: ast.stmt) -> Flow:
    return NEXT


STATEMENTS: dict[type[ast.stmt], Handler] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated_assign,
    ast.AugAssign: _augmented_assign,
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.FunctionDef: _define,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _pass,
    ast.Nonlocal: _scope_declaration,
    ast.Global: _scope_declaration,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
}
