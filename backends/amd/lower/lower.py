"""From a kernel's IR to HIP C++: dispatch over ops, and the text around the body."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from importlib.resources import files

from warpwave.backends.amd.arch import DIRECT, Target
from warpwave.backends.amd.assign import assign_layouts
from warpwave.backends.amd.gate import check_shared
from warpwave.backends.amd.lower import mma
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.rescaling import lower_mul
from warpwave.backends.amd.plan import BY_GENERATOR, INTERLEAVE, PING_PONG, PRODUCER_CONSUMER, Plan, make_plan
from warpwave.backends.amd.split_depth import split_depth
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, Op, clone, walk
from warpwave.tiles.simt.alignment import definitions
from warpwave.tiles.simt.layout import round_up
from warpwave.tiles.simt.ops import COMMON
from warpwave.tiles.simt.writer import ctype
from warpwave.tiles.types import TensorType

MAX_GRID_RANK = 4

LOWER: dict[str, Callable[[AmdLowering, Op], None]] = {**COMMON, "mma": mma.lower_mma, "mul": lower_mul}


def lower_op(lw: AmdLowering, op: Op) -> None:
    """Emit one op."""
    lw.body.loc = op.loc
    if op.name == "grid":
        _lower_grid(lw, op)
    elif op.regions:
        with lw.shared_scope():
            LOWER[op.name](lw, op)
    else:
        LOWER[op.name](lw, op)


def _lower_grid(lw: AmdLowering, op: Op) -> None:
    """This block's coordinates: the backend chooses the order, so that each XCD's blocks share what they read."""
    last = len(op.results) - 1
    sizes = [f"grid_sizes[{axis}]" for axis in range(last + 1)]
    total = " * ".join(sizes)
    if lw.plan.windowed:
        plane = f"({sizes[-2]} * {sizes[-1]})"
        lw.body.line(f"const int ordered = chiplet_transform(block_id, {total}, order_chunk);")
        window = f"windowed_position(ordered % {plane}, {sizes[-2]}, {sizes[-1]}, order_window)"
        lw.body.line(f"int rest = ordered / {plane} * {plane} + {window};")
    else:
        lw.body.line(f"int rest = contiguous_transform(block_id, {total});")
    for axis in reversed(range(last + 1)):
        name = lw.define(op.results[axis], op.results[axis].name)
        lw.body.line(f"const int {name} = same_for_all(rest % {sizes[axis]});")
        if axis:
            lw.body.line(f"rest /= {sizes[axis]};")


@dataclass(frozen=True)
class Lowered:
    """Generated source and what the host needs to know about it.

    `built_source` is `source` with line directives, which the compiler gets.
    """

    source: str
    built_source: str
    plan: Plan
    shared_bytes: int
    checks: tuple[Op, ...]
    prints: tuple[Op, ...]


def lower(kernel: Kernel, target: Target, options: dict[str, object]) -> Lowered:
    """The whole kernel as HIP C++ for one target."""
    lw = emit(kernel, target, options)
    shared_bytes = lw.peak_shared_bytes + lw.scratch_bytes
    check_shared(lw, shared_bytes)
    text, located = (_text(lw, shared_bytes, body) for body in (lw.body.text(), lw.body.located_text()))
    return Lowered(text, located, lw.plan, shared_bytes, tuple(lw.checks), tuple(lw.prints))


def emit(kernel: Kernel, target: Target, options: dict[str, object]) -> AmdLowering:
    """The body of the kernel, with every tile's layout and place; whether it fits is not looked at."""
    kernel = clone(kernel)
    with_ring_of_two = options.get("schedule") == INTERLEAVE  # whose loads are in flight for more than a step
    if not options.get("stages") and DIRECT in target.direct_to_lds_widths and not with_ring_of_two:
        split_depth(kernel, target, in_turns=options.get("schedule") in (PING_PONG, PRODUCER_CONSUMER))
    plan = make_plan(kernel, target, options)
    lw = AmdLowering(kernel, target, plan, assign_layouts(kernel, plan), definitions(kernel))
    for name, value in zip(kernel.param_names, kernel.params, strict=True):
        lw.names[value] = name + "_"
    grid = next((op for op in kernel.body.ops if op.name == "grid"), None)
    before_grid = kernel.body.ops[: kernel.body.ops.index(grid)] if grid else []
    chained = plan.schedule == PING_PONG and len(plan.mmas) > 1  # its loop needs nearly all registers
    with _barriers_of(lw), ExitStack() as rest:
        for op in kernel.body.ops:
            if op.name != "check" or op not in before_grid:  # launch conditions are the host's
                generated = len(plan.schedules)
                lower_op(lw, op)
                if chained and len(plan.schedules) > generated:
                    rest.enter_context(lw.anew())
    if plan.schedule in BY_GENERATOR and not plan.schedules:
        raise UnsupportedError(
            f"schedule={plan.schedule!r} is for products in a pipelined loop, and {kernel.name} has none",
            loc=kernel.loc,
            hint="load the product's tiles in a loop over ww.pipeline, or drop schedule=",
        )
    return lw


def _barriers_of(lw: AmdLowering) -> AbstractContextManager[None]:
    """What a kernel is lowered in: waves that only load know of no barriers but their loop's."""
    if lw.plan.schedule != PRODUCER_CONSUMER:
        return nullcontext()
    why = "outside its loop waves exchange data, in which producers have no part"
    what = f"schedule={PRODUCER_CONSUMER!r} does not apply to {lw.kernel.name}: {why}"
    return lw.without_barriers(lambda: UnsupportedError(what, loc=lw.kernel.loc, hint="drop schedule="))


def _text(lw: AmdLowering, shared_bytes: int, body: str) -> str:
    kernel = lw.kernel
    parameters, locals_ = _parameters(kernel)
    head = [
        files("warpwave.backends.amd").joinpath("device/prelude.hip").read_text(),
        lw.tables.text(),
        *_variant(kernel),
        "",
        f"KERNEL({lw.plan.threads}, 1)",
        f"void {kernel.name}({', '.join(parameters)}) {{",
        f"  SHARED __attribute__((aligned(128))) static u8 shared_memory[{round_up(max(shared_bytes, 16), 16)}];",
        "  u8 *const lds = shared_memory;",  # of accesses to an array by name, clang forgets the alignment
        f"  u8 *const scratch = lds + {lw.peak_shared_bytes};",
        "  const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread & 63;",
        *_wave(lw.plan),
        "  const int block_id = __builtin_amdgcn_workgroup_id_x();",
        *locals_,
        lw.prologue.text(),
        *(["  clear_shared(lds, sizeof shared_memory, thread, " + f"{lw.threads});"] if lw.has_padding else []),
        body,
        "}",
        "",
    ]
    return "\n".join(head)


def _wave(plan: Plan) -> list[str]:
    """The wave's number; producers, which come last, have the last consumer's but in their loop."""
    number = "__builtin_amdgcn_readfirstlane(thread >> 6)"
    if not plan.producers:
        return [f"  const int wave = {number};"]
    last = plan.waves - 1
    return [f"  const int number = {number}, wave = number < {last} ? number : {last};"]


def _variant(kernel: Kernel) -> list[str]:
    """One bit of WIDE for each tensor: the host looks at strides and alignment and picks the code built for them."""
    tensors = [n for n, v in zip(kernel.param_names, kernel.params, strict=True) if isinstance(v.type, TensorType)]
    lines = ["#ifndef WIDE", "#define WIDE 0xffffffff", "#endif"]
    bits = [f"WIDE >> {i} & 1" if i < 32 else "false" for i in range(len(tensors))]
    return lines + [f"constexpr bool wide_{n} = {bit};" for n, bit in zip(tensors, bits, strict=True)]


def _parameters(kernel: Kernel) -> tuple[list[str], list[str]]:
    """C parameters, all of them scalars and pointers, and the locals that gather those of a tensor."""
    parameters: list[str] = []
    gathered: list[str] = []
    for name, value in zip(kernel.param_names, kernel.params, strict=True):
        if not isinstance(value.type, TensorType):
            parameters.append(f"const {ctype(value.type.dtype)} {name}_")
            continue
        kind, axes = ctype(value.type.dtype), range(value.type.rank)
        parameters += [f"const char *{name}_base", f"const long {name}_offset"]
        parameters += [f"const long {name}_stride{a}" for a in axes] + [f"const int {name}_extent{a}" for a in axes]
        strides = ", ".join(f"{name}_stride{a}" for a in axes)
        extents = ", ".join(f"{name}_extent{a}" for a in axes)
        members = f"{name}_base, {name}_offset, {{{strides}}}, {{{extents}}}"
        gathered.append(f"  const tensor<{kind}, {value.type.rank}> {name}_ = {{{members}}};")
    parameters += [f"const int grid_size{a}" for a in range(MAX_GRID_RANK)]
    parameters += ["const int order_chunk", "const int order_window", "int *status"]
    if any(op.name == "print" for op in walk(kernel.body)):
        parameters.append("u64 *prints")
    gathered.append(f"  const int grid_sizes[] = {{{', '.join(f'grid_size{a}' for a in range(MAX_GRID_RANK))}}};")
    return parameters, gathered
