"""`python tests/errors/mistakes.py > docs/errors.md`: makes every mistake of cases_*.py and lists what it says."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest import mock

from warpwave import TileError
from warpwave.tiles.reference import BACKEND
from warpwave.tiles.runtime import registry

HERE = Path(__file__).parent
MARK = "# here"
SECTIONS = ("launch", "definition", "python", "tiles", "target")

HEAD = """# What can go wrong

Every mistake that Warpwave knows raises a `TileError`: `CaptureError`, `TileTypeError`, `TileValueError`,
`UnsupportedError`, `ResourceError`, `LaunchError`, or `CheckFailed` from inside a kernel. It shows your line
with a caret and the calls that led there, says what is wrong, and where there is one, the way out. An
`InternalError` is a defect of Warpwave: please report it.

```
TileTypeError: kernel gemm: argument 'a': expected gl[bf16], got f32[512,256]
  hint: convert it to bf16, or annotate a: gl to take any dtype
  File "gemm.py", line 6, in gemm
    def gemm(a: gl[bf16], b: gl[bf16], c: gl[bf16], *, BM=256, BN=256, BK=64):
             ^^^^^^^^^^^
```

The tables are made by `python tests/errors/mistakes.py > docs/errors.md` from the programs in
`tests/errors/`; a test keeps them fresh and checks each location.
"""


@dataclass(frozen=True)
class Mistake:
    """A function that makes a mistake, and the line that the error should point at (None: nowhere)."""

    name: str
    make: Callable[[], None]
    line: int | None

    def error(self) -> TileError:
        """What the mistake raises where only the reference is installed, so that messages are the same everywhere."""
        plugins = {"reference": registry.Plugin("reference", "warpwave", BACKEND)}
        try:
            with mock.patch.object(registry, "_load", return_value=plugins):
                self.make()
        except TileError as error:
            return error
        raise AssertionError(f"{self.name} raises nothing")


def load(section: str) -> ModuleType:
    """The module of one section."""
    path = HERE / f"cases_{section}.py"
    spec = importlib.util.spec_from_file_location(f"_mistakes_{section}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def mistakes(module: ModuleType) -> Iterator[Mistake]:
    """The functions of a module that contain a marked line or take no arguments, in order."""
    for name, function in vars(module).items():
        if not inspect.isfunction(function) or function.__module__ != module.__name__ or name in ("capture", "zeros"):
            continue
        if inspect.signature(function).parameters:
            continue
        lines, first = inspect.getsourcelines(function)
        marked = [first + i for i, line in enumerate(lines) if line.rstrip().endswith(MARK)]
        yield Mistake(name, function, marked[0] if marked else None)


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(load(section)) for section in SECTIONS)


def _section(module: ModuleType) -> str:
    title = (module.__doc__ or "").split(".")[0]
    rows = "".join(map(_row, mistakes(module)))
    return f"\n## {title}\n\n| mistake | error | what it says |\n|---|---|---|\n{rows}"


def _row(mistake: Mistake) -> str:
    error = mistake.error()
    hint = f"<br>hint: {_cell(error.hint)}" if error.hint else ""
    return f"| {mistake.name.replace('_', ' ')} | {type(error).__name__} | {_cell(error.message)}{hint} |\n"


def _cell(text: str) -> str:
    for plain, escaped in (("|", "\\|"), ("<", "&lt;"), (">", "&gt;"), ("*", "\\*"), ("\n", "<br>")):
        text = text.replace(plain, escaped)
    return text


if __name__ == "__main__":
    sys.stdout.write(page())
