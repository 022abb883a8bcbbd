"""Programs as source text: the kernel's module, and a script that runs it and compares it with the oracle."""

from __future__ import annotations

from collections.abc import Iterator

from warpwave.conformance.programs.model import Block, Buffer, Helper, Let, Program, Statement, name_of

HEAD = """\
import math
import warpwave as ww
from warpwave import bf16, bool_, cdiv, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz
from warpwave import gl, i8, i32, i64, rt, rv, st, sv
"""


def render(program: Program) -> str:
    """A module that defines the kernel `program`."""
    lines = [HEAD]
    for helper in program.helpers:
        lines += ["", *_helper(helper)]
    parameters = ", ".join(f"{t.name}: gl[{name_of(t.dtype)}]" for t in program.tensors)
    lines += ["", "@ww.kernel", f"def program({parameters}):"]
    lines += [f"    {line}" for line in program.prologue]
    lines += _body(program.body, 1)
    return "\n".join(lines) + "\n"


def render_script(program: Program, target: str) -> str:
    """The kernel with its inputs by seed: run it with `python` to see the comparison for one target."""
    tensors = [
        f"    {t.name!r}: memory({t.layout!r}, fill({t.values!r}, {name_of(t.dtype)}, {t.shape}, {program.seed}, {i})),"
        for i, t in enumerate(program.tensors)
    ]
    return "\n".join(
        [
            render(program),
            "from warpwave.conformance.programs.memory import memory",
            "from warpwave.conformance.programs.values import fill",
            "from warpwave.tiles.cli.check import Case, check_case, print_results",
            "",
            "arguments = {",
            *tensors,
            "}",
            f"print_results('program', list(check_case(program, Case(arguments, {{}}), [{target!r}])))",
            "",
        ]
    )


def _helper(helper: Helper) -> Iterator[str]:
    yield f"def {helper.name}({', '.join(p.name for p in helper.parameters)}):"
    yield from _body(helper.body, 1)
    yield f"    return {helper.result.name}"
    yield ""


def _body(body: tuple[Statement, ...], depth: int) -> list[str]:
    lines = [line for statement in body for line in _statement(statement, depth)]
    return lines or ["    " * depth + "pass"]


def _statement(statement: Statement, depth: int) -> list[str]:
    pad = "    " * depth
    if isinstance(statement, Let):
        return [f"{pad}{statement.target.name} = {filled(statement.text, statement)}"]
    if isinstance(statement, Buffer):
        name = statement.name
        return [f"{pad}{name} = ww.shared({statement.type})", f"{pad}ww.store({name}, None, {statement.fill.name})"]
    if isinstance(statement, Block):
        lines = [pad + line for line in statement.before]
        lines += [f"{pad}{filled(statement.head, statement)}:", *_body(statement.body, depth + 1)]
        return lines + ([f"{pad}else:", *_body(statement.orelse, depth + 1)] if statement.orelse else [])
    return [pad + filled(statement.text, statement)]


def filled(text: str, statement: Let | Block | Statement) -> str:
    """A statement's text with the names of what it reads."""
    assert not isinstance(statement, Buffer)
    return text.format(*(v.name for v in statement.reads))
