"""From IR to a program: from the disk cache, else by lowering and building, then through the resource gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwave.backends.amd import artifacts
from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.artifacts import Artifact, Check, Print
from warpwave.backends.amd.build import find_compiler
from warpwave.backends.amd.program import AmdProgram
from warpwave.backends.amd.resources import fits
from warpwave.tiles.errors import ResourceError, UnsupportedError
from warpwave.tiles.ir import Kernel

if TYPE_CHECKING:
    from warpwave.backends.amd.lower.lower import Lowered

ASKED = "schedule"  # the option


def compiled(kernel: Kernel, target: Target, options: Mapping[str, Any], *, simulated: bool = False) -> AmdProgram:
    """The built kernel; ResourceError if it does not fit, unless the option `allow_spills` is set."""
    choices = _choices(options)
    path = artifacts.place(kernel, target.name, choices)
    artifact = artifacts.load(path)
    if artifact is None:
        artifact = chosen(kernel, target, choices)
        if options.get("allow_spills") or artifact.resources:
            artifacts.save(path, artifact)
    if not options.get("allow_spills"):
        artifact = _gated(kernel, target, choices, artifact, path)
    return AmdProgram(kernel, target, artifact, simulated)


def _choices(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that change code."""
    return {name: value for name, value in options.items() if name != "allow_spills"}


def settled(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the schedule that the kernel takes, for whoever looks at its lowering without its program."""
    from warpwave.backends.amd.choosing import offered
    from warpwave.backends.amd.plan import MULTISTAGE

    if len(offered(kernel, target, options).names) == 1:
        return dict(options)
    choices = _choices(options)
    found = artifacts.load(artifacts.place(kernel, target.name, choices))
    try:
        taken = (found or chosen(kernel, target, choices)).schedule
    except (UnsupportedError, ResourceError):  # which the lowering will say as well, or does not mind
        taken = MULTISTAGE
    return {**options, ASKED: taken}


def chosen(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Artifact:
    """The kernel lowered by the schedule that was asked for, or else by the best; built where that decides."""
    from warpwave.backends.amd.choosing import choose, explained, offered  # a hit in the cache does without

    offer = offered(kernel, target, options)
    if len(offer.names) > 1:
        return choose(offer, lambda name: _built(kernel, target, {**options, ASKED: name}))
    return explained(lowered(kernel, target, options), offer)


def _built(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Artifact:
    """With what its code uses, unless there is no compiler: then the lowering alone has to do."""
    made = lowered(kernel, target, options)
    return _measured(kernel, target, made) if find_compiler() else made


def _measured(kernel: Kernel, target: Target, artifact: Artifact) -> Artifact:
    return replace(artifact, resources=AmdProgram(kernel, target, artifact).resources)


def _gated(kernel: Kernel, target: Target, options: Mapping[str, Any], artifact: Artifact, path: Path) -> Artifact:
    """The artifact with what its code uses, kept, if that is not too much."""
    if artifact.resources is None:
        artifact = _measured(kernel, target, artifact)
        artifacts.save(path, artifact)
    assert artifact.resources is not None
    if not fits(artifact.resources):
        from warpwave.backends.amd.gate import refusal  # looks at the lowering, which a hit in the cache does without

        raise refusal(kernel, target, {**options, ASKED: artifact.schedule}, artifact.resources)
    return artifact


def lowered(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Artifact:
    """The kernel's source and what belongs to it; nothing is built yet."""
    from warpwave.backends.amd.lower.lower import lower  # a hit in the cache does without

    return artifact_of(lower(kernel, target, dict(options)))


def artifact_of(result: Lowered) -> Artifact:
    """What is kept of a lowering."""
    return Artifact(
        result.source,
        result.built_source,
        result.plan.all_waves,
        result.shared_bytes,
        tuple(result.plan.reasons),
        tuple(Check(op.attrs["message"] or "check failed", op.loc) for op in result.checks),
        tuple(Print(op.attrs["message"], tuple(v.tile for v in op.operands)) for op in result.prints),
        schedule=result.plan.schedule,
    )
