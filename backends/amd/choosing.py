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
from warpwave.backends.amd.plan import MULTISTAGE
from warpwave.backends.amd.resources import fits, shortfall
from warpwave.tiles.errors import ResourceError, TileError, UnsupportedError
from warpwave.tiles.ir import Kernel, Op, walk
from warpwave.tiles.simt.pipeline import staged_loads
from warpwave.tiles.simt.products import products
from warpwave.tiles.types import TileType

AUTO = "auto"


@dataclass(frozen=True)
class Offer:
    """Schedules to try, first choice first, and why in this order."""

    names: tuple[str, ...]
    why: str = ""


def offered(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Offer:
    """What a kernel may take if the options leave it open.

    The model has figures for loops that only multiply the tiles they load. Who pins registers has chosen as well:
    one schedule has them.
    """
    asked = str(options.get("schedule") or AUTO)
    if asked != AUTO or options.get("pin") or not products(kernel):
        return Offer((MULTISTAGE if asked == AUTO else asked,))
    product = _pipelined_product(kernel)
    if product is None:
        return Offer((MULTISTAGE,), "nothing is modelled but loops of one product of the two tiles that they load")
    return _ranked(product, target)


def _pipelined_product(kernel: Kernel) -> Op | None:
    """The kernel's only product, if a pipelined loop does nothing else with the tiles it loads."""
    found = products(kernel)
    loops = [op for op in walk(kernel.body) if op.name == "for" and op.attrs["kind"] == "pipeline"]
    loop = next((loop for loop in loops if found[0] in loop.regions[0].ops), None)
    if len(found) != 1 or loop is None:
        return None
    loads, product = staged_loads(loop.regions[0]), found[0]
    others = [op for op in loop.regions[0].ops if op not in loads and op is not product]
    works = any(isinstance(r.type, TileType) and r.tile.shape for op in others for r in op.results)
    loaded = {load.result for load in loads}
    return None if works or not loaded.issuperset(product.operands[1:]) else product


def _ranked(product: Op, target: Target) -> Offer:
    from warpwave.backends.amd.model.schedules import DEPTH, RESOLUTION, Product, ranking  # few kernels need its tables

    first, second = (value.tile.dtype for value in product.operands[1:])
    along = bool(not product.attrs["transpose_a"] and product.attrs["transpose_b"])
    height, width = product.result.tile.shape
    native = all(not dtype.is_fp8 or dtype.name in target.fp8 for dtype in (first, second))
    wanted = Product(target.name, first.nbytes, along, (height, width))
    found = ranking(wanted) if native else None
    if found is None:
        return Offer((MULTISTAGE,), f"nothing is modelled with operands of {first}")
    (m, n), figures = found.tile, ", ".join(f"{name} {found.figures[name]}" for name in found.names)
    nearest = "" if found.tile == wanted.tile else ", the nearest that were modelled"
    why = f"modelled clocks of {m} x {n} tiles{nearest}, {DEPTH} deep, alone on a compute unit/of a full one: {figures}"
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
