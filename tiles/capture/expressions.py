"""Evaluation of each kind of expression."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from warpwave.tiles.capture.calls import call, make_function
from warpwave.tiles.capture.interpreter import Handler, Interpreter
from warpwave.tiles.capture.regions import run_if_expression
from warpwave.tiles.capture.scope import Frame, InterpretedFunction
from warpwave.tiles.capture.source import Source
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


def truth(x: Any) -> Any:
    """Python's truth of a value: a bool now, or a run-time bool scalar."""
    if not isinstance(x, Tile):
        return bool(x)
    if x.shape:
        raise CaptureError(
            f"the truth of a tile ({x.type}) is ambiguous",
            hint="reduce it to a scalar, or choose elements with ww.where",
        )
    return x if x.dtype == bool_ else elementwise.ne(x, 0)


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


def _unary(ip: Interpreter, node: ast.UnaryOp) -> Any:
    value = ip.eval(node.operand)
    ip.mark(node)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return elementwise.invert(known) if isinstance(known, Tile) else not known
    functions: dict[type[ast.unaryop], Callable[[Any], Any]] = {
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
        ast.Invert: operator.invert,
    }
    return functions[type(node.op)](value)


def _boolean(ip: Interpreter, node: ast.BoolOp) -> Any:
    """`a and b`, `a or b`: the value of one operand, the second evaluated only if it decides."""
    return _short_circuit(ip, node, node.values)


def _short_circuit(ip: Interpreter, node: ast.BoolOp, operands: list[ast.expr]) -> Any:
    first = ip.eval(operands[0])
    if len(operands) == 1:
        return first
    is_and = isinstance(node.op, ast.And)
    ip.mark(node)
    decided = truth(first)
    if not isinstance(decided, Tile):
        return _short_circuit(ip, node, operands[1:]) if decided == is_and else first
    rest = lambda: _short_circuit(ip, node, operands[1:])  # noqa: E731
    keep = lambda: first  # noqa: E731
    return run_if_expression(ip, decided, *((rest, keep) if is_and else (keep, rest)))


def _compare(ip: Interpreter, node: ast.Compare) -> Any:
    left, result = ip.eval(node.left), None
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = ip.eval(comparator)
        ip.mark(node)
        part = COMPARE[type(op)](left, right)
        result = part if result is None else _chain(result, part)
        if not isinstance(result, Tile) and not result:
            return result
        left = right
    return result


def _chain(a: Any, b: Any) -> Any:
    if isinstance(a, Tile):
        return a if b is True else elementwise.bit_and(a, b)
    return b


def _if_expression(ip: Interpreter, node: ast.IfExp) -> Any:
    test = truth(ip.eval(node.test))
    if not isinstance(test, Tile):
        return ip.eval(node.body if test else node.orelse)
    return run_if_expression(ip, test, lambda: ip.eval(node.body), lambda: ip.eval(node.orelse))


def _attribute(ip: Interpreter, node: ast.Attribute) -> Any:
    owner = ip.eval(node.value)
    ip.mark(node)
    if isinstance(owner, Tile | Tensor | Buffer):
        if node.attr.startswith("_") or not hasattr(type(owner), node.attr):
            raise CaptureError(f"{owner!r} has no attribute {node.attr!r}")
        return getattr(owner, node.attr)
    if isinstance(owner, str | list | tuple | dict | set | int | float):
        return getattr(owner, node.attr)
    return ip.dependencies.attribute(owner, node.attr)


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
        kwargs.update(value if keyword.arg is None else {keyword.arg: value})
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
    return format(convert[node.conversion](value), spec)


def _walrus(ip: Interpreter, node: ast.NamedExpr) -> Any:
    value = ip.eval(node.value)
    frame = ip.frame
    while frame.source.name == "<comprehension>" and frame.parent is not None:
        frame = frame.parent
    with ip.entering(frame):
        ip.assign(node.target.id, value)
    return value


def _comprehension(ip: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> list[Any]:
    targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    outer = ip.frame
    source = Source(outer.source.node, outer.source.file, "<comprehension>", outer.source.column)
    frame = Frame(source, frozenset(targets), outer.globals, parent=outer, call=outer.call)
    first = ip.eval(node.generators[0].iter)
    results: list[Any] = []
    with ip.entering(frame):
        _generate(ip, node, 0, first, results)
    return results


def _generate(ip: Interpreter, node: Any, depth: int, iterable: Any, results: list[Any]) -> None:
    from warpwave.tiles.capture.statements import bind_target

    generator = node.generators[depth]
    for item in iterable:
        bind_target(ip, generator.target, item)
        if not all(_static_truth(ip, test) for test in generator.ifs):
            continue
        if depth + 1 < len(node.generators):
            _generate(ip, node, depth + 1, ip.eval(node.generators[depth + 1].iter), results)
        elif isinstance(node, ast.DictComp):
            results.append((ip.eval(node.key), ip.eval(node.value)))
        else:
            results.append(ip.eval(node.elt))


def _static_truth(ip: Interpreter, node: ast.expr) -> bool:
    return bool(ip.eval(node))


EXPRESSIONS: dict[type[ast.expr], Handler] = {
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
    ast.ListComp: _comprehension,
    ast.SetComp: lambda ip, node: set(_comprehension(ip, node)),
    ast.GeneratorExp: lambda ip, node: iter(_comprehension(ip, node)),
    ast.DictComp: lambda ip, node: dict(_comprehension(ip, node)),
}
