"""A launch worked out for arguments of certain shapes, strides and alignments: all that no address changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwave.backends.nvidia.lowered import AFTER_COPIES, MASKED, Lowered
from warpwave.backends.nvidia.runtime import masks
from warpwave.backends.nvidia.runtime.aligned_copies import Copier, as_copied, copies_for
from warpwave.backends.nvidia.runtime.devices import Device
from warpwave.backends.nvidia.runtime.functions import Function, Functions
from warpwave.backends.nvidia.runtime.masks import View, view_of
from warpwave.backends.nvidia.runtime.packing import Argument, Layout, template
from warpwave.backends.nvidia.runtime.tensor_maps import MapParameters, encode, map_parameters
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.reference import Extents, launch_grid
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.types import TensorType

MAX_GRID = 2**31 - 1
REMEMBERED = 4096  # addresses of one tensor map


@dataclass(frozen=True)
class MapSlot:
    """One tensor map of a launch: where it goes, which tensor it is of, and what was encoded for which address."""

    offset: int
    tensor: int  # its place among the tensor arguments
    parameters: MapParameters
    _encoded: dict[int, bytes] = field(default_factory=dict)

    def encoded(self, address: int) -> bytes:
        """The map for a tensor at this address."""
        found = self._encoded.get(address)
        if found is None:
            if len(self._encoded) >= REMEMBERED:
                self._encoded.clear()
            found = self._encoded[address] = encode(self.parameters, address)
        return found


@dataclass(frozen=True)
class Plan:
    """`blocks` is CUDA's grid, 0 if there is nothing to do; `memory` the parameters without addresses and scalars.

    `copier` first copies operands to where the bulk copy engine can read them.
    """

    device: Device
    sizes: tuple[int, ...]
    blocks: int
    function: Function | None
    memory: bytes
    maps: tuple[MapSlot, ...]
    from_host: bool
    copier: Copier | None = None


@dataclass(frozen=True)
class Planner:
    """Makes the plans of one kernel."""

    kernel: Kernel
    lowered: Lowered
    layout: Layout
    functions: Functions
    copier: Functions

    def plan(self, arguments: Mapping[str, Argument], device: Device) -> Plan:
        """The plan for these arguments on a device whose context is current. CheckFailed for a launch condition."""
        described = {n: Extents(a.shape) if isinstance(a, Array) else a for n, a in arguments.items()}
        sizes = launch_grid(self.kernel, described)
        blocks = math.prod(sizes)
        arrays = {n: a for n, a in arguments.items() if isinstance(a, Array)}
        from_host = any(a.on_host for a in arrays.values())
        if blocks == 0:
            return Plan(device, sizes, 0, None, b"", (), from_host)
        if blocks > MAX_GRID:
            raise UnsupportedError(f"{blocks} blocks, a launch has at most {MAX_GRID}", loc=self.kernel.loc)
        copies = copies_for(self.lowered, arrays)
        arrays = as_copied(arrays, copies)
        wide, tma = variant(self.lowered, {n: view_of(a) for n, a in arrays.items()})
        function = self.functions.get(device, wide, tma | (AFTER_COPIES if copies else 0))
        copier = Copier(copies, self.copier.get(device, masks.ALL, 0)) if copies else None
        memory = template(self.layout, list({**arguments, **arrays}.values()), sizes)
        maps = self._maps(list(arrays.values()), list(arrays), tma)
        grid = grid_of(self.lowered, blocks, function.resident)
        return Plan(device, sizes, grid, function, memory, maps, from_host, copier)

    def _maps(self, arrays: Sequence[Array], names: Sequence[str], tma: int) -> tuple[MapSlot, ...]:
        slots = []
        for spec, offset in zip(self.lowered.maps, self.layout.maps, strict=True):
            place = names.index(spec.param)
            if tma >> place & 1:
                array = arrays[place]
                slots.append(MapSlot(offset, place, map_parameters(spec, array.dtype, array.shape, array.strides)))
        return tuple(slots)


def variant(lowered: Lowered, tensors: Mapping[str, View]) -> tuple[int, int]:
    """The masks WIDE and TMA for these tensors, in parameter order."""
    views = list(tensors.values())
    return masks.wide_mask(views), masks.map_mask(views, _mapped(lowered, tensors))


def best_variant(kernel: Kernel, lowered: Lowered) -> tuple[int, int]:
    """The masks WIDE and TMA if every tensor allows all: the code that `.asm` and `.resources` are about."""
    names = [n for n, value in zip(kernel.param_names, kernel.params, strict=True) if _is_tensor(value.type)]
    return masks.ALL, sum(1 << i for i, has_maps in enumerate(_mapped(lowered, names)[:MASKED]) if has_maps)


def _mapped(lowered: Lowered, names: Iterable[str]) -> list[bool]:
    owners = {m.param for m in lowered.maps}
    return [name in owners for name in names]


def _is_tensor(type_: object) -> bool:
    return isinstance(type_, TensorType)


def grid_of(lowered: Lowered, blocks: int, resident: int) -> int:
    """CUDA's grid: as many blocks as run at a time if the kernel loops over its own, in whole clusters."""
    cluster = lowered.cluster
    whole = -(-blocks // cluster) * cluster
    if not lowered.persistent:
        return whole
    return min(whole, max(resident // cluster, 1) * cluster)


def launch_scalars(kernel: Kernel) -> frozenset[int]:
    """Places of the scalar parameters that the grid or a launch condition depends on."""
    ops = kernel.body.ops
    first = next((i for i, op in enumerate(ops) if op.name == "grid"), 0)
    needed = set(ops[first].operands) if ops else set()
    for op in reversed(ops[:first]):
        if op.name == "check" or needed & set(op.results):
            needed.update(op.operands)
            needed.update(v for region in op.regions for inner in walk(region) for v in inner.operands)
    return frozenset(i for i, v in enumerate(kernel.params) if v in needed and not _is_tensor(v.type))
