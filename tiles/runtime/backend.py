"""What a backend is: the few functions that a plug-in of the entry-point group `warpwave.backends` provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from warpwave.tiles.errors import TileError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array

if TYPE_CHECKING:
    from warpwave.tiles.drawing.data import TileLayout
    from warpwave.tiles.runtime.binding import Argument


@dataclass(frozen=True)
class Target:
    """One thing a kernel can be compiled for, e.g. `reference`.

    `runs` says what executes it here, e.g. "NumPy", "a simulator", a device's name; empty if nothing can, and then
    `missing` says what is missing and `remedy` is the one command that mends it.
    """

    name: str
    description: str
    runs: str = ""
    missing: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """One line of `warpwave doctor`: a thing that the backend needs, whether it is here, and what mends it."""

    what: str
    ok: bool
    detail: str
    remedy: str = ""


@runtime_checkable
class Program(Protocol):
    """A kernel compiled for one target."""

    @property
    def source(self) -> str:
        """The generated source; for backends that generate none, the IR."""
        ...

    @property
    def asm(self) -> str:
        """The machine code as text, or empty."""
        ...

    @property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, shared memory and the like, by name; empty where none are used."""
        ...

    def explain(self) -> str:
        """Which choices were made for this kernel and target, and why."""
        ...

    def run(self, arguments: Mapping[str, Array | int | float | bool]) -> None:
        """Execute; arrays are written in place. Arguments are named and ordered as the kernel's parameters.

        They are checked: the compiled types, one device, outputs writable. `reference.launch_grid` gives the
        grid for them and checks the kernel's launch conditions; a grid with a 0 in it launches nothing.
        """
        ...


Number = int | float | bool
Start = Callable[[Sequence[int], Sequence[Number]], bool]


@runtime_checkable
class LaunchesAgain(Protocol):
    """A program that has a shorter way for launches that differ from an earlier one in addresses and numbers only."""

    def again(
        self, arguments: Mapping[str, Array | Number]
    ) -> Callable[[Sequence[int], Sequence[Number]], bool] | None:
        """What launches on the addresses of other arrays like these and on other numbers, each in parameter order.

        It gives False, and has done nothing, for addresses or numbers that it is not made for. None if there is no
        such way. The arrays are PyTorch tensors' views.
        """
        ...


@runtime_checkable
class Backend(Protocol):
    """The plug-in itself: an object, found by name, that imports heavy libraries only when used."""

    @property
    def name(self) -> str:
        """Its name, the first part of its targets' names."""
        ...

    def targets(self) -> Sequence[Target]:
        """All targets it knows, runnable here or not."""
        ...

    def target_for(self, device: str) -> str | None:
        """The target for arrays on a device (see `Array.device`), or None if they are not its business."""
        ...

    def diagnose(self) -> Sequence[Diagnosis]:
        """What it needs and what of it is here."""
        ...

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> Program:
        """Lower and build. UnsupportedError or ResourceError, at the user's line, for what it cannot do.

        `target` is one of `targets()`, or one with ":sim" after it. `kernel` must not be changed.
        """
        ...


@runtime_checkable
class KeepsBuilds(Protocol):
    """A backend that keeps what it builds on disk, and for which captured kernels are worth keeping as well."""

    @property
    def keeps_builds(self) -> bool:
        """Whether it does."""
        ...


@runtime_checkable
class OffersAlternatives(Protocol):
    """A backend with options that change what a kernel needs."""

    @property
    def alternatives(self) -> Mapping[str, tuple[Any, ...]]:
        """Values of options that are worth trying for a kernel that does not fit, by name."""
        ...


@runtime_checkable
class DrawsLayouts(Protocol):
    """A backend that also says where the tiles of a kernel lie, for `warpwave show --layout`."""

    def layouts(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[TileLayout]:
        """Every register and shared tile, in program order."""
        ...


@dataclass(frozen=True)
class Measurement:
    """Seconds of one launch; `how` says whether they are measured or modelled, and on what."""

    seconds: float
    how: str


@runtime_checkable
class MeasuresTime(Protocol):
    """A backend that knows what launches of its programs take, for `ww.autotune`."""

    def clock(self, program: Any, arguments: Mapping[str, Array | Number]) -> str:
        """What times of such programs depend on besides source and arguments: device and compiler, or the model.

        UnsupportedError if there is nothing to tell the time by.
        """
        ...

    def measure(
        self, programs: Sequence[Any], arguments: Mapping[str, Array | Number]
    ) -> Sequence[Measurement | TileError]:
        """What a launch of each of these programs of one kernel and target takes on these arguments, or why not.

        Nothing that the caller has is written. UnsupportedError or CheckFailed where no time can be told, another
        error for a program that cannot run here.
        """
        ...


class Suggestion(dict[str, Any]):
    """Constants by name, with reasons for some of them, which `explain()` prints."""

    def __init__(self, constants: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
        super().__init__(constants)
        self.reasons = reasons


@runtime_checkable
class SuggestsConstants(Protocol):
    """A backend that also has tables of tuned constants."""

    def constants_for(self, kernel: str, target: str, arguments: Mapping[str, Argument]) -> Mapping[str, Any]:
        """Tuned values for some of a kernel's constants, by name; called at most launches, so it must be quick.

        `kernel` is "module:qualified name". `arguments` are the arrays (or specs, or None for absent ones) without the
        numbers: these may change at every launch, and constants must not; and the constants that the call gives. A
        `Suggestion` also has reasons.
        """
        ...
