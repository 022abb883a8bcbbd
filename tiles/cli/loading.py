"""Finds what the command line names: `FILE.py:NAME` or `package.module:NAME`."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import warpwave
from warpwave.tiles.errors import TileValueError
from warpwave.tiles.runtime.kernel import Kernel


def load_kernel(reference: str) -> Kernel:
    """The kernel that `reference` names; TileValueError with what there is otherwise."""
    found = load_object(reference)
    if not isinstance(found, Kernel):
        raise TileValueError(f"{reference} is no kernel but {type(found).__name__}", hint="decorate it with @ww.kernel")
    return found


def load_object(reference: str) -> Any:
    """The object that FILE.py:NAME or module:NAME names."""
    place, separator, name = reference.rpartition(":")
    if not separator or not name.isidentifier():
        raise TileValueError(
            f"{reference!r} does not say what to load", hint="write FILE.py:NAME or package.module:NAME"
        )
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, name):
        kernels = [n for n, v in vars(module).items() if isinstance(v, Kernel)]
        near = difflib.get_close_matches(name, kernels, 1)
        hint = f"did you mean {near[0]}?" if near else f"its kernels are {', '.join(kernels) or 'none'}"
        raise TileValueError(f"{place} has no {name}", hint=hint)
    return getattr(module, name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TileValueError(f"there is no file {path}")
    own = _own_name(path.resolve())
    if own:
        return _load_module(own)
    name = f"_warpwave_cli_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as Python does for the script it runs
    spec.loader.exec_module(module)
    return module


def _own_name(path: Path) -> str:
    """The module of a file of this package, empty for others: tuned constants know the library's kernels by it."""
    package = Path(warpwave.__file__).parent
    for folder in (p for p in package.iterdir() if p.is_dir()):
        if path.is_relative_to(folder.resolve()):
            return ".".join(("warpwave", folder.name, *path.relative_to(folder.resolve()).with_suffix("").parts))
    return ""


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise TileValueError(f"cannot import {name}: {error}", hint="a file is given as FILE.py:NAME") from error


def parse_constant(text: str) -> tuple[str, Any]:
    """NAME=VALUE; a value that is no Python literal is text."""
    name, separator, value = text.partition("=")
    if not separator:
        raise TileValueError(f"--const {text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
