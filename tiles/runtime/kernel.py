"""`@ww.kernel`: a kernel as a callable that binds arguments, compiles once for each kind, and launches."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from warpwave.tiles import ir
from warpwave.tiles.capture import Captured, capture, kept_or_captured
from warpwave.tiles.capture.dependencies import freeze
from warpwave.tiles.errors import CaptureError, ResourceError, TileError, TileTypeError, TileValueError
from warpwave.tiles.language import context
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Backend, Program, Suggestion
from warpwave.tiles.runtime.binding import Binder, Bound
from warpwave.tiles.runtime.cache import OnceCache
from warpwave.tiles.runtime.compiled import Compiled
from warpwave.tiles.runtime.derived import Derived
from warpwave.tiles.runtime.fitting import suggest
from warpwave.tiles.runtime.quick import Routes
from warpwave.tiles.runtime.signature import REQUIRED, Signature, place, read_signature

Samples = Callable[[np.random.Generator], Iterable[Mapping[str, Any]]]


class Kernel:
    """A kernel function. Call it to launch it, `compile` it to look at it or to run it later."""

    _suggests = True  # a configuration that fits, in the error of one that does not

    def __init__(self, function: types.FunctionType, local_names: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signature: Signature = read_signature(function, local_names)
        self._binder = Binder(function, self.signature)
        self._cache: OnceCache[Compiled] = OnceCache(Compiled.up_to_date)
        self._routes = Routes(self.signature)
        self._samples: Samples | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def path(self) -> str:
        """Module and qualified name, as tuned tables know it."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    def __repr__(self) -> str:
        return f"<kernel {self.path}>"

    def __call__(
        self, *args: Any, target: str | None = None, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Launch on arrays, outputs written in place; the target is the arrays' device unless given.

        Keyword arguments are parameters and compile-time constants.
        """
        key = None if context.is_capturing() else self._routes.key(args, kwargs, target, options)
        route = self._routes.find(key) if key is not None else None
        if route is not None and route.launch(args, kwargs):
            return
        bound = self._bind(args, kwargs)
        compiled = self._compiled(bound, target, options or {})
        compiled.launch(bound)
        if key is not None:
            self._routes.keep(key, compiled, bound, len(args), kwargs)

    def compile(
        self, *args: Any, target: str | None = None, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Compiled:
        """Compile for arguments given as arrays or as `ww.spec`; needs no device."""
        return self._compiled(self._bind(args, kwargs), target, options or {})

    def capture(self, *args: Any, target: str | None = None, **kwargs: Any) -> ir.Kernel:
        """The IR that `compile` would build for these arguments and this target; nothing is built."""
        bound = self._bind(args, kwargs)
        name, backend = self._backend(bound, target)
        constants, _ = self._constants(bound, backend, name)
        return capture(self.function, bound.types, constants).kernel

    def samples(self, function: Samples) -> Samples:
        """Decorator for a function that yields this kernel's sample inputs, which `warpwave check` uses.

        It takes a NumPy random generator and yields mappings from parameter and constant names to values.
        """
        self._samples = function
        return function

    @property
    def has_samples(self) -> bool:
        """Whether it comes with sample inputs."""
        return self._samples is not None

    def sample_inputs(self, seed: int = 0) -> list[dict[str, Any]]:
        """The kernel's own sample inputs; TileValueError if it has none."""
        if self._samples is None:
            raise TileValueError(
                f"kernel {self.name} has no sample inputs",
                loc=place(self.function),
                hint=f"give arguments such as bf16[512,256], or add a generator under @{self.name}.samples",
            )
        return [dict(sample) for sample in self._samples(np.random.default_rng(seed))]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        if context.is_capturing():
            raise CaptureError(
                f"kernel {self.name} is called inside another kernel",
                hint="put the shared code into a plain function, which both kernels call",
            )
        return self._binder.bind(args, kwargs)

    def _compiled(self, bound: Bound, target: str | None, options: Mapping[str, Any]) -> Compiled:
        target, backend = self._backend(bound, target)
        constants, origins = self._constants(bound, backend, target)
        key = (target, tuple(bound.types.values()), freeze(constants), freeze(dict(options)))
        return self._cache.get(key, lambda: self._build(bound, backend, target, options, constants, origins))

    def _backend(self, bound: Bound, target: str | None) -> tuple[str, Backend]:
        try:
            target = target or self._target_of(bound)
            return target, registry.resolve(target)
        except TileError as error:
            error.loc = error.loc or place(self.function)
            raise

    def _target_of(self, bound: Bound) -> str:
        device = self._binder.device(bound)
        if device is None:
            names = ", ".join(t.name for t in registry.targets())
            raise TileValueError(
                f"kernel {self.name} needs target=, since no argument is an array",
                hint=f"installed targets: {names}",
            )
        return registry.target_for(device)

    def _constants(self, bound: Bound, backend: Backend, target: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Every constant's value and origin: the call, else the target's table, else the default."""
        tuned: Mapping[str, Any] = {}  # see backend.SuggestsConstants
        suggest = getattr(backend, "constants_for", None)  # isinstance of a protocol costs microseconds
        if suggest is not None:
            tuned = suggest(self.path, target, {**bound.tensors, **bound.constants})
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        sources = (
            (bound.constants, "from the call"),
            (tuned, f"tuned for {target}"),
            (self.signature.constants, "default"),
        )
        for name in self.signature.constants:
            source, origins[name] = next((s, o) for s, o in sources if name in s)
            values[name] = source[name]
            if source is tuned and isinstance(tuned, Suggestion) and name in tuned.reasons:
                origins[name] += f": {tuned.reasons[name]}"
            if isinstance(values[name], Derived):
                values[name], origins[name] = self._derive(name, bound), "derived from the arguments"
            if values[name] is REQUIRED:
                raise TileTypeError(
                    f"kernel {self.name} is missing the constant {name}",
                    loc=place(self.function, name),
                    hint=f"pass {name}=... or give it a default",
                )
        return values, origins

    def _derive(self, name: str, bound: Bound) -> Any:
        try:
            return self.signature.constants[name].value(name, bound.arguments)
        except TileError as error:
            error.loc = error.loc or place(self.function, name)
            raise

    def _build(
        self,
        bound: Bound,
        backend: Backend,
        target: str,
        options: Mapping[str, Any],
        constants: dict[str, Any],
        origins: dict[str, str],
    ) -> Compiled:
        try:
            captured, program = self._built(bound, backend, target, options, constants)
        except ResourceError as error:

            def build(other: dict[str, Any], choices: dict[str, Any]) -> None:
                self._built(bound, backend, target, choices, other)

            alternatives = getattr(backend, "alternatives", {})  # see backend.OffersAlternatives
            if self._suggests:
                suggest(error, constants, options, alternatives, build)
            raise
        return Compiled(self.name, target, constants, origins, bound.types, captured, program, self._binder)

    def _built(
        self, bound: Bound, backend: Backend, target: str, options: Mapping[str, Any], constants: dict[str, Any]
    ) -> tuple[Captured, Program]:
        take = kept_or_captured if getattr(backend, "keeps_builds", False) else capture  # see backend.KeepsBuilds
        captured = take(self.function, bound.types, constants)
        try:
            return captured, backend.compile(captured.kernel, target, options)
        except TileError as error:
            error.loc = error.loc or place(self.function)
            raise


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a Python function a kernel.

    Its parameters are global tensors (`gl[dtype]`, `gl`, `gl[dtype] | None`) and scalars (`i32`, `i64`,
    `f32`, `bool_`, or Python's int, float, bool); keyword-only parameters are compile-time constants.
    """
    if not isinstance(function, types.FunctionType):
        raise CaptureError(
            f"@kernel takes a function, got {type(function).__name__}", hint="write @ww.kernel above a def"
        )
    return Kernel(function, sys._getframe(1).f_locals)
