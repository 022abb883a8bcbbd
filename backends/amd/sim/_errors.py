"""Exceptions of the simulator: a violation found while running, and a program that cannot be loaded."""

from __future__ import annotations

from typing import Any


class LoadError(ValueError):
    """The assembly, code object or launch arguments cannot be used."""


class SimError(RuntimeError):
    """A violation stopped the run; the attributes say what, where and why."""

    def __init__(self, message: str, violation: dict[str, Any]) -> None:
        super().__init__(message)
        self._violation = violation
        self.kind: str = violation["kind"]
        self.reason: str = violation["reason"]
        self.instruction: str = violation["instruction"]
        self.asm_line: int = violation["asm_line"]
        self.source: str = violation["source"]
        self.kernel: str = violation["kernel"]
        self.wave: int = violation["wave"]
        self.workgroup: tuple[int, int, int] = violation["workgroup"]
        self.lanes: int = violation["lanes"]
        self.address: int | None = violation["address"]
        self.registers: str = violation["registers"]
        self.other: str = violation["other"]

    def __reduce__(self) -> tuple[type[SimError], tuple[str, dict[str, Any]]]:
        """Exceptions are rebuilt from `args`, which is the message alone; worker processes need the rest too."""
        return type(self), (str(self), self._violation)
