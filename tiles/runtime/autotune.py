"""`@ww.autotune`: a kernel that takes the fastest of several configurations, found once for each kind of arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from warpwave.tiles import ir
from warpwave.tiles.capture.dependencies import freeze
from warpwave.tiles.errors import (
    CheckFailed,
    LaunchError,
    ResourceError,
    TileError,
    TileTypeError,
    TileValueError,
    UnsupportedError,
)
from warpwave.tiles.runtime import registry, tuning
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.backend import Measurement, MeasuresTime, Number, Program
from warpwave.tiles.runtime.binding import Argument, Bound
from warpwave.tiles.runtime.cache import OnceCache
from warpwave.tiles.runtime.compiled import Compiled
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.signature import place
from warpwave.tiles.runtime.spec import ArraySpec, ScalarSpec
from warpwave.tiles.runtime.tuning import Config, Outcome, Refused, Trial, Tuning, Untimed, decided


def autotune(configs: Sequence[Config], key: Sequence[str] | None = None) -> Callable[[Kernel], TunedKernel]:
    """Decorator above `@ww.kernel`: try these configurations, and use the fastest.

    Times are the backend's (`backend.MeasuresTime`): measured on the arrays' device, or modelled where there is a
    model. They are found anew for other dtypes, constants, options, targets and devices, and for other shapes of the
    tensors named in `key` (of all tensors if there is none). A constant or option that the call gives goes first.
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
        self._tunings: OnceCache[tuple[Tuning, Config]] = OnceCache(lambda _: True)
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
        return self._tuning(bound, self._backend(bound, target)[0], options or {})[0]

    def compile(
        self, *args: Any, target: str | None = None, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Compiled:
        """Compile the best configuration for arguments like these."""
        bound, chosen = self._bind(args, kwargs), options or {}
        name = self._backend(bound, target)[0]
        found, best = self._tuning(bound, name, chosen)
        compiled = self._compiled(bound, name, chosen)
        tuned = dict.fromkeys(best.constants, "tuned" if found.is_measured else "configuration, not measured")
        return dataclasses.replace(compiled, origins={**compiled.origins, **tuned}, tuning=found)

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
        return _merged(bound, options, self._tuning(bound, target, options)[1])

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

    def _tuning(self, bound: Bound, target: str, options: Mapping[str, Any]) -> tuple[Tuning, Config]:
        """What was found, and the configuration to use."""
        shapes = tuple(_shape(bound.arguments[name]) for name in self._key)
        where = next((array.device for array in bound.arrays.values()), None)
        key = (target, where, tuple(bound.types.values()), shapes, freeze(bound.constants), freeze(dict(options)))

        def find() -> tuple[Tuning, Config]:
            offered = self._offered(bound, options)
            found = self._tuned(bound, target, options, shapes, offered)
            return found, offered[found.best]

        return self._tunings.get(key, find)

    def _tuned(
        self,
        bound: Bound,
        target: str,
        options: Mapping[str, Any],
        shapes: Sequence[Hashable],
        offered: Sequence[Config],
    ) -> Tuning:
        if len(offered) == 1:
            return Tuning((Trial(str(offered[0]), None, "not measured"),), 0, "the only one")
        built = [self._attempt(bound, target, options, config) for config in offered]
        programs = [b.program for b in built if isinstance(b, Compiled)]
        if not programs:
            return decided(self.name, target, offered, _with(built, ()))
        backend: Any = registry.resolve(target)
        try:
            arguments = _known(bound)
            clock = _clock(backend, target, programs, arguments)
        except UnsupportedError as error:
            return decided(self.name, target, offered, _with(built, [Untimed(error)] * len(programs)))
        told = [str(b.error) if isinstance(b, Refused) else b.source for b in built]
        path = tuning.place([self.path, target, repr(shapes), clock, *map(str, offered), *told])
        found = tuning.load(path)
        if found is None:
            outcomes = _with(built, map(_outcome, self._measured(backend, programs, arguments)))
            found = decided(self.name, target, offered, outcomes)
            if found.is_measured:
                tuning.save(path, found)
        return found

    def _attempt(self, bound: Bound, target: str, options: Mapping[str, Any], config: Config) -> Compiled | Refused:
        taken, chosen = _merged(bound, options, config)
        try:
            return super()._compiled(taken, target, chosen)
        except (UnsupportedError, ResourceError) as error:
            return Refused(error)

    def _measured(
        self, backend: Any, programs: Sequence[Program], arguments: Mapping[str, Array | Number]
    ) -> Sequence[Measurement | TileError]:
        try:
            return backend.measure(programs, arguments)  # type: ignore[no-any-return]
        except LaunchError as error:
            error.message = f"kernel {self.name}, whose configurations are measured: {error.message}"
            error.loc = error.loc or place(self.function)
            raise


def _merged(bound: Bound, options: Mapping[str, Any], config: Config) -> tuple[Bound, Mapping[str, Any]]:
    """The call with a configuration's constants and options where it has none itself."""
    constants = {**config.constants, **bound.constants}
    return dataclasses.replace(bound, constants=constants), {**config.options, **options}


def _shape(argument: Argument) -> Hashable:
    return argument.shape if isinstance(argument, Array | ArraySpec) else None


def _outcome(measured: Measurement | TileError) -> Outcome:
    if isinstance(measured, Measurement):
        return measured
    return Untimed(measured) if isinstance(measured, UnsupportedError | CheckFailed) else Refused(measured)


def _with(built: Sequence[Compiled | Refused], outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes of what was built, and the refusals of the others."""
    found = iter(outcomes)
    return [b if isinstance(b, Refused) else next(found) for b in built]


def _clock(backend: Any, target: str, programs: Sequence[Program], arguments: Mapping[str, Array | Number]) -> str:
    if not isinstance(backend, MeasuresTime):
        raise UnsupportedError(f"{target} has no clock")
    return backend.clock(programs[0], arguments)


def _known(bound: Bound) -> dict[str, Array | Number]:
    """The arguments of a launch, with zeros for arrays that are described; UnsupportedError if one is not known."""
    arguments: dict[str, Array | Number] = {}
    for name, argument in bound.arguments.items():
        given = _given(argument)
        if given is not None:
            arguments[name] = given
        elif argument is not None:
            raise UnsupportedError(f"{name} is not known")
    return arguments


def _given(argument: Argument) -> Array | Number | None:
    if isinstance(argument, ScalarSpec):
        return argument.value
    if isinstance(argument, ArraySpec):
        known = [extent for extent in argument.shape if extent is not None]
        return borrow(np.zeros(known, argument.dtype.numpy)) if len(known) == len(argument.shape) else None
    return argument
