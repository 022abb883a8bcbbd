"""Products by the 4-wave interleave: the whole loop is one block of assembly, with every register allocated here.

What the compiler gives and takes are operands of the block: accumulators in the very registers that the allocator
chose, fragments as results that nobody wants, addresses and counts in registers of the compiler's choice. So it
knows all that the block touches, and no clobber list or register limit has to keep it away. Order, waits and wait
states are the schedule's, which is checked before it is emitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warpwave.backends.amd.arch import WAVE
from warpwave.backends.amd.lower.bursts import ELSEWHERE, Bursts
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import MAX_SHARED_M0, ROUND, DirectLoop, Fetch, declare_places, open_fetch
from warpwave.backends.amd.lower.mma import Product
from warpwave.backends.amd.lower.moving import count_whole
from warpwave.backends.amd.lower.operands import Operand, is_transposing, row_addresses, transposed_lanes
from warpwave.backends.amd.plan import INTERLEAVE
from warpwave.backends.amd.rates import slowest_load
from warpwave.backends.amd.schedule.allocate import Ranges, allocate, parse_ranges, ranges_text, span
from warpwave.backends.amd.schedule.check import check_schedule
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Held,
    Idle,
    LoadDirect,
    Op,
    Part,
    Pointer,
    Read,
    Scalar,
    Schedule,
    Wait,
)
from warpwave.backends.amd.schedule.interleave import (
    LOADS_A_POINTER,
    Half,
    Quadrants,
    flight,
    interleave,
    one_by_one,
)
from warpwave.backends.amd.schedule.registers import cells_of
from warpwave.tiles.errors import InternalError, TileValueError, UnsupportedError

QUARTERS = (2, 2)
ROW_READ, TRANSPOSING_READ = 16, 8  # bytes that a lane gets
TAB = "\\t"  # before instructions, as in the compiler's own text


class InterleavedLoop(DirectLoop):
    """A product that four waves compute by a generated, register-allocated schedule."""

    lw: AmdLowering

    def emit(self) -> None:
        """Steps with whole tiles in one block; what is left one by one, of which only loading is the compiler's."""
        lw = self.lw
        bursts = self._bursts()
        schedule, single = self._schedules(bursts)
        lw.plan.schedules += [schedule, single]
        pinned = ", ".join(f"{tile.name} {ranges_text(tile.pinned)}" for tile in schedule.registers)
        lw.plan.reasons.append(f"{self.op.loc}: {INTERLEAVE}, one wave on each SIMD; registers: {pinned}")
        block = _Block(self, bursts, schedule)
        block.open()
        lw.enter_region()
        block.hold_accumulators()
        with lw.body.block(f"if ({block.done})"):
            block.emit()
        block.hold_accumulators()
        with lw.body.block(f"if ({block.done} < {self.trips})"):
            self._one_by_one(replace(block, schedule=single))
        block.hold_accumulators()
        lw.unfinished_reads = True

    def _one_by_one(self, block: _Block) -> None:
        lw, counter = self.lw, self.lw.fresh("iteration")
        fetches = [open_fetch(lw, self.op, load) for load in self.ring]
        for fetch in fetches:
            declare_places(lw, fetch)
        with lw.body.block(f"for (int {counter} = {block.done}; {counter} < {self.trips}; ++{counter})"):
            lw.body.line("workgroup_barrier();")
            self.coordinates_at(counter)
            lw.body.line("const int stage = 0;")
            for fetch in fetches:
                self.fetch_part(fetch)
            lw.body.line("stage_barrier<0>();")
            block.emit_step()

    def _bursts(self) -> Bursts:
        """The product in quadrants; an error that says why where that cannot be."""
        bursts = Bursts(self.lw, self.op, self.ring, self.stages, QUARTERS)
        why, hint = _obstacle(bursts)
        if why:
            raise UnsupportedError(
                f"schedule={INTERLEAVE!r} does not apply to this loop: {why}", loc=self.op.loc, hint=hint
            )
        return bursts

    def _schedules(self, bursts: Bursts) -> tuple[Schedule, Schedule]:
        """For whole tiles and for others, with the same registers; both proven sound."""
        lw, loop = self.lw, _quadrants(bursts)
        found = interleave(loop)
        schedule = allocate(found, lw.target, self._by_hand(found))
        loose = tuple(replace(tile, pinned=()) for tile in schedule.registers[:4])
        single = replace(one_by_one(loop), registers=(*loose, *schedule.registers[4:]))
        for each in (schedule, single):
            check_schedule(each, lw.target)
        return schedule, single

    def _by_hand(self, schedule: Schedule) -> dict[str, Ranges]:
        """Tiles that the user has pinned."""
        given = parse_ranges(self.lw.plan.pin, self.op.loc)
        names = [tile.name for tile in schedule.registers]
        unknown = sorted(set(given) - set(names))
        if unknown:
            hint = f"register tiles of this schedule are {', '.join(names)}"
            raise TileValueError(f"pin= names {unknown[0]!r}, which nothing has", loc=self.op.loc, hint=hint)
        results = [name for name in given if name.startswith("c") and any(first < 256 for first, _ in given[name])]
        if results:
            hint = f"write {results[0]}=a0-a63, or leave {results[0]} out"
            raise TileValueError(f"pin= puts the accumulator {results[0]} elsewhere", loc=self.op.loc, hint=hint)
        return given


def _obstacle(bursts: Bursts) -> tuple[str, str]:
    """Why a loop cannot be in quadrants, and what to do; empty if it can."""
    lw, products = bursts.lw, bursts.products
    drop = "drop schedule="
    if not bursts.is_direct():
        return f"{lw.target.name} cannot load 16 bytes a lane straight to LDS", drop
    if lw.waves != lw.target.simds_per_cu:
        return f"it needs 4 waves, there are {lw.waves}", "drop waves=, or pass waves=4"
    if bursts.stages < 2:
        return "only one step's tiles fit the LDS", "use smaller tiles or a smaller depth of the step"
    others = [op for op in (*bursts.roles.start, *bursts.roles.after)]
    if len(products) != 1 or others or any(bursts.roles.before) or products[0].in_registers:
        return "its body is more than one product of two loaded tiles", "use schedule='ping-pong', or drop schedule="
    operands = bursts.shared_operands(products[0])
    if {o.value for o in operands} != {load.op.result for load in bursts.ring}:
        return "an operand of the product is not loaded by the loop", drop
    if any(not (o.depth_last or is_transposing(lw, o)) or o.is_widened or o.order.together > 1 for o in operands):
        return "fragments of an operand are not what reads from LDS bring", "use another format, or drop schedule="
    if any(o.order.run(o.dtype) % _run(o) or o.order.reach > o.depth for o in operands):
        return "fragments are not whole reads", "use a depth of the step that the instruction divides"
    if not all(_splits(bursts, o) for o in operands):
        return "its tiles do not split into quarters of whole loads", "use larger tiles, such as 256 x 256 x 64"
    if min(len(o.places) for o in operands) < 4:
        return "its quadrants have too few matrix instructions for the memory's", "use larger tiles"
    rows = (o for o in operands if o.depth_last)
    if any(any(bursts.load_of(o.value).shared.masks[o.mfma.m.bit_length() - 1 :]) for o in rows):
        return "blocks of rows are swizzled differently", "use a depth of the step of 128 bytes"
    if any(_last_offset(bursts, o) > lw.target.lds_offset_bytes - 1 for o in operands):
        return "a ring of tiles is longer than the offsets of LDS instructions reach", "use fewer stages"
    loop = _quadrants(bursts)
    there, needed = flight(loop), slowest_load(lw.target)
    if min(loop.a.parts, loop.b.parts) == 1 and there < needed:
        why = f"tiles that are loaded whole would be in flight for {there} clocks, a load may take {needed}"
        return why, "use schedule='ping-pong', larger tiles, or more stages"
    return "", ""


def _last_offset(bursts: Bursts, operand: Operand) -> int:
    load = bursts.load_of(operand.value)
    first = (bursts.stages - 1) * load.stage_bytes
    if operand.depth_last:
        return first + operand.places[-1] * load.shared.pitch
    return first + max(operand.firsts(_run(operand))) * load.shared.pitch + operand.places[-1] * operand.dtype.nbytes


def _run(operand: Operand) -> int:
    """Elements of depth that a read brings a lane."""
    return (ROW_READ if operand.depth_last else TRANSPOSING_READ) // operand.dtype.nbytes


def _splits(bursts: Bursts, operand: Operand) -> bool:
    """Whether halves are read by whole blocks, and loaded by whole instructions of all waves, together if they must."""
    if operand.depth_last:
        return bursts.splits(operand, QUARTERS)
    blocks, load = len(operand.places), bursts.load_of(operand.value)
    whole = operand.places == [i * operand.mfma.m for i in range(blocks)]
    return whole and blocks % 2 == 0 and load.stage_bytes % (ROUND * bursts.lw.waves) == 0


def _quadrants(bursts: Bursts) -> Quadrants:
    lw, product = bursts.lw, bursts.products[0]
    a, b = _half(bursts, product.first), _half(bursts, product.second)
    result = product.mfma.m * product.mfma.n // WAVE
    return Quadrants(lw.target.name, a, b, bursts.stages, product.mfma.passes, result, ELSEWHERE, bursts.op.loc)


def _half(bursts: Bursts, operand: Operand) -> Half:
    part, load = bursts.part(operand, 0), bursts.load_of(operand.value)
    fragment = part.per_lane * part.dtype.nbytes
    parts = 2 if operand.depth_last else 1
    nbytes = load.stage_bytes // parts
    return Half(
        bursts.tile_names[operand.value],
        len(part.places),
        len(part.order.merged),
        fragment // 4,
        part.per_lane // _run(operand),
        nbytes // (ROUND * bursts.lw.waves),
        nbytes,
        parts,
    )


@dataclass
class _Block:
    """The block of assembly of one loop, and what goes into it."""

    loop: InterleavedLoop
    bursts: Bursts
    schedule: Schedule
    inputs: list[str] = field(default_factory=list)
    product: Product = field(init=False)
    operands: dict[str, Operand] = field(init=False)
    fetches: dict[str, list[Fetch]] = field(default_factory=dict)
    done: str = ""

    def __post_init__(self) -> None:
        self.product = self.bursts.products[0]
        self.operands = {self.bursts.tile_names[o.value]: o for o in (self.product.first, self.product.second)}

    def open(self) -> None:
        """Declare each half's loads, and how many of the first steps go through the block, as `done`."""
        loop, lw, bursts = self.loop, self.loop.lw, self.bursts
        loop.coordinates_at("0")
        for name, operand in self.operands.items():
            parts = next(tile.parts for tile in self.schedule.shared if tile.name == name)
            chunk = bursts.runs(operand) if parts > 1 else 0
            whole = open_fetch(lw, loop.op, bursts.load_of(operand.value), parts, chunk)
            self.fetches[name] = [whole.of_part(part, lw.fresh) for part in range(parts)]
        moving = [parts[0].moving for parts in self.fetches.values()]
        self.done = count_whole(lw, moving, loop.trips, 1)
        for m in moving:
            reach = f"{m.tile.shape[0]} * {m.first.stride(0)} * {m.tile.dtype.nbytes}"
            lw.body.line(f"{self.done} = steps_in_buffer({self.done}, {m.advance}, {reach});")
        possible = " && ".join(parts[0].possible for parts in self.fetches.values())
        lw.body.line(f"if (!({possible} && {self.done} >= {self.schedule.tail})) {self.done} = 0;")

    def hold_accumulators(self) -> None:
        """In registers of the kind that the block needs; else the compiler moves all of them where ways meet."""
        (accumulator,) = self.loop.names
        self.loop.lw.body.line(f'EACH(i, {self._blocks}) asm("" : "+a"({accumulator}.v[i]));')

    def emit(self) -> None:
        """The steps that are done here."""
        loop, schedule, line = self.loop, self.schedule, self.loop.lw.body.line
        for fetch in (fetch for parts in self.fetches.values() for fetch in parts):
            declare_places(loop.lw, fetch)
        line(f"int rounds = ({self.done} - {schedule.tail}) / {schedule.period};")
        line(f"const int left = {self.done} - rounds * {schedule.period};")
        line("int kept, at_0, at_1;")
        self._statement(self._loop_text(), ['"+&s"(rounds)', '"=&s"(kept)', '"=&s"(at_0)', '"=&s"(at_1)'])

    def emit_step(self) -> None:
        """What a step does after its tiles have landed: the body's last cluster."""
        self.hold_accumulators()
        self._statement([*self._settled(), *self._clusters(self.schedule.body[-1:]), *self._settled()], [])
        self.hold_accumulators()

    def _statement(self, text: list[str], outputs: list[str]) -> None:
        line = self.loop.lw.body.line
        outputs = [*outputs, *self._accumulators(), *self._fragments()]
        line("asm volatile(")
        for instruction in text:
            line(f'  "{instruction if instruction.endswith(":") else TAB + instruction}\\n"')
        line(f"  : {', '.join(outputs)}")
        line(f"  : {', '.join(self.inputs)}")
        line('  : "scc", "memory");')
        self.inputs.clear()

    def _settled(self) -> list[str]:
        """Wait states after which any result may be used: the compiler does not see what comes out of products."""
        return _idle(self.loop.lw.target.hazards.reach)

    # -- operands -------------------------------------------------------------------------------------

    @property
    def _blocks(self) -> int:
        return len(self.product.first.places) * len(self.product.second.places)

    def _accumulators(self) -> list[str]:
        """Each block of the result, the loop's only carried value, in its registers or in those of the compiler."""
        (name,) = self.loop.names
        found = [""] * self._blocks
        for tile in self.schedule.registers[:4]:
            for piece in range(tile.pieces):
                where = f"{{{self._registers(Held(tile.name, None, (piece,)))}}}" if tile.pinned else "a"
                number = self._number(tile.name, piece)
                found[number] = f'"+{where}"({name}.v[{number}])'
        return found

    def _number(self, quadrant: str, piece: int) -> int:
        """Of a block of the result, as the compiler counts them."""
        rows, cols = len(self.product.first.places) // 2, len(self.product.second.places) // 2
        row, col = int(quadrant[1]) * rows + piece // cols, int(quadrant[2]) * cols + piece % cols
        return row * 2 * cols + col

    def _fragments(self) -> list[str]:
        """The halves' registers, whose content is nobody's afterwards."""
        found = []
        for tile in self.schedule.registers[4:]:
            for first, last in tile.pinned:
                name = f"{tile.name}_{first}"
                self.loop.lw.body.line(f"vec<u32, {last - first + 1}> {name};")
                found.append(f'"=&{{{span(first, last)}}}"({name})')
        return found

    def _input(self, constraint: str, name: str, text: str) -> str:
        """The assembly's name for a value."""
        operand = f'[{name}]"{constraint}"({text})'
        if operand not in self.inputs:
            self.inputs.append(operand)
        return f"%[{name}]"

    def _registers(self, held: Held) -> str:
        tile = next(t for t in self.schedule.registers if t.name == held.register)
        if not tile.pinned:  # an accumulator; they are the statement's first operands
            return f"%{self._number(held.register, held.pieces[0])}"
        numbers = [cell[1] for piece in held.pieces for cell in cells_of(tile, piece)]
        return span(numbers[0], numbers[-1])

    # -- text -----------------------------------------------------------------------------------------

    def _loop_text(self) -> list[str]:
        """Prologue, rounds, and the epilogue for what is left."""
        schedule = self.schedule
        loop, done = ".Lww_round%=", ".Lww_done%="
        left = self._input("s", "left", "left")
        ends = {count: f".Lww_left_{count}_%=" for count in schedule.epilogues}
        text = ["s_mov_b32 %1, m0", "s_mov_b32 %2, 0", "s_mov_b32 %3, 0", *self._settled()]
        text += [*self._clusters(schedule.prologue), "s_cmp_lt_i32 %0, 1", f"s_cbranch_scc1 {loop}_end", f"{loop}:"]
        text += [*self._clusters(schedule.body), "s_sub_u32 %0, %0, 1", "s_cmp_lg_u32 %0, 0"]
        text += [f"s_cbranch_scc1 {loop}", f"{loop}_end:"]
        for count, label in ends.items():
            text += [f"s_cmp_eq_u32 {left}, {count}", f"s_cbranch_scc1 {label}"]
        for count, clusters in schedule.epilogues.items():
            text += [f"{ends[count]}:", *self._clusters(clusters), f"s_branch {done}"]
        return [*text, f"{done}:", "s_mov_b32 m0, %1", *self._settled()]

    def _clusters(self, clusters: tuple[Cluster, ...]) -> list[str]:
        return [text for cluster in clusters for op in cluster.ops for text in self._op(op)]

    def _op(self, op: Op) -> list[str]:
        if isinstance(op, Compute):
            return [self._product(op)]
        if isinstance(op, Read):
            return [self._read(op)]
        if isinstance(op, LoadDirect):
            return [self._load(op)]
        if isinstance(op, Pointer):
            return [self._pointer(op)]
        if isinstance(op, Scalar):
            return [self._scalar(op)]
        if isinstance(op, Wait):
            counters = (("vmcnt", op.vm), ("lgkmcnt", op.lgkm))
            return ["s_waitcnt " + " ".join(f"{name}({n})" for name, n in counters if n is not None)]
        if isinstance(op, Barrier):
            return ["s_barrier"]
        if isinstance(op, Idle):
            return _idle(op.states)
        raise InternalError(f"{type(op).__name__} is not emitted as assembly", loc=self.loop.op.loc)

    def _product(self, op: Compute) -> str:
        mfma, (block,) = self.product.mfma, op.writes
        result = self._registers(block)
        left, right = (self._registers(held) for held in op.reads)
        return f"{mfma.mnemonic} {result}, {left}, {right}, {result}{self._formats()}"

    def _formats(self) -> str:
        """Which 8-bit formats the operands have, where the instruction asks."""
        mfma = self.product.mfma
        if not mfma.mnemonic.endswith("f8f6f4"):
            return ""
        codes = {"fp8e4m3": 0, "fp8e5m2": 1}
        return f" cbsz:{codes[mfma.a]} blgp:{codes[mfma.b]}"

    def _read(self, op: Read) -> str:
        operand, (piece,) = self.operands[op.value.tile], op.pieces
        half = len(operand.places) // 2
        reads = operand.per_lane // _run(operand)
        step, inside = divmod(piece, half * reads)
        block, number = divmod(inside, reads)
        block += int(op.register[1]) * half
        return (self._read_rows if operand.depth_last else self._read_columns)(op, block, step * reads + number)

    def _read_rows(self, op: Read, block: int, read: int) -> str:
        """Along the rows, of the lane's own."""
        operand, load = self.operands[op.value.tile], self.bursts.load_of(self.operands[op.value.tile].value)
        lanes = row_addresses(self.loop.lw, operand, load.shared, operand.firsts(_run(operand)))
        address = self._input("v", f"{operand.which}_at_{read}", f"lds_address(lds) + {lanes}[{read}]")
        offset = self._slot(op.value) * load.stage_bytes + operand.places[block] * load.shared.pitch
        return f"ds_read_b128 {self._registers(Held(op.register, None, op.pieces))}, {address} offset:{offset}"

    def _read_columns(self, op: Read, block: int, read: int) -> str:
        """Transposing."""
        operand, load = self.operands[op.value.tile], self.bursts.load_of(self.operands[op.value.tile].value)
        lanes = transposed_lanes(self.loop.lw, operand, load.shared, _run(operand))
        index, offset = lanes.place(operand, load.shared, _run(operand), block, read)
        address = self._input("v", f"{operand.which}_at_{index}", f"lds_address(lds) + {lanes.name}[{index}]")
        where = f"{self._registers(Held(op.register, None, op.pieces))}, {address}"
        offset += self._slot(op.value) * load.stage_bytes
        return f"ds_read_b64_tr_b{operand.dtype.bits} {where} offset:{offset}"

    def _load(self, op: LoadDirect) -> str:
        which, (i,) = self.operands[op.value.tile].which, op.pieces
        assert op.pointer is not None  # else nobody sets M0
        fetch = self.fetches[op.value.tile][op.value.part]
        offset = self._input("v", f"{which}{op.value.part}_from_{i}", f"{fetch.offsets}[{i}]")
        tensor = self._input("s", f"{which}_tensor", f"buffer_words({fetch.moving.next})")
        moved = "%2" if which == "a" else "%3"
        return f"buffer_load_dwordx4 {offset}, {tensor}, {moved} offen offset:{(i - op.pointer) * ROUND} lds"

    def _scalar(self, op: Scalar) -> str:
        """The pointer of a tensor's loads moves on by a step."""
        tile = op.name.removeprefix("next ")
        which = self.operands[tile].which
        advance = self._input("s", f"{which}_step", f"(int){self.fetches[tile][0].moving.advance}")
        moved = "%2" if which == "a" else "%3"
        return f"s_add_u32 {moved}, {moved}, {advance}"

    def _pointer(self, op: Pointer) -> str:
        tile, part = op.value.tile, op.value.part
        fetch = self.fetches[tile][part]
        text = f"same_for_all((int)lds_address(lds) + {fetch.staged.shared.base} + {fetch.slot('0')})"
        begin = self._input("s", f"{self.operands[tile].which}{part}_to", text)
        return f"s_add_u32 m0, {begin}, {self._slot(op.value) * fetch.staged.stage_bytes + op.piece * ROUND}"

    def _slot(self, value: Part) -> int:
        """Rounds go through all slots, so that a step's slot is a constant of the code."""
        return value.step % self.loop.stages


def _idle(states: int) -> list[str]:
    """Instructions that pass so many wait states, 16 at most each."""
    return [f"s_nop {min(16, states - done) - 1}" for done in range(0, states, 16)]


assert MAX_SHARED_M0 == LOADS_A_POINTER  # the schedule sets M0 for as many loads as share it
