"""The computing warps' side of a ring: waits before first uses, stages handed back after last ones.

Products are asynchronous: a stage that one reads is handed back when its result is known to be complete. Two kinds
of loops keep the tensor cores busy across iterations. A product that only adds to a carried accumulator (a matrix
product's) stays in flight until the next one is issued. A last product that takes what the rest of the iteration
computes (attention's second one) is issued one iteration later, behind the next iteration's first product, so that
both run under the arithmetic between them (FlashAttention-3, arXiv 2407.08608, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.producer import advance
from warpwave.backends.nvidia.lower.rings import Ring, RingLoop, at_stage, reads, users
from warpwave.backends.nvidia.lower.turns import Lag, await_turn, can_lag, pass_turn
from warpwave.tiles.ir import Block, Op
from warpwave.tiles.simt.assign import is_laid_out
from warpwave.tiles.simt.control import assign_all
from warpwave.tiles.simt.pipeline import Loop, staged_loads


def consume(lw: NvidiaLowering, op: Op) -> None:
    """The loop of the computing warps."""
    consumer = _consumer(lw, op)
    consumer.loop.declare()
    lw.enter_region()
    loads, stages = len(consumer.loads), consumer.ring.stages
    lw.plan.reasons.append(f"{op.loc}: {loads} loads ahead through {stages} stages by a producer warp")
    delayed = consumer.late_product()
    adding = consumer.adding_product()
    if delayed is not None:
        lw.plan.reasons.append(f"{delayed.loc}: one iteration late, under the arithmetic of the next")
        if lw.plan.turns:
            lw.plan.reasons.append(f"{delayed.loc}: warpgroups issue products in turns")
        consumer.emit_delayed(delayed, _next_loop(consumer, delayed))
    elif adding is not None:
        lw.plan.reasons.append(f"{adding.loc}: in flight until the next iteration's is issued")
        consumer.emit_adding(adding)
    else:
        consumer.emit()


def _consumer(lw: NvidiaLowering, op: Op) -> _Consumer:
    loads, ring = staged_loads(op.regions[0]), lw.rings[op]
    return _Consumer(lw, op, ring, loads, RingLoop(lw, op, ring.loads(loads), ring.stages))


def _next_loop(consumer: _Consumer, product: Op) -> Op | None:
    """The pipeline that goes on where this one ends, with the same products on the same ring; None if there is none."""
    lw, op = consumer.lw, consumer.op
    after = next((o for o in lw.home[op].ops if o in lw.rings and o.operands[3:] == op.results), None)
    if after is None or lw.rings[after] is not consumer.ring or any(lw.uses[r] != 1 for r in op.results):
        return None
    other = _consumer(lw, after).late_product()
    if other is None or not _is_continued(lw, product, other):
        return None
    places = [o.regions[0].terminator.operands.index(p.result) for o, p in ((op, product), (after, other))]
    return after if places[0] == places[1] else None


def _is_continued(lw: NvidiaLowering, product: Op, other: Op) -> bool:
    """Whether one product's first operand can wait in the other's variable, and both read the same tile of the ring."""
    a, b = (p.operands[1] for p in (product, other))
    same = lw.plan.products[product] == lw.plan.products[other] and product.attrs == other.attrs
    return (
        same and a.type == b.type and lw.layout(a) == lw.layout(b) and _tile_read(lw, product) == _tile_read(lw, other)
    )


def _tile_read(lw: NvidiaLowering, product: Op) -> int | None:
    """Which of its loop's loads the product's second operand is."""
    loads = [load.result for load in staged_loads(lw.home[product.result])]
    return loads.index(product.operands[2]) if product.operands[2] in loads else None


def consume_once(lw: NvidiaLowering, load: Op) -> None:
    """A tile that the producer loads once for each block: it has landed."""
    ring = lw.rings[load]
    lw.shared[load.result] = at_stage(ring, 0)
    lw.body.line(f"wait({ring.full(0)}, {ring.phase(0)});")


def hand_back_singles(lw: NvidiaLowering, ops: list[Op], place: int) -> None:
    """Tiles of a block whose last user is the op at this place: the next block's may come."""
    for load in (op for op in ops if op.name == "load" and op in lw.rings):
        last = max(users(Block([], ops), load))
        if last == place:
            lw.drain()
            release(lw, lw.rings[load], 0)
            advance(lw, lw.rings[load], 0)


def release(lw: NvidiaLowering, ring: Ring, group: int, stage: str = "") -> None:
    """This warp has read a stage of a group."""
    lw.body.line("__syncwarp();")
    barrier, cluster = ring.empty(group, stage), lw.plan.cluster
    if cluster > 1:
        lw.body.line(f"if (lane < {cluster}) ptx::mbarrier_free_in((u32){barrier}, lane);")
    else:
        lw.body.line(f"if (lane == 0) arrive({barrier});")


@dataclass(frozen=True)
class Late:
    """A product left over by a loop: the variable with its first operand, and the C condition that there is one."""

    held: str
    exists: str = ""


@dataclass
class _Consumer:
    """`waiting` are groups that a product still reads, with the variable of its result."""

    lw: NvidiaLowering
    op: Op
    ring: Ring
    loads: list[Op]
    loop: Loop
    waiting: list[tuple[int, str]] = field(default_factory=list)

    @property
    def region(self) -> Block:
        return self.op.regions[0]

    # -- loops ----------------------------------------------------------------------------------------

    def emit(self) -> None:
        """Nothing is in flight from one iteration to the next."""
        lw, counter = self.lw, self.lw.fresh("iteration")
        with lw.body.block(f"for (int {counter} = 0; {counter} < {self.loop.trips}; ++{counter})"):
            self._begin(counter)
            self._ops(self.region.ops[:-1])
            assign_all(lw, self.loop.names, self.op.results, self.region.terminator.operands)
            self._end()

    def emit_adding(self, product: Op) -> None:
        """The product of the iteration before is complete when this one's has been issued."""
        lw, counter = self.lw, self.lw.fresh("iteration")
        lw.flying = {lw.name(v) for v in self.op.results}
        for name in sorted(lw.flying):
            lw.body.line(f"pin({name});")
        groups = self._groups_of(product)
        lag = Lag(lw, self.loop.trips) if lw.plan.lag and can_lag(lw, self.ring) else None
        if lag:
            lag.before_loop()
        with lw.body.block(f"for (int {counter} = 0; {counter} < {self.loop.trips}; ++{counter})"):
            self._begin(counter)
            if lag:
                lag.in_loop(counter)
            for op in self.region.ops[:-1]:
                self._wait_for_tiles(op)
                if op not in self.loads:
                    lw.lower_op(op)
            lw.body.line("warpgroup::mma_async_wait<1>();")
            with lw.body.block(f"if ({counter} > 0)"):
                for group in groups:
                    release(lw, self.ring, group, self.ring.before(group))
            for group in groups:
                advance(lw, self.ring, group)
        lw.flying = set()
        if lag:
            lag.after_loop()
        lw.drain()
        with lw.body.block(f"if ({self.loop.trips} > 0)"):
            for group in groups:
                release(lw, self.ring, group, self.ring.before(group))

    def emit_delayed(self, product: Op, after: Op | None) -> None:
        """The first iteration without the product, then each with the one before's, then the last one's.

        A loop that goes on where the one before ended begins with that one's last product, if it had one.
        """
        lw, counter, trips = self.lw, self.lw.fresh("iteration"), self.loop.trips
        late = lw.late.pop(self.op, None) or Late(self._declare_held(product))
        first = next(op for op in self.region.ops if op.name == "mma")
        others = [op for op in self.region.ops[:-1] if op is not product]
        place = others.index(first) + 1
        none = f" && !({late.exists})" if late.exists else ""
        with lw.body.block(f"if ({trips} > 0{none})"):
            self._begin("0")
            self._turn(place, others)
            self._end_turn()
            self._ops(others[place:])
            self._keep(product, late.held)
        start = f"({late.exists} ? 0 : 1)" if late.exists else "1"
        with lw.body.block(f"for (int {counter} = {start}; {counter} < {trips}; ++{counter})"):
            self._begin(counter)
            self._turn(place, others)
            self._issue(product, late.held)
            self._end_turn()
            self._ops(others[place:])
            self._keep(product, late.held)
        lw.enter_region()
        exists = f"{late.exists} || {trips} > 0" if late.exists else f"{trips} > 0"
        if after is not None:
            lw.late[after] = Late(late.held, exists)
            return
        with lw.body.block(f"if ({exists})"):
            self._issue(product, late.held)
            self._end()

    def _turn(self, place: int, ops: list[Op]) -> None:
        """The ops up to the first product; if warpgroups take turns, not before this one's."""
        self._ops(ops[: place - 1])
        if self.lw.plan.turns:
            await_turn(self.lw)
        self._ops(ops[place - 1 : place])

    def _end_turn(self) -> None:
        if self.lw.plan.turns:
            pass_turn(self.lw)

    # -- parts of an iteration ------------------------------------------------------------------------

    def _begin(self, iteration: str) -> None:
        self.loop.count(iteration)
        for index, load in enumerate(self.loads):
            self.lw.shared[load.result] = at_stage(self.ring, index)

    def _ops(self, ops: list[Op]) -> None:
        """Ops in order, each after what it needs has landed; stages go back as soon as they may."""
        lw = self.lw
        for op in ops:
            self._wait_for_tiles(op)
            if op not in self.loads:
                lw.lower_op(op)
            for group in self._last_used_by(op):
                if op.name == "mma" and lw.names.get(op.result) in lw.pending:
                    self.waiting.append((group, lw.names[op.result]))
                else:
                    lw.drain()
                    self._hand_back(group)
            self._hand_back_complete()

    def _end(self) -> None:
        self.lw.drain()
        self._hand_back_complete()
        self.lw.enter_region()

    def _wait_for_tiles(self, op: Op) -> None:
        for number in range(len(self.ring.groups)):
            if self._span(number)[0] == self.region.ops.index(op):
                self.lw.body.line(f"wait({self.ring.full(number)}, {self.ring.phase(number)});")

    def _last_used_by(self, op: Op) -> list[int]:
        place = self.region.ops.index(op)
        return [n for n in range(len(self.ring.groups)) if self._span(n)[1] == place]

    def _span(self, group: int) -> tuple[int, int]:
        """Places in the body of a group's first and last user."""
        found = [place for i in self.ring.groups[group] for place in users(self.region, self.loads[i])]
        return min(found), max(found)

    def _groups_of(self, product: Op) -> list[int]:
        """Groups that nothing but this op uses."""
        place = self.region.ops.index(product)
        return [n for n in range(len(self.ring.groups)) if self._span(n) == (place, place)]

    def _hand_back_complete(self) -> None:
        for group, name in list(self.waiting):
            if name not in self.lw.pending:
                self.waiting.remove((group, name))
                self._hand_back(group)

    def _hand_back(self, group: int) -> None:
        release(self.lw, self.ring, group)
        advance(self.lw, self.ring, group)

    # -- products that may stay in flight -------------------------------------------------------------

    def _carried(self) -> list[tuple[Op, int]]:
        """Products by wgmma whose only use is to be carried on, and as which value."""
        ends = self.region.terminator.operands
        return [
            (op, ends.index(op.result))
            for op in self.region.ops
            if op.name == "mma"
            and op.result in ends
            and self.lw.uses[op.result] == 1
            and self.lw.plan.products[op].engine == "wgmma"
            and self._groups_of(op)
        ]

    def adding_product(self) -> Op | None:
        """The body's only product, if it adds to the accumulator that it carries on, and all tiles are its own."""
        products = [op for op in self.region.ops if op.name == "mma"]
        carried = self._carried()
        if len(products) != 1 or len(carried) != 1 or self.ring.stages < 2:
            return None
        ((product, place),) = carried
        own = product.operands[0] is self.region.args[place + 1] and self.lw.uses[product.operands[0]] == 1
        return product if own and len(self._groups_of(product)) == len(self.ring.groups) else None

    def late_product(self) -> Op | None:
        """The product that runs one iteration late, unless the plan says that none does."""
        return self.delayed_product() if self.lw.plan.overlap else None

    def delayed_product(self) -> Op | None:
        """The body's last product, if it comes after another and adds to what this iteration made of its result."""
        products = [op for op in self.region.ops if op.name == "mma"]
        carried = [(op, place) for op, place in self._carried() if op is products[-1]]
        if len(products) != 2 or not carried or self.ring.stages < 2:
            return None
        product = carried[0][0]
        acc, a = product.operands[:2]
        computed = acc not in self.region.args and self.lw.home[acc] is self.region and self.lw.uses[acc] == 1
        in_registers = is_laid_out(a) and self.lw.home[a] is self.region
        carried_on = self.region.args[carried[0][1] + 1]  # which the late product changes only after the first one
        early = self.region.ops[: self.region.ops.index(products[0]) + 1]
        if not self._groups_of(products[0]) or any(reads(op, carried_on) for op in early):
            return None
        return product if computed and in_registers and self._is_ahead(products[0]) else None

    def _is_ahead(self, first: Op) -> bool:
        """Whether a product needs nothing that the iteration before computes."""
        needed = set(first.operands)
        for op in reversed(self.region.ops[: self.region.ops.index(first)]):
            if any(r in needed for r in op.results):
                needed.update(op.operands)
        return not needed & set(self.region.args[1:])

    def _declare_held(self, product: Op) -> str:
        """The variable in which the product's first operand waits for the next iteration."""
        a = product.operands[1]
        name = self.lw.fresh("held")
        self.lw.body.line(f"{self.lw.value_type(a)} {name};")
        return name

    def _keep(self, product: Op, held: str) -> None:
        """Carry on all values, and instead of the product's result what it is to be added to; and its operand."""
        lw = self.lw
        ends = [product.operands[0] if v is product.result else v for v in self.region.terminator.operands]
        assign_all(lw, self.loop.names, self.op.results, ends)
        lw.body.line(f"{held} = {lw.name(product.operands[1])};")

    def _issue(self, product: Op, held: str) -> None:
        """The product of the iteration before."""
        lw = self.lw
        place = self.region.terminator.operands.index(product.result)
        lw.names[product.operands[0]] = self.loop.names[place]
        lw.names[product.operands[1]] = held
        self._ops([product])
