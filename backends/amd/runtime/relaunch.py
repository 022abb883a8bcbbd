"""Launches that differ from an earlier one in addresses and numbers only: the rest is packed already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpwave.backends.amd.arguments import ALIGNMENT, Argument, Geometry, values
from warpwave.backends.amd.runtime import devices, hip
from warpwave.backends.amd.runtime.devices import Device
from warpwave.backends.amd.runtime.streams import current_stream
from warpwave.tiles.runtime.arrays import Array

if TYPE_CHECKING:
    from warpwave.backends.amd.runtime.launcher import Launcher


@dataclass(frozen=True)
class Slot:
    """Where an array's base is among the parameters, how far it is from the first element, and its alignment."""

    place: int
    from_first: int
    aligned: int


@dataclass(frozen=True)
class Relaunch:
    """An earlier launch on PyTorch tensors of one device, whose kernel reports nothing."""

    launcher: Launcher
    device: Device
    function: Any
    geometry: Geometry
    packed: tuple[int | float, ...]
    arrays: tuple[Slot, ...]
    numbers: tuple[int, ...]

    def __call__(self, addresses: Sequence[int], numbers: Sequence[int | float | bool]) -> bool:
        """Launch on PyTorch's current stream; False, and nothing, for addresses that need another variant."""
        packed = list(self.packed)
        for slot, address in zip(self.arrays, addresses, strict=True):
            if address % ALIGNMENT != slot.aligned:
                return False
            packed[slot.place] = address + slot.from_first
        for place, number in zip(self.numbers, numbers, strict=True):
            packed[place] = number
        try:  # without the context managers of a first launch, which cost as much as HIP's launch itself
            if hip.call("hipGetDevice") == self.device.ordinal:
                self._start(packed)
            else:
                with devices.current(self.device):
                    self._start(packed)
        except hip.HipError as error:
            self.launcher.explain(error, self.device)
            raise
        return True

    def _start(self, packed: Sequence[int | float]) -> None:
        self.launcher.start(self.function, self.geometry, packed, current_stream(self.device.ordinal))


def relaunch(
    launcher: Launcher, device: Device, function: Any, geometry: Geometry, arguments: Sequence[Argument]
) -> Relaunch:
    """What launches like a launch with these arguments."""
    spans = geometry.spans
    bases = [a.address + s.address if s and isinstance(a, Array) else 0 for a, s in zip(arguments, spans, strict=True)]
    arrays, numbers, place = [], [], 0
    for argument, memory in zip(arguments, spans, strict=True):
        if isinstance(argument, Array):
            assert memory is not None
            arrays.append(Slot(place, memory.address, argument.address % ALIGNMENT))
            place += 2 + 2 * len(argument.shape)
        else:
            numbers.append(place)
            place += 1
    packed = (*values(arguments, bases, spans), *geometry.tail, 0)
    return Relaunch(launcher, device, function, geometry, packed, tuple(arrays), tuple(numbers))
