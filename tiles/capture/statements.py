"""Execution of each kind of statement."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from warpwave.tiles.capture import targets
from warpwave.tiles.capture.calls import make_function
from warpwave.tiles.capture.expressions import test
from warpwave.tiles.capture.interpreter import NEXT, Flow, Interpreter, StatementHandler
from warpwave.tiles.capture.merge import Mismatch
from warpwave.tiles.capture.regions import run_for, run_if, run_while
from warpwave.tiles.capture.source import assigned_names, contains, escapes_loop, may_have_effects
from warpwave.tiles.capture.state import Snapshot
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.ir import Block
from warpwave.tiles.language.control import RuntimeRange
from warpwave.tiles.language.handles import Tile

MAX_UNROLL = 4096

Rest = tuple[ast.stmt, ...]

# -- simple statements --------------------------------------------------------------------------------


def _assign(ip: Interpreter, node: ast.Assign, _: Rest) -> Flow:
    value = ip.eval(node.value)
    for target in node.targets:
        targets.bind(ip, target, value)
    return NEXT


def _annotated_assign(ip: Interpreter, node: ast.AnnAssign, _: Rest) -> Flow:
    if node.value is not None:
        targets.bind(ip, node.target, ip.eval(node.value))
    return NEXT


def _augmented_assign(ip: Interpreter, node: ast.AugAssign, _: Rest) -> Flow:
    targets.update(ip, node)
    return NEXT


def _delete(ip: Interpreter, node: ast.Delete, _: Rest) -> Flow:
    for target in node.targets:
        targets.delete(ip, target)
    return NEXT


def _expression(ip: Interpreter, node: ast.Expr, _: Rest) -> Flow:
    if not isinstance(node.value, ast.Constant):
        ip.eval(node.value)
    return NEXT


def _define(ip: Interpreter, node: ast.FunctionDef, _: Rest) -> Flow:
    if node.decorator_list:
        raise CaptureError("a function defined in a kernel cannot be decorated", hint="define it outside the kernel")
    ip.assign(node.name, make_function(ip, node, node.name))
    return NEXT


def _assert(ip: Interpreter, node: ast.Assert, _: Rest) -> Flow:
    known = test(ip, node.test)
    if isinstance(known, Tile):
        raise CaptureError("assert needs a compile-time condition", hint="use ww.check(condition, message)")
    if not known:
        message = ip.eval(node.msg) if node.msg else "assertion failed at compile time"
        raise CaptureError(str(message))
    return NEXT


def _raise(ip: Interpreter, node: ast.Raise, _: Rest) -> Flow:
    error = ip.eval(node.exc) if node.exc else "raise"
    if ip.regions:
        raise CaptureError(
            f"raise under a run-time condition or loop: {error}",
            hint="use ww.check(condition, message) for run-time checks",
        )
    raise CaptureError(f"the kernel raised at capture: {error}")


def _return(ip: Interpreter, node: ast.Return, _: Rest) -> Flow:
    return Flow("return", ip.eval(node.value) if node.value else None)


def _break(_: Interpreter, __: ast.Break, ___: Rest) -> Flow:
    return Flow("break")


def _continue(_: Interpreter, __: ast.Continue, ___: Rest) -> Flow:
    return Flow("continue")


def _nothing(_: Interpreter, __: ast.stmt, ___: Rest) -> Flow:
    return NEXT


# -- branches -----------------------------------------------------------------------------------------


def _if(ip: Interpreter, node: ast.If, rest: Rest) -> Flow:
    known = test(ip, node.test)
    if not isinstance(known, Tile):
        return ip.run(node.body if known else node.orelse, rest)
    if contains([node], (ast.Return,)) and not ip.frame.loops:
        return _if_with_return(ip, node, known, rest)
    escape = escapes_loop(node.body + node.orelse)
    if escape is not None:
        word = type(escape).__name__.lower()
        with ip.located(escape):
            raise CaptureError(
                f"{word} under a run-time condition inside a loop",
                hint="write the rest of the body under an else, or use a while loop with the condition",
            )
    run_if(ip, known, lambda: ip.run(node.body) and None, lambda: ip.run(node.orelse) and None)
    return NEXT


def _if_with_return(ip: Interpreter, node: ast.If, condition: Tile, rest: Rest) -> Flow:
    """An if outside loops whose branches return: what follows it becomes part of the branches that go on."""

    def branch(body: list[ast.stmt]) -> Callable[[], Any]:
        return lambda: ip.run([*body, *rest]).value

    try:
        return Flow("return", run_if(ip, condition, branch(node.body), branch(node.orelse)))
    except Mismatch as mismatch:
        raise CaptureError(
            f"what is returned depends on a run-time condition, but {mismatch}",
            hint="return values of one type from all paths",
        ) from None


# -- loops --------------------------------------------------------------------------------------------


def _for(ip: Interpreter, node: ast.For, rest: Rest) -> Flow:
    iterable = ip.eval(node.iter)
    if isinstance(iterable, RuntimeRange):
        return _run_time_for(ip, node, iterable)
    with ip.frame.in_loop():
        for count, item in enumerate(iterable):
            if count >= MAX_UNROLL:
                raise CaptureError(
                    f"a compile-time loop is unrolled more than {MAX_UNROLL} times",
                    hint="use ww.range(n) to keep a loop",
                )
            targets.bind(ip, node.target, item)
            flow = ip.run(node.body)
            if flow.kind == "break":
                return NEXT
            if flow.kind == "return":
                return flow
    return ip.run(node.orelse, rest)


def _run_time_for(ip: Interpreter, node: ast.For, iterable: RuntimeRange) -> Flow:
    if not isinstance(node.target, ast.Name):
        raise CaptureError("a run-time loop has one simple loop variable", hint="compute the others in the body")
    _refuse_escape(ip, node)
    run_for(ip, iterable, node.target.id, lambda: _loop_body(ip, node.body), assigned_names(node.body))
    return NEXT


def _while(ip: Interpreter, node: ast.While, rest: Rest) -> Flow:
    for _ in range(MAX_UNROLL):
        known = _probe(ip, node.test)
        if isinstance(known, Tile):
            return _run_time_while(ip, node)
        if not known:
            return ip.run(node.orelse, rest)
        with ip.frame.in_loop():
            flow = ip.run(node.body)
        if flow.kind == "break":
            return NEXT
        if flow.kind == "return":
            return flow
    raise CaptureError(f"a compile-time while runs more than {MAX_UNROLL} times", hint="is its condition ever false?")


def _probe(ip: Interpreter, node: ast.expr) -> Any:
    """The condition of a while, once: whatever it did is undone if it is known at run time only."""
    scratch = Block()
    snapshot = Snapshot(ip.frames) if may_have_effects(node) else None
    with ip.builder.inside(scratch):
        known = test(ip, node)
    if not isinstance(known, Tile):
        ip.builder.block.ops += scratch.ops
    elif snapshot is not None:
        snapshot.check_shapes()
        snapshot.restore()
    return known


def _run_time_while(ip: Interpreter, node: ast.While) -> Flow:
    _refuse_escape(ip, node)
    run_while(ip, lambda: test(ip, node.test), lambda: _loop_body(ip, node.body), assigned_names(node.body))
    return NEXT


def _loop_body(ip: Interpreter, body: list[ast.stmt]) -> None:
    with ip.frame.in_loop():
        ip.run(body)


def _refuse_escape(ip: Interpreter, node: ast.For | ast.While) -> None:
    if node.orelse:
        with ip.located(node.orelse[0]):
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


STATEMENTS: dict[type[ast.stmt], StatementHandler] = {
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
    ast.Pass: _nothing,
    ast.Nonlocal: _nothing,
    ast.Global: _nothing,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
}
