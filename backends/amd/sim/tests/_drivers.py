"""One driver per kernel: make inputs, launch, and compare with NumPy's float64 answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16

from warpwave.tiles.reference.running_error import Approx

from . import _compile

Launch = Callable[..., object]


@dataclass(frozen=True)
class Check:
    """A result, and the answer: exact, or with the error that the roundings in the kernel explain."""

    label: str
    got: np.ndarray
    want: np.ndarray | Approx

    def wrong(self) -> str | None:
        want = self.want.value if isinstance(self.want, Approx) else self.want
        good = (self.got == want) | ((self.got != self.got) & (want != want))
        if isinstance(self.want, Approx):
            good |= np.abs(wide(self.got) - want) <= self.want.error
        if good.all():
            return None
        first = tuple(np.argwhere(~good)[0])
        return f"{self.label}{first}: got {self.got[first]}, want {want[first]}, {(~good).sum()} of {good.size} wrong"


@dataclass(frozen=True)
class Driver:
    """A kernel of a source file and the function that runs it and returns its checks."""

    source: str
    kernel: str
    run: Callable[[Launch, np.random.Generator], Sequence[Check]]
    targets: tuple[str, ...] = _compile.TARGETS
    flags: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        return f"{Path(self.source).stem}-{self.kernel}"

    @property
    def path(self) -> Path:
        return _compile.HERE / self.source

    def text(self, target: str) -> str:
        return _compile.hip(self.path, target, *self.flags)


DRIVERS: list[Driver] = []


def driver(source: str, kernel: str, **options):
    """Register a driver function under its kernel."""

    def register(run):
        DRIVERS.append(Driver(source, kernel, run, **options))
        return run

    return register


@lru_cache
def load_all() -> list[Driver]:
    """All drivers; importing the modules registers them."""
    from . import _drivers_corpus, _drivers_own

    return [d for d in DRIVERS if d.run.__module__ in (_drivers_corpus.__name__, _drivers_own.__name__)]


def run_driver(item: Driver, target: str, program, seed: int = 0, data_seed: int = 0, **options) -> list[str]:
    """Launch on a loaded program; the list of what is wrong, empty when all is right."""
    name = _compile.kernel_name(item.text(target), item.kernel)

    def launch(grid, block, *args, **more):
        args = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in args]
        return program.launch(name, grid=grid, block=block, args=args, seed=seed, **more, **options)

    launch.target, launch.data = target, data_seed
    checks = item.run(launch, np.random.default_rng(data_seed))
    return [text for check in checks if (text := check.wrong())]


def bf16(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32).astype(bfloat16)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)
