"""`schedule="auto"`: the schedule that a kernel takes, by modelled time and by what can be built.

The fastest is tried first. One that does not apply, or whose code does not fit the registers, gives way to the next,
and `explain()` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.artifacts import Artifact
from warpwave.backends.amd.model.schedules import DEPTH, RESOLUTION, Chain, Product, Ranking, ranking
from warpwave.backends.amd.plan import MULTISTAGE
from warpwave.backends.amd.resources import fits, shortfall
from warpwave.tiles.errors import ResourceError, TileError, UnsupportedError
from warpwave.tiles.ir import Block, Kernel, Op, walk
from warpwave.tiles.simt.pipeline import staged_loads
from warpwave.tiles.simt.products import ancestors, products
from warpwave.tiles.types import TileType

AUTO = "auto"


@dataclass(frozen=True)
class Offer:
    """Schedules to try, first choice first, and why in this order."""

    names: tuple[str, ...]
    why: str = ""


def offered(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Offer:
    """What a kernel may take if the options leave it open.

    Who pins registers has chosen as well: one schedule has them.
    """
    asked = str(options.get("schedule") or AUTO)
    if asked != AUTO or options.get("pin") or not products(kernel):
        return Offer((MULTISTAGE if asked == AUTO else asked,))
    work = _work(kernel, target)
    if work is None:
        why = "nothing is modelled but loops of one product of the two tiles that they load, and chains of two products"
        return Offer((MULTISTAGE,), why)
    found = ranking(work) if all(_is_native(op, target) for op in products(kernel)) else None
    if found is None:
        return Offer(
            (MULTISTAGE,), f"nothing is modelled with operands of {products(kernel)[0].operands[1].tile.dtype}"
        )
    return _ranked(work, found)


def _is_native(product: Op, target: Target) -> bool:
    dtypes = [value.tile.dtype for value in product.operands[1:]]
    return all(not dtype.is_fp8 or dtype.name in target.fp8 for dtype in dtypes)


def _work(kernel: Kernel, target: Target) -> Product | Chain | None:
    """What the kernel's products are to the model, if they are all in pipelined loops of a kind that it has figures of.

    A chain's loop may come twice, as one with and one without a mask do.
    """
    pipelines = [op.regions[0] for op in walk(kernel.body) if op.name == "for" and op.attrs["kind"] == "pipeline"]
    loops = [loop for loop in pipelines if any(op.name == "mma" for op in loop.ops)]
    found = [op for loop in loops for op in loop.ops if op.name == "mma"]
    if not loops or len(found) != len(products(kernel)):
        return None
    if len(found) == 1:
        return _product(found[0], target) if _is_plain(loops[0]) else None
    chains = {_chain(loop, target, masked=any(map(_is_masked, loops))) for loop in loops}
    return chains.pop() if len(chains) == 1 else None


def _is_plain(loop: Block) -> bool:
    """Whether a loop does nothing with the tiles it loads but multiply them."""
    loads = staged_loads(loop)
    others = [op for op in loop.ops if op not in loads and op.name != "mma"]
    works = any(isinstance(r.type, TileType) and r.tile.shape for op in others for r in op.results)
    operands = {v for op in loop.ops if op.name == "mma" for v in op.operands[1:]}
    return not works and operands <= {load.result for load in loads}


def _product(op: Op, target: Target) -> Product:
    along = bool(not op.attrs["transpose_a"] and op.attrs["transpose_b"])
    height, width = op.result.tile.shape
    return Product(target.name, op.operands[1].tile.dtype.nbytes, along, (height, width))


def _chain(loop: Block, target: Target, *, masked: bool) -> Chain | None:
    """A loop of two products with tiles that it loads, the second of what became of the first."""
    found, loaded = [op for op in loop.ops if op.name == "mma"], {load.result for load in staged_loads(loop)}
    made = {result: op for op in loop.ops for result in op.results}
    if len(found) != 2 or found[0].result not in ancestors(found[1].operands[1:2], made):
        return None
    if not {op.operands[2] for op in found} <= loaded:
        return None
    (rows, columns), (_, width) = (op.result.tile.shape for op in found)
    return Chain(target.name, found[0].operands[1].tile.dtype.nbytes, masked, (rows, columns, width))


def _is_masked(loop: Block) -> bool:
    """Whether rows are numbered, which a mask up to a diagonal compares with the columns' numbers."""
    made = {result: op for op in loop.ops for result in op.results}
    numbers = {op.result for op in loop.ops if op.name == "iota"}
    upright = [op for op in loop.ops if op.name == "expand_dims" and op.attrs["axis"] == 1]
    return any(op.result.tile.dtype.is_int and numbers & ancestors(op.operands, made) for op in upright)


def _ranked(work: Product | Chain, found: Ranking) -> Offer:
    figures = ", ".join(f"{name} {found.figures[name]}" for name in found.names)
    tiles = " x ".join(map(str, found.tile))
    nearest = "" if found.tile == work.tile else ", the nearest that were modelled"
    why = f"modelled clocks of {tiles} tiles{nearest}, {DEPTH} deep, alone on a compute unit/of a full one: {figures}"
    if found.names[0] != min(found.names, key=lambda name: found.figures[name].clocks):
        why += f"; within {1 - RESOLUTION:.0%} they count as the same"
    return Offer(found.names[: found.names.index(MULTISTAGE) + 1], why)  # what is slower than the default is not tried


def choose(offer: Offer, make: Callable[[str], Artifact]) -> Artifact:
    """The first schedule that can be built and fits; else the default one, with its error or too large as it is."""
    notes: list[str] = []
    failure: TileError | None = None
    unfit: Artifact | None = None
    for name in offer.names:
        try:
            made = make(name)
        except (UnsupportedError, ResourceError) as error:
            notes.append(f"not {name}: {_first_line(error)}")
            failure = error if name == MULTISTAGE else failure
            continue
        if made.resources is None or fits(made.resources):
            return explained(made, offer, notes)
        notes.append(f"not {name}: {shortfall(made.resources, made.waves)}")
        unfit = made if name == MULTISTAGE else unfit
    if unfit is None:
        assert failure is not None
        raise failure
    return explained(unfit, offer, notes)


def explained(made: Artifact, offer: Offer, notes: Sequence[str] = ()) -> Artifact:
    """With the reason of the offer, and why others gave way."""
    head = [f"schedule {made.schedule}: {offer.why}"] if offer.why else []
    return replace(made, reasons=(*head, *notes, *made.reasons))


def _first_line(error: TileError) -> str:
    return error.message.splitlines()[0]
