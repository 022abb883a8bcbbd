"""Generated tile programs: a program is data, made from a seed or by hypothesis, and rendered to runnable source."""

from __future__ import annotations

from warpwave.conformance.programs.generate import generate, program_of_seed
from warpwave.conformance.programs.load import arguments_of, kernel_of
from warpwave.conformance.programs.model import Program
from warpwave.conformance.programs.render import render, render_script

__all__ = ["Program", "arguments_of", "generate", "kernel_of", "program_of_seed", "render", "render_script"]
