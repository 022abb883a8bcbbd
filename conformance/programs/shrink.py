"""Shortens a failing program step by step while it fails in the same way; no hypothesis needed, so a seed suffices."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from warpwave.conformance.programs.model import Block, Buffer, Do, Helper, Let, Program, Statement, Tensor, Var, walk
from warpwave.conformance.programs.render import render

Body = tuple[Statement, ...]
Failure = Callable[[Program], str | None]


def shrink(program: Program, failure: Failure, *, seconds: float = 60.0) -> Program:
    """The shortest program found in `seconds` for which `failure` says the same as for `program`."""
    wanted, end = failure(program), time.monotonic() + seconds
    if wanted is None:
        return program
    tried: set[Program] = {program}
    improved = True
    while improved:
        improved = False
        for candidate in _candidates(program):
            if time.monotonic() > end:
                return program
            if candidate in tried:
                continue
            tried.add(candidate)
            if failure(candidate) == wanted:
                program, improved = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    for body in _shorter(program.body):
        yield _without_unused(replace(program, body=body))
    for index, tensor in enumerate(program.tensors):
        for simpler in _simpler(program, index):
            tensors = (*program.tensors[:index], simpler, *program.tensors[index + 1 :])
            if simpler != tensor:
                yield replace(program, tensors=tensors)


def _simpler(program: Program, index: int) -> Iterator[Tensor]:
    tensor = program.tensors[index]
    yield replace(tensor, layout="rows")
    for values in ("ones", "normal"):
        yield replace(tensor, values=values)
        if tensor.values == values:
            break
    for axis, extent in enumerate(tensor.shape):
        for smaller in {extent // 2, extent - 1} - {0}:
            yield replace(tensor, shape=(*tensor.shape[:axis], smaller, *tensor.shape[axis + 1 :]))


def _shorter(body: Body) -> Iterator[Body]:
    """Bodies with less in them: halves, single statements and blocks dropped, results replaced."""
    half = len(body) // 2
    if half > 1:
        yield body[:half]
        yield body[half:]
    for i in reversed(range(len(body))):
        before, statement, after = body[:i], body[i], body[i + 1 :]
        yield before + after
        if isinstance(statement, Block):
            yield from _within(before, statement, after)
        if isinstance(statement, Let):
            yield from _replaced(before, statement, after)


def _within(before: Body, block: Block, after: Body) -> Iterator[Body]:
    yield before + block.body + after
    if block.orelse:
        yield (*before, replace(block, orelse=()), *after)
    for body in _shorter(block.body):
        if body:
            yield (*before, replace(block, body=body), *after)
    for body in _shorter(block.orelse):
        yield (*before, replace(block, orelse=body), *after)


def _replaced(before: Body, let: Let, after: Body) -> Iterator[Body]:
    for source in let.reads:
        if (source.dtype, source.shape) == (let.target.dtype, let.target.shape) and source != let.target:
            yield before + _renamed(after, let.target, source)
    if let.text != let.target.literal:
        yield (*before, Let(let.target, let.target.literal), *after)


def _renamed(body: Body, old: Var, new: Var) -> Body:
    return tuple(_rename(statement, old, new) for statement in body)


def _rename(statement: Statement, old: Var, new: Var) -> Statement:
    if isinstance(statement, Buffer):
        return replace(statement, fill=new if statement.fill == old else statement.fill)
    reads = tuple(new if v == old else v for v in statement.reads)
    if isinstance(statement, Block):
        inner, orelse = _renamed(statement.body, old, new), _renamed(statement.orelse, old, new)
        return replace(statement, reads=reads, body=inner, orelse=orelse)
    if isinstance(statement, Let):
        return replace(statement, reads=reads, target=new if statement.target == old else statement.target)
    return replace(statement, reads=reads)


def _without_unused(program: Program) -> Program:
    """Tensors and helpers that the text no longer names are dropped; the first tensor gives the grid."""
    helpers = tuple(h for h in program.helpers if _names(program, h.name))
    program = replace(program, helpers=helpers)
    return replace(program, tensors=tuple(t for t in program.tensors if _names(program, t.name)))


def _names(program: Program, name: str) -> bool:
    text = render(replace(program, tensors=(), helpers=tuple(h for h in program.helpers if h.name != name)))
    return re.search(rf"\b{name}\b", text) is not None


def effects(program: Program) -> int:
    """How many statements have an effect; a program without any shows nothing."""
    helpers: tuple[Helper, ...] = program.helpers
    bodies = (program.body, *(h.body for h in helpers))
    return sum(isinstance(s, Do) for body in bodies for s in walk(body))
