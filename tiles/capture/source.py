"""A function's syntax tree with its place in the file, and what a syntax tree says about names."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Iterable
from dataclasses import dataclass

from warpwave.tiles.errors import CaptureError

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A parsed function. Lines in `node` are those of `file`; `column` is what dedenting removed."""

    node: FunctionNode
    file: str
    name: str
    column: int


@functools.lru_cache(maxsize=1024)
def parse_code(code: types.CodeType, name: str) -> Source | None:
    """The source of a plain `def` function, or None where Python keeps none (built-ins, exec, lambdas)."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    try:
        tree = ast.parse(dedented)
    except SyntaxError:
        return None
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef):
        return None
    column = len(lines[0]) - len(dedented.splitlines(keepends=True)[0])
    ast.increment_lineno(node, first - 1)
    return Source(node, code.co_filename, name, column)


def parse(fn: types.FunctionType) -> Source:
    """The source of a kernel; CaptureError where there is none."""
    source = parse_code(fn.__code__, fn.__name__)
    if source is None:
        raise CaptureError(
            f"the source of {fn.__name__} is not available",
            hint="a kernel is a plain `def` in a file; lambdas and exec'd text are not supported",
        )
    return source


def local_names(node: FunctionNode) -> frozenset[str]:
    """Names that Python treats as local to this function (parameters and all names it binds)."""
    args = node.args
    names = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    names |= {a.arg for a in (args.vararg, args.kwarg) if a}
    body = node.body if isinstance(node.body, list) else [node.body]
    bound = assigned_names(body)
    outer = declared_outer(body)
    return frozenset((names | bound) - outer)


def declared_outer(body: list[ast.stmt] | list[ast.expr]) -> set[str]:
    """Names declared nonlocal or global in this function's own body."""
    return {name for node in _own_nodes(body) if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names}


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


def contains(body: list[ast.stmt], kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether these statements hold a node of one of `kinds`, nested functions excluded."""
    return any(isinstance(node, kinds) for node in _own_nodes(body))


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
    return next((n for n in _own_nodes(body) if isinstance(n, ast.Return)), None)


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
            # A comprehension has its own scope, but := inside it binds outside.
            found.extend(n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            continue
        stack.extend(ast.iter_child_nodes(node))
    return tuple(found)
