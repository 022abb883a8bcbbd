"""`@ww.autotune`: a kernel that takes the fastest of several configurations, found once for each kind of arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from warpwave.tiles import ir
from warpwave.tiles.capture.dependencies import freeze
from warpwave.tiles.errors import ResourceError, TileError, TileTypeError, TileValueError, UnsupportedError
from warpwave.tiles.runtime import tuning
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.backend import MeasuresTime
from warpwave.tiles.runtime.binding import Argument, Bound
from warpwave.tiles.runtime.cache import OnceCache
from warpwave.tiles.runtime.compiled import Compiled
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.signature import place
from warpwave.tiles.runtime.spans import duplicate
from warpwave.tiles.runtime.spec import ArraySpec, ScalarSpec
from warpwave.tiles.runtime.tuning import Config, Trial, Tuning

UNMEASURED = "the first that can be built, since nothing was measured"


def autotune(configs: Sequence[Config], key: Sequence[str] | None = None) -> Callable[[Kernel], TunedKernel]:
    """Decorator above `@ww.kernel`: try these configurations, and use the fastest.

    Times are those of the target's programs (`backend.MeasuresTime`): measured on a device, or modelled where the
    backend has a model. They are found anew for other dtypes, constants, options and targets, and for other shapes of
    the tensors named in `key` (of all tensors if there is none). A constant or option that the call gives goes first.
    What was found is kept on disk; `kernel.tuning(...)` gives it, and `explain()` says it.
    """
    if not configs:
        raise TileValueError("autotune needs at least one configuration", hint="ww.autotune([ww.Config(BM=64), ...])")

    def decorate(kernel: Kernel) -> TunedKernel:
        return TunedKernel(kernel, configs, key)

    return decorate


class TunedKernel(Kernel):
    """A kernel with configurations to choose from."""

    _suggests = False  # other configurations were tried already, the kernel's own

    def __init__(self, kernel: Kernel, configs: Sequence[Config], key: Sequence[str] | None) -> None:
        if not isinstance(kernel, Kernel):
            raise TileTypeError(
                f"autotune takes a kernel, got {type(kernel).__name__}", hint="write @ww.autotune above @ww.kernel"
            )
        vars(self).update(vars(kernel))
        tensors = [p.name for p in self.signature.params if p.is_tensor]
        self.configs = tuple(configs)
        self._key = tuple(tensors if key is None else key)
        self._tunings: OnceCache[Tuning] = OnceCache(lambda _: True)
        unknown = [name for name in self._key if name not in tensors]
        unknown += [name for config in configs for name in config.constants if name not in self.signature.constants]
        if unknown:
            raise TileValueError(
                f"autotune: kernel {self.name} has no tensor or constant {unknown[0]!r}",
                loc=place(self.function),
                hint=f"its tensors are {', '.join(tensors)}, its constants {', '.join(self.signature.constants)}",
            )

    def tuning(
        self, *args: Any, target: str | None = None, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Tuning:
        """What was tried for arguments like these and what it took; `str()` is a table."""
        bound = self._bind(args, kwargs)
        return self._tuning(bound, self._backend(bound, target)[0], options or {})

    def compile(
        self, *args: Any, target: str | None = None, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Compiled:
        """Compile the best configuration for arguments like these."""
        bound, chosen = self._bind(args, kwargs), options or {}
        name = self._backend(bound, target)[0]
        found = self._tuning(bound, name, chosen)
        compiled = self._compiled(bound, name, chosen)
        tuned = dict.fromkeys(self._offered(bound, chosen)[found.best].constants, f"tuned: {found.reason}")
        return dataclasses.replace(compiled, origins={**compiled.origins, **tuned})

    def capture(self, *args: Any, target: str | None = None, **kwargs: Any) -> ir.Kernel:
        """The IR of the configuration that is used."""
        bound = self._bind(args, kwargs)
        name = self._backend(bound, target)[0]
        taken = self._with_best(bound, name, {})[0]
        return super().capture(*bound.arguments.values(), target=name, **taken.constants)

    def _compiled(self, bound: Bound, target: str | None, options: Mapping[str, Any]) -> Compiled:
        name = self._backend(bound, target)[0]
        taken, chosen = self._with_best(bound, name, options)
        return super()._compiled(taken, name, chosen)

    def _with_best(self, bound: Bound, target: str, options: Mapping[str, Any]) -> tuple[Bound, Mapping[str, Any]]:
        best = self._tuning(bound, target, options).best
        return _merged(bound, options, self._offered(bound, options)[best])

    def _offered(self, bound: Bound, options: Mapping[str, Any]) -> list[Config]:
        """Configurations that still differ where the call's own constants and options go first."""
        offered: dict[Hashable, Config] = {}
        for config in self.configs:
            left = Config(
                options={name: value for name, value in config.options.items() if name not in options},
                **{name: value for name, value in config.constants.items() if name not in bound.constants},
            )
            offered.setdefault((freeze(left.constants), freeze(left.options)), left)
        return list(offered.values())

    def _tuning(self, bound: Bound, target: str, options: Mapping[str, Any]) -> Tuning:
        shapes = tuple(_shape(bound.arguments[name]) for name in self._key)
        key = (target, tuple(bound.types.values()), shapes, freeze(bound.constants), freeze(dict(options)))
        return self._tunings.get(key, lambda: self._tuned(bound, target, options, shapes))

    def _tuned(self, bound: Bound, target: str, options: Mapping[str, Any], shapes: Sequence[Hashable]) -> Tuning:
        offered = self._offered(bound, options)
        if len(offered) == 1:
            return Tuning((Trial(str(offered[0]), None, "not measured"),), 0, "the only configuration")
        built = [self._attempt(bound, target, options, config) for config in offered]
        clocks = {b.program.clock for b in built if isinstance(b, Compiled) and isinstance(b.program, MeasuresTime)}
        told = [b.source if isinstance(b, Compiled) else str(b) for b in built]
        path = tuning.place([self.path, target, repr(shapes), *sorted(clocks), *map(str, offered), *told])
        found = tuning.load(path) if clocks else None
        if found is None:
            found = _decided(offered, built, [_trial(bound, b) for b in built])
            if clocks:
                tuning.save(path, found)
        return found

    def _attempt(self, bound: Bound, target: str, options: Mapping[str, Any], config: Config) -> Compiled | TileError:
        taken, chosen = _merged(bound, options, config)
        try:
            return super()._compiled(taken, target, chosen)
        except (UnsupportedError, ResourceError) as error:
            return error


def _merged(bound: Bound, options: Mapping[str, Any], config: Config) -> tuple[Bound, Mapping[str, Any]]:
    """The call with a configuration's constants and options where it has none itself."""
    constants = {**config.constants, **bound.constants}
    return dataclasses.replace(bound, constants=constants), {**config.options, **options}


def _shape(argument: Argument) -> Hashable:
    return argument.shape if isinstance(argument, Array | ArraySpec) else None


def _trial(bound: Bound, built: Compiled | TileError) -> Trial:
    """What a launch takes on these inputs, with outputs of its own."""
    if isinstance(built, TileError):
        return Trial("", None, f"refused: {built.message.splitlines()[0]}")
    if not isinstance(built.program, MeasuresTime):
        return Trial("", None, f"{built.target} has no clock")
    arguments: dict[str, Array | int | float | bool] = {}
    for name, argument in bound.arguments.items():
        stand_in = _stand_in(argument, name in built.outputs)
        if stand_in is not None:
            arguments[name] = stand_in
        elif argument is not None:
            return Trial("", None, f"not measured: {name} is not known")
    try:
        measured = built.program.measure(arguments)
    except UnsupportedError as error:
        return Trial("", None, f"not measured: {error.message.splitlines()[0]}")
    return Trial("", measured.seconds, measured.how)


def _stand_in(argument: Argument, is_output: bool) -> Array | int | float | bool | None:
    """What a description may be measured with, which is zeros; None if it leaves something open."""
    if isinstance(argument, ScalarSpec):
        return argument.value
    if isinstance(argument, ArraySpec):
        known = [extent for extent in argument.shape if extent is not None]
        return borrow(np.zeros(known, argument.dtype.numpy)) if len(known) == len(argument.shape) else None
    return duplicate(argument) if is_output and isinstance(argument, Array) else argument


def _decided(offered: Sequence[Config], built: Sequence[Compiled | TileError], trials: Sequence[Trial]) -> Tuning:
    """The fastest; without any times the first that can be built; the first one's error if none can."""
    possible = [place for place, b in enumerate(built) if isinstance(b, Compiled)]
    if not possible:
        raise next(b for b in built if isinstance(b, TileError))
    named = tuple(dataclasses.replace(t, config=str(config)) for t, config in zip(trials, offered, strict=True))
    times = {place: trial.seconds for place, trial in enumerate(named) if trial.seconds is not None}
    if not times:
        return Tuning(named, possible[0], UNMEASURED)
    best = min(times, key=lambda place: times[place])
    return Tuning(named, best, named[best].why)
