"""What launches take: by HIP events on a device, by the timing model on the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwave.backends.amd.arguments import Argument
from warpwave.backends.amd.artifacts import own_version
from warpwave.backends.amd.build import find_compiler
from warpwave.backends.amd.program import AmdProgram
from warpwave.backends.amd.runtime import hip, measuring
from warpwave.tiles.errors import CheckFailed, TileError, UnsupportedError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Measurement
from warpwave.tiles.runtime.spans import duplicate


def clock(program: AmdProgram, arguments: Mapping[str, Argument]) -> str:
    """See `tiles.runtime.backend.MeasuresTime`."""
    from warpwave.backends.amd.model.launch import version  # the model is large, a device does without

    device = program.device(arguments)
    if device is None:
        return f"model {version()}"
    if hip.is_simulated():
        raise UnsupportedError(
            "this HIP is the simulator's, whose events tell how long simulating took",
            hint="modelled times are there for arrays in host memory",
        )
    compiler = find_compiler()
    return "\n".join((device.name, compiler.identity if compiler else "", own_version()))


def measure(programs: Sequence[AmdProgram], arguments: Mapping[str, Argument]) -> Sequence[Measurement | TileError]:
    """See `tiles.runtime.backend.MeasuresTime`."""
    device = programs[0].device(arguments)
    if device is not None:
        return measuring.measure(programs, device, arguments)
    return [_modelled(program, arguments) for program in programs]


def _modelled(program: AmdProgram, arguments: Mapping[str, Argument]) -> Measurement | TileError:
    from warpwave.backends.amd.model.launch import launch_time

    outputs = program.kernel.outputs
    own = {n: duplicate(a) if n in outputs and isinstance(a, Array) else a for n, a in arguments.items()}
    try:
        return launch_time(program, own)
    except (CheckFailed, UnsupportedError) as error:
        return error
