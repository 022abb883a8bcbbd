"""The library's own kernels on their sample inputs."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import warpwave.kernels
from warpwave.conformance.suite.case import Case
from warpwave.tiles.cli.agreement import with_defaults
from warpwave.tiles.cli.check import split_sample
from warpwave.tiles.errors import TileValueError
from warpwave.tiles.runtime.kernel import Kernel


@functools.cache
def library_kernels() -> dict[str, Kernel]:
    """Every kernel of `warpwave.kernels` that has samples, by name."""
    found: dict[str, Kernel] = {}
    for module in pkgutil.iter_modules(warpwave.kernels.__path__):
        if module.name == "tests":
            continue
        loaded = importlib.import_module(f"warpwave.kernels.{module.name}")
        for value in vars(loaded).values():
            if isinstance(value, Kernel) and value.has_samples and value.function.__module__ == loaded.__name__:
                found[value.name] = value
    return found


def library_case(id_: str, name: str, index: int, seed: int = 0) -> Case:
    """The case of a kernel's sample number `index`."""
    kernel = library_kernels().get(name)
    if kernel is None:
        raise TileValueError(f"there is no library kernel {name!r}", hint=f"there are {', '.join(library_kernels())}")

    arguments, constants = sample_arguments(kernel, index, seed)
    return Case(id_, kernel, arguments, constants)


def sample_arguments(kernel: Kernel, index: int, seed: int) -> tuple[Callable[[], dict[str, Any]], Mapping[str, Any]]:
    """What makes the arguments of a kernel's sample number `index`, and its constants."""

    def arguments() -> dict[str, Any]:
        return with_defaults(kernel, dict(split_sample(kernel, kernel.sample_inputs(seed)[index]).arguments))

    return arguments, split_sample(kernel, kernel.sample_inputs(seed)[index]).constants


def sample_counts() -> dict[str, int]:
    """How many samples each kernel has."""
    return {name: len(list(kernel.sample_inputs(0))) for name, kernel in library_kernels().items()}
