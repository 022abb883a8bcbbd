"""A bug that can be put into the AMD backend for a while: by changing the IR, the source, the assembly or the host."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from warpwave.backends.amd import build, compilation, program
from warpwave.backends.amd.artifacts import Artifact
from warpwave.tiles import disk_cache
from warpwave.tiles.ir import Kernel, clone

Rewrite = Callable[[Kernel], int]  # changes a kernel in place; the number of changes


@dataclass(frozen=True)
class Edit:
    """A regular expression and what replaces it; `flags` as in `re`."""

    pattern: str
    replacement: str

    def apply(self, text: str) -> tuple[str, int]:
        """The changed text and the number of changes."""
        return re.subn(self.pattern, self.replacement, text, flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Patch:
    """Replaces an attribute of a module or class by what `make` returns for the original."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


@dataclass(frozen=True)
class Defect:
    """One bug. `likely` are prefixes of the cases that should notice it, which are tried first."""

    name: str
    what: str
    likely: tuple[str, ...]
    rewrite: Rewrite | None = None
    source: tuple[Edit, ...] = ()
    assembly: tuple[Edit, ...] = ()
    patches: tuple[Patch, ...] = ()
    targets: tuple[str, ...] = ("amd:gfx942:sim",)

    @contextmanager
    def injected(self) -> Iterator[Trace]:
        """The bug is in the backend inside the block; the trace says whether it changed anything."""
        trace = Trace()
        lowered = compilation.lowered

        def wrong(kernel: Kernel, *rest: Any) -> Artifact:
            return self._artifact(kernel, lowered, rest, trace)

        def wrong_asm(*arguments: Any) -> str:
            text, count = _edited(self.assembly, build.compile_to_asm(*arguments))
            trace.changes += count
            return text

        with ExitStack() as stack:
            stack.enter_context(disk_cache.bypassed())
            stack.enter_context(patch.object(compilation, "lowered", wrong))
            if self.assembly:
                stack.enter_context(patch.object(program, "compile_to_asm", wrong_asm))
            for p in self.patches:
                stack.enter_context(patch.object(p.owner, p.name, p.make(getattr(p.owner, p.name))))
                trace.changes += 1
            yield trace

    def _artifact(
        self, kernel: Kernel, lowered: Callable[..., Artifact], rest: tuple[Any, ...], trace: Trace
    ) -> Artifact:
        if self.rewrite is not None:
            kernel = clone(kernel)
            trace.changes += self.rewrite(kernel)
        artifact = lowered(kernel, *rest)
        text, count = _edited(self.source, artifact.built_source)
        trace.changes += count
        return replace(artifact, built_source=text)


@dataclass
class Trace:
    """How often the bug has changed something."""

    changes: int = field(default=0)


def _edited(edits: tuple[Edit, ...], text: str) -> tuple[str, int]:
    changes = 0
    for edit in edits:
        text, count = edit.apply(text)
        changes += count
    return text, changes
