"""A function's syntax tree with its place in the file, and what a syntax tree says about names."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.errors import CaptureError

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A parsed function. Lines and columns in `node` are those of `file`, whose text was `text`."""

    node: FunctionNode
    file: str
    name: str
    text: str = ""

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; for a lambda, a return of its expression."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node.body
        return [_lambda_return(self.node)]


@functools.lru_cache(maxsize=1024)
def _lambda_return(node: ast.Lambda) -> ast.stmt:
    return ast.copy_location(ast.Return(node.body), node.body)


# -- from code to source ------------------------------------------------------------------------------


def parse(function: types.FunctionType) -> Source:
    """The source of a kernel; CaptureError where there is none."""
    source = find_source(function.__code__)
    if source is None or not isinstance(source.node, ast.FunctionDef):
        raise CaptureError(
            f"the source of {function.__name__} is not available",
            hint="a kernel is a plain `def` in a file that has not changed since it was imported",
        )
    return source


def find_source(code: types.CodeType) -> Source | None:
    """The source of a `def` or lambda; None where Python keeps none, or where it does not fit the code."""
    return _find(code, code.co_filename)


@functools.lru_cache(maxsize=4096)
def _find(code: types.CodeType, file: str) -> Source | None:
    """`file` is part of the key because equal functions of two files are equal as code."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        return None
    text = "".join(lines)
    candidates = _functions(text).get(code.co_firstlineno, ())
    matching = [node for node in candidates if _fits(node, code)]
    if len(matching) > 1:
        matching = [node for node in matching if _starts_at(node, code)]
    if len(matching) != 1:
        return None
    return Source(matching[0], file, code.co_name, text)


@functools.lru_cache(maxsize=64)
def _functions(text: str) -> dict[int, list[FunctionNode]]:
    """The functions of a file by their first line, which is that of the first decorator."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    found: dict[int, list[FunctionNode]] = {}
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        stack += _children(node)
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(first, []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
    return found


def _fits(node: FunctionNode, code: types.CodeType) -> bool:
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    args = node.args
    names = [a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg] if a]
    return name == code.co_name and tuple(names) == code.co_varnames[: len(names)]


def _starts_at(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether the code's first column is in `node`: tells apart lambdas of one line (Python 3.11 and later)."""
    positions: Iterable[Any] = getattr(code, "co_positions", tuple)()
    columns = [(line, column) for line, _, column, _ in positions if line and column]
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return bool(columns) and all(start <= place < end for place in columns)


_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_helper(function: types.FunctionType) -> bool:
    """Whether this is a user's function that runs to its end when it is called."""
    module = (function.__module__ or "").split(".")
    if module[:2] == ["warpwave", "tiles"] and "tests" not in module:
        return False
    return not (function.__code__.co_flags & _LAZY or is_standard_library(function.__code__))


def is_standard_library(code: types.CodeType) -> bool:
    """Whether code belongs to Python itself, installed packages excluded."""
    file = code.co_filename
    in_packages = "site-packages" in file or "dist-packages" in file
    return file.startswith("<frozen ") or (file.startswith(_LIBRARY) and not in_packages)


_LIBRARY = inspect.__file__.removesuffix("inspect.py")


# -- names --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """How a function's own body uses names: bound here, or declared to live elsewhere."""

    local: frozenset[str]
    nonlocal_: frozenset[str]
    global_: frozenset[str]


@functools.lru_cache(maxsize=4096)
def names_of(node: FunctionNode) -> Names:
    """Python's rule: parameters and all names that the body binds are local, unless declared otherwise."""
    args = node.args
    local = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg] if a}
    body = node.body if isinstance(node.body, list) else [node.body]
    declared = {kind: _declared(body, kind) for kind in (ast.Nonlocal, ast.Global)}
    local |= assigned_names(body)
    outer = declared[ast.Nonlocal] | declared[ast.Global]
    return Names(frozenset(local - outer), declared[ast.Nonlocal], declared[ast.Global])


def _declared(body: Iterable[ast.AST], kind: type[ast.Nonlocal] | type[ast.Global]) -> frozenset[str]:
    return frozenset(name for node in _own_nodes(body) if isinstance(node, kind) for name in node.names)


def assigned_names(body: Iterable[ast.AST]) -> frozenset[str]:
    """Names bound by these statements in their own scope."""
    return _collect_assigned_names(tuple(body))


@functools.lru_cache(maxsize=4096)
def _collect_assigned_names(body: tuple[ast.AST, ...]) -> frozenset[str]:
    names: set[str] = set()
    for node in _own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return frozenset(names)


# -- shape of the control flow ------------------------------------------------------------------------


def contains(body: Iterable[ast.AST], kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether these statements or expressions hold a node of one of `kinds`, nested functions excluded."""
    return any(isinstance(node, kinds) for node in _own_nodes(body))


def may_have_effects(node: ast.AST) -> bool:
    """Whether evaluating an expression may do more than give a value."""
    return any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(node))


def escapes_loop(body: list[ast.stmt]) -> ast.stmt | None:
    """The first return, break or continue that leaves this loop body, or None."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            return statement
        inner = _sub_bodies(statement)
        for part, is_loop in inner:
            found = _first_return(part) if is_loop else escapes_loop(part)
            if found is not None:
                return found
    return None


def _first_return(body: list[ast.stmt]) -> ast.stmt | None:
    returns = [n for n in _own_nodes(body) if isinstance(n, ast.Return)]
    return min(returns, key=lambda n: (n.lineno, n.col_offset), default=None)


def _sub_bodies(statement: ast.stmt) -> list[tuple[list[ast.stmt], bool]]:
    if isinstance(statement, ast.For | ast.While):
        return [(statement.body, True), (statement.orelse, False)]
    if isinstance(statement, ast.If):
        return [(statement.body, False), (statement.orelse, False)]
    return []


def _own_nodes(body: Iterable[ast.AST]) -> tuple[ast.AST, ...]:
    """All nodes below, without entering nested functions, classes or comprehensions' own scopes."""
    return _collect_own_nodes(tuple(body))


@functools.lru_cache(maxsize=4096)
def _collect_own_nodes(body: tuple[ast.AST, ...]) -> tuple[ast.AST, ...]:
    """Cached because loops, branches and helpers ask again about the same statements; nodes are never changed."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        found.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            # A comprehension has its own scope, but := inside it binds outside, and calls in it are calls.
            found.extend(n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            continue
        stack += _children(node)
    return tuple(found)


# Marks of other nodes, which hold nothing.
_MARKS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop)


def _children(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, in a third of the time, without contexts and operators."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, _MARKS):
            found.append(value)
    return found
