"""The IR's text form: one op a line, regions indented, stable names, types on every result."""

from __future__ import annotations

from typing import Any

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir.core import Block, Kernel, Op, Value
from warpwave.tiles.types import TileType


def print_kernel(kernel: Kernel) -> str:
    """The whole kernel as text."""
    printer = _Printer()
    params = [f"{printer.define(v, n)}: {v.type}" for n, v in zip(kernel.param_names, kernel.params, strict=True)]
    constants = ", ".join(f"{k}={_attr(v)}" for k, v in kernel.constants.items())
    head = f"kernel @{kernel.name}({', '.join(params)})" + (f" [{constants}]" if constants else "") + " {"
    return "\n".join([head, *printer.block(kernel.body, 1), "}", ""])


class _Printer:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counter = 0

    def define(self, value: Value, hint: str | None = None) -> str:
        """Give a value its name: the user's variable name where known, else a running number."""
        hint = hint or value.name
        if hint is None:
            name, self.counter = f"%{self.counter}", self.counter + 1
        else:
            name, suffix = f"%{hint}", 0
            while name in self.taken:
                suffix += 1
                name = f"%{hint}_{suffix}"
        self.taken.add(name)
        self.names[value] = name
        return name

    def use(self, value: Value) -> str:
        return self.names.get(value, "%<undefined>")

    def block(self, block: Block, depth: int) -> list[str]:
        return [line for op in block.ops for line in self.op(op, depth)]

    def op(self, op: Op, depth: int) -> list[str]:
        pad = "  " * depth
        if op.name == "for":
            return self._for(op, depth)
        if op.name == "while":
            return self._while(op, depth)
        operands = " ".join([""] + [self.use(v) + "," for v in op.operands]).rstrip(",")
        regions = [self.block(region, depth + 1) for region in op.regions]
        text = f"{pad}{self._results(op)}{op.name}{operands}{_attrs(op)}{self._types(op)}"
        if not regions:
            return [text]
        lines = [f"{text} {{", *regions[0]]
        for region in regions[1:]:
            lines += [f"{pad}}} else {{", *region]
        return [*lines, f"{pad}}}"]

    def _for(self, op: Op, depth: int) -> list[str]:
        pad, (region,) = "  " * depth, op.regions
        start, stop, step = (self.use(v) for v in op.operands[:3])
        inits = [self.use(v) for v in op.operands[3:]]
        iv = self.define(region.args[0])
        carry = self._carry(region.args[1:], inits)
        body = self.block(region, depth + 1)
        stages = f" stages={op.attrs['stages']}" if op.attrs["stages"] else ""
        word = "for" if op.attrs["kind"] == "loop" else "pipeline"
        head = f"{pad}{self._results(op)}{word} {iv} = {start} to {stop} step {step}{stages}{carry}"
        return [f"{head}{self._types(op)} {{", *body, f"{pad}}}"]

    def _while(self, op: Op, depth: int) -> list[str]:
        pad, (before, after) = "  " * depth, op.regions
        head_carry = self._carry(before.args, [self.use(v) for v in op.operands])
        first = self.block(before, depth + 1)
        args = ", ".join(self.define(v) for v in after.args)
        second = self.block(after, depth + 1)
        head = f"{pad}{self._results(op)}while{head_carry}{self._types(op)} {{"
        return [head, *first, f"{pad}}} do ({args}) {{", *second, f"{pad}}}"]

    def _carry(self, args: list[Value], inits: list[str]) -> str:
        if not args:
            return ""
        pairs = ", ".join(f"{self.define(a)} = {i}" for a, i in zip(args, inits, strict=True))
        return f" carry({pairs})"

    def _results(self, op: Op) -> str:
        return ", ".join(self.define(v) for v in op.results) + " = " if op.results else ""

    def _types(self, op: Op) -> str:
        return " : " + ", ".join(str(v.type) for v in op.results) if op.results else ""


def _attrs(op: Op) -> str:
    shown = {k: v for k, v in op.attrs.items() if k != "types"}
    if op.name == "constant":
        return f" {_attr(shown['value'])}"
    return " {" + ", ".join(f"{k}={_attr(v)}" for k, v in shown.items()) + "}" if shown else ""


def _attr(value: Any) -> str:
    if isinstance(value, DType | TileType):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_attr(v) for v in value) + "]"
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))  # a repr would show an address
    return repr(value)
