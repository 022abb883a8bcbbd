"""Random kernel programs with nested control flow, as source text, for hypothesis.

All integers stay in [-40, 56] and all floats are multiples of 1/4 in [-64, 64], so that Python's numbers and
run-time ones agree exactly. Every variable keeps one type. `wild` adds aliases and rebuilt lists, of which
capture may refuse some.
"""

from __future__ import annotations

import itertools
import linecache
import types
from dataclasses import dataclass, field

from hypothesis import strategies as st

import warpwave as ww

INTS = ["i0", "i1", "i2", "i3"]
FLOATS = ["x0", "x1", "x2"]
BOOLS = ["b0", "b1"]
INT_FORMS = [
    *("({a} + {b}) % 97 - 40", "({a} - {b}) % 89 - 40", "({a} * {b}) % 83 - 40", "({a} // ({b} % 5 + 1))"),
    *("min({a}, {b})", "max({a}, {b})", "abs({a})", "({a} if {c} else {b})", "smaller({a}, {b})"),
    *("int({x}) % 50", "({a} % -7)", "({a} & {b}) % 40"),
]
FLOAT_FORMS = [
    *("limit({a} + {b})", "limit({a} - {b})", "limit({a} * 2.0)", "max({a}, {b})", "min({a}, {b})"),
    *("({a} if {c} else {b})", "-{a}"),
]
_numbers = itertools.count()


@dataclass
class Writer:
    """Writes one program; `draw` is hypothesis's."""

    draw: object
    wild: bool
    lines: list[str] = field(default_factory=list)
    fresh: int = 0
    statics: list[str] = field(default_factory=list)

    def choose(self, options):
        return self.draw(st.sampled_from(options))

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def name(self, prefix):
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # -- expressions ------------------------------------------------------------------------------

    def int_(self, depth=2):
        leaves = [*INTS, *self.statics, "n", "3", "-1", "xs[0]", "xs[1]", "d['p']", "pair[0]"]
        if depth == 0 or self.choose([True, False]):
            return self.choose(leaves)
        a, b = self.int_(depth - 1), self.int_(depth - 1)
        form = self.choose(INT_FORMS)
        return "(" + form.format(a=a, b=b, c=self.bool_(0), x=self.float_(0)) + ")"

    def float_(self, depth=2):
        if depth == 0 or self.choose([True, False]):
            return self.choose([*FLOATS, "x", "0.25", "-2.0", "0.0", "pair[1]"])
        a, b = self.float_(depth - 1), self.float_(depth - 1)
        form = self.choose(FLOAT_FORMS)
        return "(" + form.format(a=a, b=b, c=self.bool_(0)) + ")"

    def bool_(self, depth=1):
        a, b = self.int_(0), self.int_(0)
        simple = ["{a} < {b}", "{a} == {b}", "{a} % 2 == 0", "{x} > {y}", "{v}", "{a} <= {b} < 9", "{a} != 0"]
        compound = ["{p} and {q}", "{p} or {q}", "not {p}", "({p}) == ({q})"]
        form = self.choose(simple if depth == 0 else simple + compound)
        p, q = ("(" + self.bool_(depth - 1) + ")" for _ in range(2)) if depth else ("", "")
        return "(" + form.format(a=a, b=b, x=self.float_(0), y=self.float_(0), v=self.choose(BOOLS), p=p, q=q) + ")"

    # -- statements -------------------------------------------------------------------------------

    def block(self, depth, budget):
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth, budget)

    def statement(self, depth, budget):
        plain = [self.assign_int, self.assign_float, self.assign_bool, self.swap, self.item]
        plain += [self.store, self.call, self.state]
        if self.wild:
            plain += [self.alias, self.rebuild]
        nested = [self.if_, self.for_, self.while_, self.static_for]
        self.choose(plain + nested * 2 if budget > 0 else plain)(depth, budget - 1)

    def assign_int(self, depth, _):
        name = self.choose(INTS)
        self.emit(
            depth, self.choose([f"{name} = {self.int_()}", f"{name} += {self.int_(1)}; {name} = {name} % 97 - 40"])
        )

    def assign_float(self, depth, _):
        self.emit(depth, f"{self.choose(FLOATS)} = {self.float_()}")

    def assign_bool(self, depth, _):
        self.emit(depth, f"{self.choose(BOOLS)} = {self.bool_()}")

    def swap(self, depth, _):
        group = self.choose([INTS, FLOATS, BOOLS, ["xs[0]", "xs[1]", "i0"]])
        a, b = self.choose(group), self.choose(group)
        self.emit(depth, f"{a}, {b} = {b}, {a}")

    def item(self, depth, _):
        target = self.choose(["xs[0]", "xs[1]", "d['p']"])
        self.emit(depth, f"{target} = {self.int_()}")

    def store(self, depth, _):
        self.emit(depth, f"ww.store(out, {self.draw(st.integers(16, 31))}, {self.int_()})")

    def call(self, depth, _):
        self.emit(depth, self.choose([f"bump({self.int_(1)})", f"i1 = bump({self.int_(1)})", "flip()"]))

    def state(self, depth, _):
        self.emit(depth, f"pair = ({self.int_(1)}, {self.float_(1)})")

    def alias(self, depth, _):
        self.emit(depth, self.choose(["ys = xs", "xs = ys", "xs, ys = ys, xs", "ys[0] = i0", "ys = list(xs)"]))

    def rebuild(self, depth, _):
        self.emit(depth, f"{self.choose(['xs', 'ys'])} = [{self.int_(1)}, {self.int_(1)}]")

    def if_(self, depth, budget):
        self.emit(depth, f"if {self.bool_()}:")
        self.block(depth + 1, budget)
        if self.choose([True, False]):
            self.emit(depth, "else:")
            self.block(depth + 1, budget)

    def for_(self, depth, budget):
        name = self.choose([self.name("k"), "i3"])
        bounds = self.choose([f"{self.int_(0)} % 4", f"{self.int_(0)} % 3 - 1, 3", f"{self.int_(0)} % 4, -2, -2"])
        self.emit(depth, f"for {name} in {self.choose(['range', 'ww.range'])}({bounds}):")
        if name == "i3":  # unknown after the loop, as it may run zero times
            self.emit(depth + 1, "i2 = i3")
        self.block(depth + 1, budget)
        if name == "i3":
            self.emit(depth, "i3 = i2")

    def while_(self, depth, budget):
        name = self.name("w")
        self.emit(depth, f"{name} = {self.choose(['3', self.int_(1) + ' % 5'])}")
        extra = self.choose(["", f" and {self.bool_()}"])
        self.emit(depth, f"while {name} > 0{extra}:")
        self.emit(depth + 1, f"{name} -= 1")
        self.block(depth + 1, budget)

    def static_for(self, depth, budget):
        name = self.name("s")
        self.emit(depth, f"for {name} in (1, 2):")
        self.statics.append(name)
        self.block(depth + 1, budget)
        self.statics.remove(name)


_HELPERS = """\
def limit(v):
    return max(min(v, 64.0), -64.0)

def smaller(p, q):
    if p < q:
        return p
    if p == 5:
        p = q
        return p - 1
    return q

"""

_START = """\
def program(n, x, a, out):
    i0, i1, i2, i3 = n, ww.load(a, 2), 7, -3
    x0, x1, x2 = x, 1.5, -0.25
    b0, b1 = n > 2, False
    xs, d, pair = [1, n], {'p': 4}, (2, 0.5)
    ys = [5, 6]

    def bump(by):
        nonlocal i2
        i2 = (i2 + by) % 97 - 40
        if i2 > 20:
            xs[0] = i2
        return i2 if i2 > 0 else by

    def flip():
        nonlocal b0, b1
        b0, b1 = not b1, b0

"""

_END = """\
    for k, v in enumerate([i0, i1, i2, i3, x0, x1, x2, xs[0], xs[1], d['p'], *pair, ys[0], ys[1]]):
        ww.store(out, k, v)
    ww.store(out, 14, 1 if b0 else 0)
    ww.store(out, 15, 1 if b1 else 0)
"""


@st.composite
def programs(draw, wild=False):
    """Source text of a module that defines `program`."""
    writer = Writer(draw, wild)
    for _ in range(draw(st.integers(1, 5))):
        writer.statement(1, 3)
    return _HELPERS + _START + "\n".join(writer.lines) + "\n" + _END


def load_program(text):
    """The program of a source text, which tracebacks and capture can read."""
    file = f"<random program {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType("random_program")
    module.ww = ww
    exec(compile(text, file, "exec"), module.__dict__)
    return module.program
