"""Launches one built kernel: the plan for its arguments is made once, then a launch fills in addresses and starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import devices, driver
from warpwave.backends.nvidia.runtime.feedback import PRINTS_AT, Feedback
from warpwave.backends.nvidia.runtime.functions import Functions, launch_config
from warpwave.backends.nvidia.runtime.masks import UNIT
from warpwave.backends.nvidia.runtime.memory import on_device
from warpwave.backends.nvidia.runtime.packing import Argument, Buffer, layout_of, scalar_writers
from warpwave.backends.nvidia.runtime.plan import Plan, Planner, launch_scalars
from warpwave.backends.nvidia.runtime.relaunch import Relaunch
from warpwave.backends.nvidia.runtime.streams import stream_for, stream_source
from warpwave.backends.nvidia.runtime.tensor_maps import NBYTES
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.spans import span
from warpwave.tiles.runtime.trials import Attempt

REMEMBERED = 1024


class Launcher:
    """One kernel on all devices. `code_for(wide, tma, device)` is the code of a variant there."""

    def __init__(
        self,
        kernel: Kernel,
        lowered: Lowered,
        target: Target,
        code_for: Callable[[int, int, devices.Device], bytes],
        copier: Functions,
    ) -> None:
        self.kernel, self.lowered, self.target = kernel, lowered, target
        self._layout = layout_of(kernel, lowered)
        self._planner = Planner(kernel, lowered, self._layout, Functions(lowered, code_for), copier)
        self.feedback = Feedback(lowered)
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._scalars = [(i, w) for i, w in enumerate(scalar_writers(self._layout)) if w]
        self._tensors = [i for i, code in enumerate(self._layout.codes) if code[0] == "Q"]
        self._words = [self._layout.arguments[i] // 8 for i in self._tensors]  # where their addresses go
        self._launch_scalars = sorted(launch_scalars(kernel))
        self._local = threading.local()

    def launch(self, arguments: Mapping[str, Argument]) -> None:
        """Start the kernel on the arguments' device and stream.

        It returns at once, and is done when it returns if arrays are on the host or the kernel checks or prints.
        """
        values: Sequence[Any] = list(arguments.values())
        arrays: list[Array] = [values[i] for i in self._tensors]
        plan = self._plan_for(arguments, values, arrays)
        if plan.blocks == 0:
            return
        try:
            if devices.is_current(plan.device):
                self._launch_on(plan, values, arrays)
            else:
                with devices.current(plan.device):
                    self._launch_on(plan, values, arrays)
        except driver.CudaError as error:
            raise self._explained(error, plan.device) from None

    def again(self, arguments: Mapping[str, Argument]) -> Relaunch | None:
        """What launches the same again for other addresses and numbers; None if more than these would matter."""
        values: Sequence[Any] = list(arguments.values())
        arrays: list[Array] = [values[i] for i in self._tensors]
        plan = self._plan_for(arguments, values, arrays)
        stream = stream_source(arrays, plan.device.ordinal)
        if not all(a.address % UNIT == 0 for a in arrays) or plan.from_host or plan.blocks == 0:
            return None
        if stream is None or not self.feedback.is_silent:
            return None
        numbers = [i for i, _ in self._scalars]
        needed = [(numbers.index(i), values[i]) for i in self._launch_scalars]
        writers = [write for _, write in self._scalars]
        return Relaunch(plan, self.lowered, self._layout, self._words, writers, needed, stream, self._explained)

    def attempt(self, stream: int, arguments: Mapping[str, Argument], reports: int) -> Attempt:
        """What starts the kernel as often as one likes on a stream of the current device; nobody waits for its reports.

        `reports` is where they go: `Feedback.no_reports()` in the device's memory.
        """
        values: Sequence[Any] = list(arguments.values())
        arrays: list[Array] = [values[i] for i in self._tensors]
        plan, addresses = self._plan_for(arguments, values, arrays), [a.address for a in arrays]
        if plan.blocks == 0:
            raise UnsupportedError("a launch of no blocks takes no time", loc=self.kernel.loc)

        silent = self.feedback.is_silent
        status, prints = (0, 0) if silent else (reports, reports + PRINTS_AT)

        def start() -> None:
            try:
                self._launch(plan, values, addresses, stream, status, prints)
            except driver.CudaError as error:
                raise self._explained(error, plan.device) from None

        return Attempt(start) if silent else Attempt(start, lambda: self.feedback.raise_failed(reports))

    def _plan_for(self, arguments: Mapping[str, Argument], values: Sequence[Any], arrays: Sequence[Array]) -> Plan:
        key = (
            *[(a.shape, a.strides, a.address & 15, a.device) for a in arrays],
            *[values[i] for i in self._launch_scalars],
        )
        return self._plans.get(key) or self._plan(key, arguments)

    def _plan(self, key: tuple[Any, ...], arguments: Mapping[str, Argument]) -> Plan:
        device = devices.choose(arguments, self.target, self.kernel.name)
        try:
            with devices.current(device):
                plan = self._planner.plan(arguments, device)
        except driver.CudaError as error:
            raise self._explained(error, device) from None
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
        return self._plans.setdefault(key, plan)

    def _explained(self, error: driver.CudaError, device: devices.Device) -> driver.CudaError:
        """The driver's errors name the kernel and point at it."""
        error.message = f"kernel {self.kernel.name} for {self.target.full_name} on {device}: {error.message}"
        error.loc = error.loc or self.kernel.loc
        return error

    def _launch_on(self, plan: Plan, values: Sequence[Any], arrays: Sequence[Array]) -> None:
        stream = stream_for(arrays, plan.device.ordinal)
        if plan.from_host:
            self._from_host(plan, values, arrays, stream)
        else:
            self._start(plan, values, [a.address for a in arrays], stream)

    def _from_host(self, plan: Plan, values: Sequence[Any], arrays: Sequence[Array], stream: int) -> None:
        outputs = set(self.kernel.outputs)
        spans = [span(a) for a in arrays]
        written = [self.kernel.param_names[i] in outputs for i in self._tensors]
        with on_device(spans, written) as address:
            self._start(plan, values, [address(s) + s.offset for s in spans], stream)
            driver.call("cuStreamSynchronize", stream)

    def _start(self, plan: Plan, values: Sequence[Any], addresses: Sequence[int], stream: int) -> None:
        if self.feedback.is_silent:
            self._launch(plan, values, addresses, stream, 0, 0)
            return
        with self.feedback.addresses(plan.device.ordinal, stream, len(plan.sizes)) as (status, prints):
            self._launch(plan, values, addresses, stream, status, prints)

    def _launch(
        self, plan: Plan, values: Sequence[Any], addresses: Sequence[int], stream: int, status: int, prints: int
    ) -> None:
        if plan.copier:
            with plan.copier.copied(addresses, plan.device.ordinal, stream) as copied:
                self._start_code(plan, self._filled(plan, values, copied, status, prints), stream)
        else:
            self._start_code(plan, self._filled(plan, values, addresses, status, prints), stream)

    def _start_code(self, plan: Plan, buffer: Buffer, stream: int) -> None:
        cuda, lowered = driver.module(), self.lowered
        assert plan.function is not None
        handle = plan.function.handle
        if lowered.cluster > 1 or plan.copier:
            config = self._config(plan.copier is not None)
            config.gridDimX, config.hStream = plan.blocks, stream
            (code,) = cuda.cuLaunchKernelEx(config, handle, buffer.pointers, 0)
        else:
            (code,) = cuda.cuLaunchKernel(
                handle, plan.blocks, 1, 1, lowered.threads, 1, 1, lowered.shared_bytes, stream, buffer.pointers, 0
            )
        if code:
            raise driver.failure(code, "cuLaunchKernel")

    def _filled(self, plan: Plan, values: Sequence[Any], addresses: Sequence[int], status: int, prints: int) -> Buffer:
        """This thread's buffer with the parameters of a launch."""
        buffer, layout = self._buffer(), self._layout
        memory, words = buffer.bytes, buffer.words
        memory[: layout.nbytes] = plan.memory
        for word, address in zip(self._words, addresses, strict=True):
            words[word] = address
        for index, write in self._scalars:
            write(memory, values[index])
        for slot in plan.maps:
            memory[slot.offset : slot.offset + NBYTES] = slot.encoded(addresses[slot.tensor])
        words[layout.status // 8] = status
        if layout.prints is not None:
            words[layout.prints // 8] = prints
        return buffer

    def _buffer(self) -> Buffer:
        found: Buffer | None = getattr(self._local, "buffer", None)
        if found is None:
            found = self._local.buffer = Buffer(self._layout)
        return found

    def _config(self, after_copies: bool) -> Any:
        name = f"config_{after_copies}"
        if not hasattr(self._local, name):
            setattr(self._local, name, launch_config(self.lowered, after_copies=after_copies))
        return getattr(self._local, name)
