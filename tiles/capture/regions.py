"""Run-time branches and loops: trace each region once, find what it changed, and carry those values.

A loop is traced under an assumption about which variables it carries. If its body changed something else,
or changed a type, the assumption is corrected and the body traced again, until it holds. Nothing that
changes is ever kept at its first value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from warpwave.tiles.capture.interpreter import Interpreter
from warpwave.tiles.capture.merge import Merger, Mismatch, Shape, bring_to, has_tile, leaves_of, rebuild
from warpwave.tiles.capture.scope import UNBOUND, Poison
from warpwave.tiles.capture.state import Contents, Slot, Snapshot
from warpwave.tiles.dtypes import i32
from warpwave.tiles.errors import CaptureError
from warpwave.tiles.ir import Block, Value
from warpwave.tiles.language.control import RuntimeRange
from warpwave.tiles.language.elementwise import as_tile
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import TileType, scalar


def _note_joined(ip: Interpreter, merger: Merger, memo: dict[int, Any]) -> None:
    """Refuse later changes of merged lists whose originals are still in reach, by another name or another pair."""
    if not merger.containers:
        return
    reachable = Snapshot(ip.frames)
    uses = Counter(id(x) for a, b, _ in merger.containers for x in (a, b))
    for a, b, shape in merger.containers:
        if any(uses[id(x)] > 1 or reachable.holds(x) or ip.joined.holds(x) for x in (a, b)):
            for container in (memo.get(id(shape)), a, b):
                if container is not None:
                    ip.joined.add(container)


def _bind(snapshot: Snapshot, slot: Slot, value: Any) -> None:
    """Give a variable the value that came out of run-time control flow, and a fresh value the variable's name."""
    if isinstance(value, Tile) and isinstance(slot.key, str):
        value.value.name = value.value.name or slot.key
    snapshot.assign(slot, value)


# -- branches -----------------------------------------------------------------------------------------


def run_if(ip: Interpreter, condition: Tile, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Trace both branches; afterwards each variable holds the value of the branch that ran.

    Returns the merged results of the two callables.
    """
    loc = ip.builder.loc
    snapshot = Snapshot(ip.frames)
    first = _trace_branch(ip, snapshot, then)
    snapshot.restore()
    second = _trace_branch(ip, snapshot, other)
    snapshot.restore()
    merger = Merger(False, first.contents, second.contents)
    result_shape = merger.merge(first.result, second.result)
    shapes, poisons = _merge_slots(snapshot, first, second, merger)
    for branch, side in ((first, 0), (second, 1)):
        with ip.builder.inside(branch.block):
            ip.builder.loc = loc
            values = [bring_to(p[side], t).value for p, t in zip(merger.pairs, merger.types, strict=True)]
            ip.builder.emit("yield", values)
    regions = [first.block, second.block]
    results = ip.builder.emit("if", [condition.value], regions, types=tuple(merger.types))
    leaves = [Tile(v) for v in results]
    memo: dict[int, Any] = {}
    for slot, shape in shapes.items():
        _bind(snapshot, slot, rebuild(shape, leaves, memo))
    for slot, poison in poisons.items():
        snapshot.assign(slot, poison)
    result = rebuild(result_shape, leaves, memo)
    _note_joined(ip, merger, memo)
    return result


def run_if_expression(ip: Interpreter, condition: Tile, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """The value of `then() if condition else other()`."""
    try:
        return run_if(ip, condition, then, other)
    except Mismatch as mismatch:
        raise CaptureError(f"the value of this expression depends on a run-time condition, but {mismatch}") from None


@dataclass
class _Branch:
    block: Block
    result: Any
    values: dict[Slot, Any]
    contents: Contents


def _trace_branch(ip: Interpreter, snapshot: Snapshot, body: Callable[[], Any]) -> _Branch:
    block = Block()
    with ip.region(block, snapshot):
        result = body()
        values = {slot: snapshot.current(slot) for slot in snapshot.changes()}
        return _Branch(block, result, values, snapshot.contents_now())


def _merge_slots(
    snapshot: Snapshot, first: _Branch, second: _Branch, merger: Merger
) -> tuple[dict[Slot, Shape], dict[Slot, Poison]]:
    shapes: dict[Slot, Shape] = {}
    poisons: dict[Slot, Poison] = {}
    for slot in dict.fromkeys([*first.values, *second.values]):
        before = snapshot.before(slot)
        a, b = first.values.get(slot, before), second.values.get(slot, before)
        if a is UNBOUND and b is UNBOUND:
            shapes[slot] = Shape("static", static=UNBOUND)
        elif a is UNBOUND or b is UNBOUND:
            poisons[slot] = Poison(
                "has a value in only one branch of a run-time if", "assign it before the if, or in both branches"
            )
        elif isinstance(a, Poison) or isinstance(b, Poison):
            poisons[slot] = a if isinstance(a, Poison) else b
        else:
            try:
                shapes[slot] = _try_merge(merger, a, b)
            except Mismatch as mismatch:
                poisons[slot] = Poison(f"differs after a run-time if: {mismatch}", "give both branches one type")
    return shapes, poisons


def _try_merge(merger: Merger, a: Any, b: Any) -> Shape:
    """Merge, leaving no leaves behind if it fails half-way."""
    Merger(merger.in_loop, merger.contents_a, merger.contents_b).merge(a, b)
    return merger.merge(a, b)


# -- loops --------------------------------------------------------------------------------------------


@dataclass
class _Plan:
    """The assumption that a loop is traced under.

    `carried` maps a slot to the value that decides its type together with the initial one, and `contents` are what
    the lists and dicts in these values held then; `local` slots
    have no defined value when an iteration starts. `tried` are the types that were assumed before, `aliased`
    the slots that once were corrected for sharing a list with another slot.
    """

    carried: dict[Slot, Any] = field(default_factory=dict)
    contents: dict[int, Any] = field(default_factory=dict)
    local: dict[Slot, Poison] = field(default_factory=dict)
    tried: dict[Slot, list[Any]] = field(default_factory=dict)
    aliased: set[Slot] = field(default_factory=set)


@dataclass
class _Carry:
    """The carried values of one attempt: structures and leaf types, in order."""

    merger: Merger
    shapes: dict[Slot, Shape]

    @property
    def types(self) -> list[TileType]:
        return self.merger.types

    def block_args(self) -> list[Value]:
        return [Value(t) for t in self.types]

    def enter(self, ip: Interpreter, snapshot: Snapshot, values: list[Value]) -> None:
        """Bind the carried variables to these leaves."""
        memo: dict[int, Any] = {}
        leaves = [Tile(v) for v in values]
        for slot, shape in self.shapes.items():
            _bind(snapshot, slot, rebuild(shape, leaves, memo))
        _note_joined(ip, self.merger, memo)

    def inits(self) -> list[Value]:
        return [bring_to(p[0], t).value for p, t in zip(self.merger.pairs, self.types, strict=True)]


def run_for(ip: Interpreter, range_: RuntimeRange, target: str, body: Callable[[], None], hint: Iterable[str]) -> None:
    """A counted run-time loop over `target`; `hint` names variables that the body is seen to assign."""
    loc = ip.builder.loc

    def trace(carry: _Carry, snapshot: Snapshot) -> list[Block]:
        counter = Value(scalar(i32), target)
        block = Block([counter, *carry.block_args()])
        carry.enter(ip, snapshot, block.args[1:])
        with ip.region(block, snapshot):
            ip.assign(target, Tile(counter))
            body()
        return [block]

    def emit(carry: _Carry, blocks: list[Block]) -> list[Value]:
        ip.builder.loc = loc
        bounds = [range_.start.value, range_.stop.value, range_.step.value]
        return ip.builder.emit("for", [*bounds, *carry.inits()], blocks, kind=range_.kind, stages=range_.stages)

    _run_loop(ip, [target, *hint], trace, emit, target)


def run_while(ip: Interpreter, test: Callable[[], Any], body: Callable[[], None], hint: Iterable[str]) -> None:
    """A run-time while loop."""
    loc = ip.builder.loc

    def trace(carry: _Carry, snapshot: Snapshot) -> list[Block]:
        before, after = Block(carry.block_args()), Block(carry.block_args())
        carry.enter(ip, snapshot, before.args)
        entry = Snapshot(ip.frames)
        with ip.region(before, entry):
            condition = as_tile(test())
            if entry.changes():
                raise CaptureError("the condition of a run-time while changes a variable", hint="change it in the body")
            ip.builder.emit("condition", [condition.value, *before.args])
        carry.enter(ip, snapshot, after.args)
        with ip.region(after, snapshot):
            body()
        return [before, after]

    def emit(carry: _Carry, blocks: list[Block]) -> list[Value]:
        ip.builder.loc = loc
        return ip.builder.emit("while", carry.inits(), blocks)

    _run_loop(ip, hint, trace, emit, None)


def _run_loop(
    ip: Interpreter,
    hint: Iterable[str],
    trace: Callable[[_Carry, Snapshot], list[Block]],
    emit: Callable[[_Carry, list[Block]], list[Value]],
    target: str | None,
) -> None:
    loc = ip.builder.loc
    snapshot = Snapshot(ip.frames)
    counter = Slot(id(ip.frame), target) if target else None
    plan = _first_plan(ip, snapshot, hint, counter)
    while True:
        carry = _make_carry(snapshot, plan)
        for slot, poison in plan.local.items():
            snapshot.assign(slot, poison)
        blocks = trace(carry, snapshot)
        changed = [s for s in snapshot.changes() if s != counter]
        finals = {slot: snapshot.current(slot) for slot in dict.fromkeys([*carry.shapes, *changed])}
        if _plan_holds(ip, snapshot, plan, carry, finals):
            break
        snapshot.restore()
    ip.builder.loc = loc
    _finish(ip, blocks[-1], carry, finals)
    snapshot.restore()
    results = [Tile(v) for v in emit(carry, blocks)]
    memo: dict[int, Any] = {}
    for slot, shape in carry.shapes.items():
        _bind(snapshot, slot, rebuild(shape, results, memo))
    _poison_locals(snapshot, plan, carry, finals, counter)
    _note_joined(ip, carry.merger, memo)


def _first_plan(ip: Interpreter, snapshot: Snapshot, hint: Iterable[str], counter: Slot | None) -> _Plan:
    """Assume that assigned variables which hold run-time values now are carried: right at once for most loops."""
    plan = _Plan()
    for name in sorted(set(hint)):
        owner = ip.frame.owner(name)
        slot = Slot(id(owner), name)
        value = owner.vars.get(name, UNBOUND) if owner else UNBOUND
        if slot == counter or isinstance(value, Poison) or not has_tile(value):
            continue
        with suppress(Mismatch):
            Merger(in_loop=True).merge(value, value)
            plan.carried[slot] = value
    return plan


def _make_carry(snapshot: Snapshot, plan: _Plan) -> _Carry:
    merger = Merger(True, snapshot.contents_before(), dict(plan.contents))
    shapes = {slot: merger.merge(snapshot.before(slot), other) for slot, other in plan.carried.items()}
    return _Carry(merger, shapes)


def _plan_holds(ip: Interpreter, snapshot: Snapshot, plan: _Plan, carry: _Carry, finals: dict[Slot, Any]) -> bool:
    """Correct the plan for each variable that did not behave as assumed; true if all did."""
    holds = True
    for slot, final in finals.items():
        before = snapshot.before(slot)
        if slot in plan.local or before is UNBOUND or isinstance(before, Poison):
            continue
        if slot in carry.shapes and _fits_carry(snapshot, plan, slot, final):
            continue
        holds = False
        _correct(snapshot, plan, slot, final)
    if not holds:
        plan.contents.update(snapshot.contents_now())
    return holds and _aliases_hold(ip, snapshot, plan, carry, finals)


def _aliases_hold(ip: Interpreter, snapshot: Snapshot, plan: _Plan, carry: _Carry, finals: dict[Slot, Any]) -> bool:
    """Whether variables share lists at the end of the body just as was assumed for its start."""
    merger = Merger(True, snapshot.contents_before())
    actual = {slot: merger.merge(snapshot.before(slot), finals[slot]) for slot in carry.shapes}
    wrong = [slot for slot, shape in carry.shapes.items() if not shape.matches(actual[slot])]
    if wrong:
        plan.contents.update(snapshot.contents_now())
    for slot in wrong:
        plan.carried[slot] = finals[slot]
        if slot in plan.aliased:
            plan.carried.pop(slot)
            plan.local[slot] = Poison(
                "shares a list with another variable in some iterations of a run-time loop", "give each its own list"
            )
        plan.aliased.add(slot)
    if wrong:
        return False
    pairs = zip(carry.merger.containers, merger.containers, strict=True)
    if any(ip.joined.holds(final) and not ip.joined.holds(assumed) for (_, assumed, _), (_, final, _) in pairs):
        plan.carried.update((slot, finals[slot]) for slot in carry.shapes)  # so that the next attempt knows
        plan.contents.update(snapshot.contents_now())
        return False
    return True


def _fits_carry(snapshot: Snapshot, plan: _Plan, slot: Slot, final: Any) -> bool:
    """Whether the value at the end of the body has the structure and leaf types that were assumed."""
    if isinstance(final, Poison) or final is UNBOUND:
        return False
    before, contents = snapshot.before(slot), snapshot.contents_before()
    expected, actual = Merger(True, contents, plan.contents), Merger(True, contents)
    try:
        matches = expected.merge(before, plan.carried[slot]).matches(actual.merge(before, final))
    except Mismatch:
        return False
    return matches and expected.types == actual.types


def _correct(snapshot: Snapshot, plan: _Plan, slot: Slot, final: Any) -> None:
    """Carry the slot with the type that `final` asks for; local to the body if there is no such type."""
    plan.carried.pop(slot, None)
    if isinstance(final, Poison):
        plan.local[slot] = final
        return
    try:
        if final is UNBOUND:
            raise Mismatch("it is deleted in the body")
        merger = Merger(True, snapshot.contents_before())
        asked = (merger.merge(snapshot.before(slot), final), merger.types)
        if any(asked[0].matches(shape) and asked[1] == types for shape, types in plan.tried.get(slot, ())):
            raise Mismatch("its type changes from one iteration to the next")
        plan.tried.setdefault(slot, []).append(asked)
        plan.carried[slot] = final
    except Mismatch as mismatch:
        plan.local[slot] = Poison(
            f"changes its type in a run-time loop: {mismatch}",
            "give it one type: convert the initial value, or use another name",
        )


def _finish(ip: Interpreter, block: Block, carry: _Carry, finals: dict[Slot, Any]) -> None:
    """End the body with the next iteration's values."""
    ends: dict[int, Any] = {}
    for slot, shape in carry.shapes.items():
        ends.update(leaves_of(shape, finals[slot]))
    with ip.builder.inside(block):
        leaves = [bring_to(ends[i], t).value for i, t in enumerate(carry.types)]
        ip.builder.emit("yield", leaves)


def _poison_locals(
    snapshot: Snapshot, plan: _Plan, carry: _Carry, finals: dict[Slot, Any], counter: Slot | None
) -> None:
    hint = "assign it before the loop"
    for slot in [*finals, *([counter] if counter else [])]:
        if slot in carry.shapes:
            continue
        if slot in plan.local:
            snapshot.assign(slot, plan.local[slot])
        elif slot == counter or snapshot.before(slot) is UNBOUND:
            reason = "is assigned only inside a run-time loop, which may run zero times"
            snapshot.assign(slot, Poison(reason, hint))
