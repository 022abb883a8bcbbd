"""The ops of a pipelined loop's body by when they happen, and which of its products may leave their step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwave.tiles.ir import Block, Op, Value
from warpwave.tiles.simt.products import ancestors


@dataclass(frozen=True)
class Roles:
    """The ops of a loop's body by when they happen.

    `start` needs nothing of this step's products, `before[i]` happens between product i - 1 and product i because
    that needs it, and nothing in this step needs what comes `after`. With `late` the last product is that of the step
    before, and `before` it is all vector work of the step.
    """

    products: tuple[Op, ...]
    start: tuple[Op, ...]
    before: tuple[tuple[Op, ...], ...]
    after: tuple[Op, ...]
    late: bool = False


def made_late(roles: Roles, body: Block) -> Roles:
    """The last product one step late, where nothing but the next step needs it: then it has no vector work to await."""
    product = roles.products[-1]
    users = [op for op in body.ops if product.result in op.operands]
    yielded = [v for v in body.terminator.operands if v is product.result]
    if len(roles.products) != 2 or not roles.before[-1] or users != [body.terminator] or len(yielded) != 1:
        return roles
    between = tuple(op for op in body.ops if op in (*roles.before[-1], *roles.after))
    return replace(roles, before=(*roles.before[:-1], between), after=(), late=True)


def needs_no_step(body: Block, roles: Roles, ahead: Sequence[Op]) -> bool:
    """Whether nothing but its tiles distinguishes a step's first product from the next one's."""
    made = {result: op for op in roles.start for result in op.results}
    loaded = {result for op in ahead for result in op.results}
    needed = {v for v in roles.products[0].operands if v not in loaded}
    needed |= set(ancestors(needed, made))
    return needed.isdisjoint(body.args)


def roles_of(body: Block, ahead: Sequence[Op]) -> Roles:
    """Sort the ops of a body; loads that run `ahead` have no place in it."""
    rest = [op for op in body.ops if op not in ahead and op.name != "yield"]
    products = [op for op in rest if op.name == "mma"]
    made = {result: op for op in rest for result in op.results}
    later: set[Op] = set(products)
    for op in rest:
        if any(made.get(v) in later for v in op.operands):
            later.add(op)
    placed: set[Op] = {op for op in rest if op not in later} | set(products)
    start = tuple(op for op in rest if op not in later)
    before = []
    for product in products:
        needed = _needed(product, made)
        before.append(tuple(op for op in rest if op in needed and op not in placed))
        placed.update(before[-1])
    return Roles(tuple(products), start, tuple(before), tuple(op for op in rest if op not in placed))


def _needed(op: Op, made: dict[Value, Op]) -> set[Op]:
    return {made[v] for v in ancestors(op.operands, made) if v in made}
