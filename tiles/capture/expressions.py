"""Evaluation of each kind of expression."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from warpwave.tiles.capture import targets
from warpwave.tiles.capture.calls import call, make_function
from warpwave.tiles.capture.interpreter import ExpressionHandler, Interpreter
from warpwave.tiles.capture.regions import run_if_expression
from warpwave.tiles.capture.scope import Frame, InterpretedFunction, InterpretedGenerator
from warpwave.tiles.capture.source import Names, Source, may_have_effects
from warpwave.tiles.dtypes import bool_
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.language import elementwise
from warpwave.tiles.language.handles import Buffer, Tensor, Tile

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}

# -- truth --------------------------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Python's truth of a value: a bool now, or a run-time bool scalar."""
    if isinstance(x, Tensor | Buffer):
        raise CaptureError(f"the truth of {x!r} is ambiguous", hint="test for an absent tensor with `is not None`")
    if not isinstance(x, Tile):
        return bool(x)
    if x.shape:
        raise CaptureError(
            f"the truth of a tile ({x.type}) is ambiguous",
            hint="reduce it to a scalar, or choose elements with ww.where",
        )
    return x if x.dtype == bool_ else elementwise.ne(x, 0)


def test(ip: Interpreter, node: ast.expr) -> Any:
    """The truth of an expression where only that matters, so that the operands of and/or need no common type."""
    with ip.located(node):
        if isinstance(node, ast.BoolOp):
            return _short_circuit(ip, node, node.values, test)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _not(ip, node)
        value = ip.eval(node)
        ip.mark(node)
        return truth(value)


def _not(ip: Interpreter, node: ast.UnaryOp) -> Any:
    known = test(ip, node.operand)
    ip.mark(node)
    return elementwise.invert(known) if isinstance(known, Tile) else not known


def _boolean(ip: Interpreter, node: ast.BoolOp) -> Any:
    """`a and b`, `a or b`: the value of one operand, the second evaluated only if it decides."""
    return _short_circuit(ip, node, node.values, Interpreter.eval)


def _short_circuit(
    ip: Interpreter, node: ast.BoolOp, operands: list[ast.expr], value_of: Callable[[Interpreter, ast.expr], Any]
) -> Any:
    first = value_of(ip, operands[0])
    if len(operands) == 1:
        return first
    is_and = isinstance(node.op, ast.And)
    ip.mark(node)
    decided = truth(first)
    if not isinstance(decided, Tile):
        return _short_circuit(ip, node, operands[1:], value_of) if decided == is_and else first
    rest = lambda: _short_circuit(ip, node, operands[1:], value_of)  # noqa: E731
    keep = lambda: first  # noqa: E731
    return run_if_expression(ip, decided, *((rest, keep) if is_and else (keep, rest)))


# -- operators ----------------------------------------------------------------------------------------


def _constant(_: Interpreter, node: ast.Constant) -> Any:
    return node.value


def _name(ip: Interpreter, node: ast.Name) -> Any:
    return ip.lookup(node.id)


def _binary(ip: Interpreter, node: ast.BinOp) -> Any:
    left, right = ip.eval(node.left), ip.eval(node.right)
    ip.mark(node)
    if isinstance(node.op, ast.MatMult) and (isinstance(left, Tile) or isinstance(right, Tile)):
        raise CaptureError("@ is not an op of the language", hint="use acc = ww.mma_AB(acc, a, b)")
    return BINARY[type(node.op)](left, right)


_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


def _unary(ip: Interpreter, node: ast.UnaryOp) -> Any:
    if isinstance(node.op, ast.Not):
        return _not(ip, node)
    value = ip.eval(node.operand)
    ip.mark(node)
    return _UNARY[type(node.op)](value)


def _compare(ip: Interpreter, node: ast.Compare) -> Any:
    return _compare_from(ip, node, ip.eval(node.left), 0)


def _compare_from(ip: Interpreter, node: ast.Compare, left: Any, position: int) -> Any:
    """`left op a op b ...` from the comparison at `position` on; each operand is evaluated once, if reached."""
    right = ip.eval(node.comparators[position])
    ip.mark(node)
    part = _compare_once(ip, node.ops[position], left, right)
    if position + 1 == len(node.ops):
        return part

    def rest() -> Any:
        return _compare_from(ip, node, right, position + 1)

    if not isinstance(part, Tile):
        return rest() if part else part
    if not part.shape and may_have_effects(node.comparators[position + 1]):
        return run_if_expression(ip, part, rest, lambda: part)
    following = rest()
    return part if following is True else elementwise.bit_and(part, following)


def _compare_once(ip: Interpreter, op: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Is | ast.IsNot):
        _check_identity(ip, left, right)
    return COMPARE[type(op)](left, right)


def _check_identity(ip: Interpreter, left: Any, right: Any) -> None:
    """Identity is known unless run-time control flow chooses the object, or a run-time number is compared."""
    pair = (left, right)
    tiles = [isinstance(x, Tile) for x in pair]
    numbers = any(tiles) and all(is_tile or elementwise.is_number(x) for x, is_tile in zip(pair, tiles, strict=True))
    if numbers or any(ip.joined.holds(x) for x in pair):
        raise CaptureError(
            "`is` between run-time values has no defined answer", hint="compare values with ==; `is None` is fine"
        )


def _if_expression(ip: Interpreter, node: ast.IfExp) -> Any:
    known = test(ip, node.test)
    if not isinstance(known, Tile):
        return ip.eval(node.body if known else node.orelse)
    return run_if_expression(ip, known, lambda: ip.eval(node.body), lambda: ip.eval(node.orelse))


# -- access and construction --------------------------------------------------------------------------


def _attribute(ip: Interpreter, node: ast.Attribute) -> Any:
    owner = ip.eval(node.value)
    ip.mark(node)
    return attribute(ip, owner, node.attr)


def attribute(ip: Interpreter, owner: Any, name: str) -> Any:
    """`owner.name`."""
    if isinstance(owner, Tile | Tensor | Buffer):
        if name.startswith("_") or not hasattr(type(owner), name):
            raise CaptureError(f"{owner!r} has no attribute {name!r}")
        return getattr(owner, name)
    if isinstance(owner, str | list | tuple | dict | set | int | float):
        return getattr(owner, name)
    return ip.dependencies.attribute(owner, name)


def _subscript(ip: Interpreter, node: ast.Subscript) -> Any:
    owner, index = ip.eval(node.value), ip.eval(node.slice)
    ip.mark(node)
    return owner[index]


def _slice(ip: Interpreter, node: ast.Slice) -> slice:
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if part is None else ip.eval(part) for part in parts))


def _elements(ip: Interpreter, nodes: list[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from ip.eval(node.value)
        else:
            yield ip.eval(node)


def _tuple(ip: Interpreter, node: ast.Tuple) -> tuple[Any, ...]:
    return tuple(_elements(ip, node.elts))


def _list(ip: Interpreter, node: ast.List) -> list[Any]:
    return list(_elements(ip, node.elts))


def _set(ip: Interpreter, node: ast.Set) -> set[Any]:
    return set(_elements(ip, node.elts))


def _dict(ip: Interpreter, node: ast.Dict) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result.update(ip.eval(value))
        else:
            result[ip.eval(key)] = ip.eval(value)
    return result


def _call(ip: Interpreter, node: ast.Call) -> Any:
    function = ip.eval(node.func)
    args = list(_elements(ip, node.args))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = ip.eval(keyword.value)
        more = value if keyword.arg is None else {keyword.arg: value}
        for name in more:
            if name in kwargs:
                raise CaptureError(f"keyword argument {name!r} is given twice")
        kwargs.update(more)
    ip.mark(node)
    return call(ip, function, args, kwargs, node)


def _lambda(ip: Interpreter, node: ast.Lambda) -> InterpretedFunction:
    return make_function(ip, node, "<lambda>")


def _format(ip: Interpreter, node: ast.JoinedStr) -> str:
    return "".join(str(ip.eval(part)) for part in node.values)


def _formatted(ip: Interpreter, node: ast.FormattedValue) -> str:
    value = ip.eval(node.value)
    convert: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}
    spec = ip.eval(node.format_spec) if node.format_spec else ""
    if isinstance(value, Tile):
        str(value)  # refused there, also for !r
    return format(convert[node.conversion](value), spec)


def _walrus(ip: Interpreter, node: ast.NamedExpr) -> Any:
    value = ip.eval(node.value)
    frame = ip.frame
    while frame.is_comprehension and frame.parent is not None:
        frame = frame.parent
    with ip.entering(frame):
        ip.assign(node.target.id, value)
    return value


# -- comprehensions -----------------------------------------------------------------------------------

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _comprehension(ip: Interpreter, node: Comprehension) -> Iterator[Any]:
    """The elements, each computed when it is asked for; the first iterable is evaluated now, as in Python."""
    bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name) and _is_store(n)}
    outer = ip.frame
    source = Source(outer.source.node, outer.source.file, outer.source.name)
    names = Names(frozenset(bound), frozenset(), frozenset())
    frame = Frame(source, names, outer.globals, parent=outer, call=outer.call, is_comprehension=True)
    items = _generate(ip, node, 0, iter(ip.eval(node.generators[0].iter)))
    return _in_frame(ip, frame, items)


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _in_frame(ip: Interpreter, frame: Frame, items: Iterator[Any]) -> Iterator[Any]:
    """`items`, with `frame` active only while one of them is computed."""
    while True:
        with ip.entering(frame):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def _generate(ip: Interpreter, node: Comprehension, depth: int, iterable: Iterator[Any]) -> Iterator[Any]:
    generator = node.generators[depth]
    if generator.is_async:
        raise CaptureError("async for is not supported in kernel code")
    for item in iterable:
        targets.bind(ip, generator.target, item)
        if not all(_keeps(ip, condition) for condition in generator.ifs):
            continue
        if depth + 1 < len(node.generators):
            yield from _generate(ip, node, depth + 1, iter(ip.eval(node.generators[depth + 1].iter)))
        elif isinstance(node, ast.DictComp):
            yield (ip.eval(node.key), ip.eval(node.value))
        else:
            yield ip.eval(node.elt)


def _keeps(ip: Interpreter, condition: ast.expr) -> bool:
    known = test(ip, condition)
    if isinstance(known, Tile):
        with ip.located(condition):
            raise CaptureError(
                "a run-time condition in a comprehension would make its length unknown",
                hint="choose values with ww.where or `a if condition else b`",
            )
    return bool(known)


EXPRESSIONS: dict[type[ast.expr], ExpressionHandler] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _if_expression,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.JoinedStr: _format,
    ast.FormattedValue: _formatted,
    ast.NamedExpr: _walrus,
    ast.ListComp: lambda ip, node: list(_comprehension(ip, node)),
    ast.SetComp: lambda ip, node: set(_comprehension(ip, node)),
    ast.GeneratorExp: lambda ip, node: InterpretedGenerator(_comprehension(ip, node)),
    ast.DictComp: lambda ip, node: dict(_comprehension(ip, node)),
}
