"""Launches as PyTorch users make them: graphs, streams, threads, dtypes, strides, and what one costs."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from warpwave.kernels import formulas
from warpwave.kernels.gemm import gemm
from warpwave.kernels.softmax import softmax
from warpwave.tiles.dtypes import BY_NAME, bf16, f32
from warpwave.tiles.reference.closed_forms import product_bound

REPEATS, LAUNCHES = 15, 400
ALLOWED_US = 10.0


def _torch() -> Any:
    import torch

    return torch


def _is_softmax(y: Any, x: Any) -> None:
    """Within what the contract allows."""
    allowed = formulas.softmax(x.double().cpu().numpy())
    dtype = BY_NAME[{"float32": "f32", "bfloat16": "bf16", "float16": "f16"}[str(y.dtype).removeprefix("torch.")]]
    far = abs(y.double().cpu().numpy() - allowed.value) > allowed.rounded(dtype).error
    assert not far.any(), f"{far.sum()} elements are no softmax"


def graph() -> str:
    """A kernel in a captured graph sees new inputs at each replay, also when it was first launched under capture."""
    torch = _torch()
    x = torch.randn(100, 300, device="cuda")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, stream=stream):
        softmax(x, y)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        y.zero_()
        captured.replay()
        torch.cuda.synchronize()
        _is_softmax(y, x)
    return ""


def side_stream() -> str:
    """A launch goes to PyTorch's current stream: it waits for what was put there before it."""
    torch = _torch()
    stream = torch.cuda.Stream()
    x, y = torch.zeros(4096, 4096, device="cuda"), torch.zeros(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.normal_()
        softmax(x, y)
    stream.synchronize()
    _is_softmax(y, x)
    return ""


def threads() -> str:
    """Eight threads launch one kernel for the first time at once, each on tensors of its own."""
    torch = _torch()
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.randn(64 + seed, 500, device="cuda", dtype=torch.bfloat16)
                y = torch.empty_like(x)
                for _ in range(20):
                    softmax(x, y, BM=16)
                torch.cuda.current_stream().synchronize()
                _is_softmax(y, x)
        except BaseException as error:  # handed to the main thread
            problems.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if problems:
        raise problems[0]
    return ""


def strides() -> str:
    """Views of any strides and offsets give what contiguous copies give."""
    torch = _torch()
    base = torch.randn(1, 203, 331, device="cuda", dtype=torch.bfloat16)[0]
    a, b = base[1:129, 3:131], base[40:168, 100:228].T
    c = torch.empty(128, 128, device="cuda", dtype=torch.float32)
    gemm(a, b, c)
    same = torch.empty_like(c)
    gemm(a.contiguous(), b.contiguous(), same)
    assert bool((c == same).all()), f"{int((c != same).sum())} elements differ"
    return ""


def odd_rows() -> str:
    """Rows that are not 16-byte aligned, at odd addresses, and what lies around the result."""
    torch = _torch()
    for m, n, k in ((1000, 999, 1001), (8, 9, 7), (65, 130, 129), (300, 71, 64)):
        for start in (0, 1, 6):
            a, b = (_inside(torch, rows, k, start + 3)[1].normal_() for rows in (m, n))
            around, c = _inside(torch, m, n, start)
            gemm(a, b, c, transpose_b=True)
            exact = a.double() @ b.double().T
            bound = product_bound(exact, a.double().abs() @ b.double().abs().T, k, bf16, bf16)
            wrong = int((~((c.double() - exact).abs() <= bound)).sum())
            kept = int(torch.isnan(around).sum()) == around.numel() - m * n
            assert not wrong, f"{m} x {n} x {k} at {start}: {wrong} elements differ"
            assert kept, f"{m} x {n} x {k} at {start}: written outside"
    return ""


def _inside(torch: Any, rows: int, cols: int, start: int) -> tuple[Any, Any]:
    """Memory full of NaN, and a matrix inside it."""
    around = torch.full((rows * cols + 256,), float("nan"), device="cuda", dtype=torch.bfloat16)
    return around, around[start : start + rows * cols].view(rows, cols)


def host_arrays() -> str:
    """NumPy arrays are copied to the device and back."""
    import numpy as np

    x = np.random.default_rng(0).standard_normal((70, 90), np.float32)
    y = np.empty_like(x)
    softmax(x, y, target="nvidia:sm90a")
    allowed = formulas.softmax(x)
    assert (np.abs(y - allowed.value) <= allowed.rounded(f32).error).all()
    return ""


def launch_overhead() -> str:
    """Microseconds of a launch, beyond those of a bare cuLaunchKernel of the same code."""
    torch = _torch()
    x = torch.randn(8, 64, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    softmax(x, y)
    ours = _microseconds(torch, lambda: softmax(x, y))
    bare = _microseconds(torch, _bare_launch(torch, x, y))
    overhead = ours - bare
    assert overhead < ALLOWED_US, f"{overhead:.1f} us beyond a bare launch ({ours:.1f} - {bare:.1f})"
    return f"{overhead:.1f} us beyond a bare launch ({ours:.1f} - {bare:.1f})"


def _bare_launch(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
    """The same kernel with everything prepared: one driver call."""
    from cuda.bindings import driver

    program: Any = softmax.compile(x, y).program
    launcher = program.launcher
    program.run(softmax._bind((x, y), {}).arrays)
    (plan,) = launcher._plans.values()
    buffer, lowered, handle = launcher._buffer(), launcher.lowered, plan.function.handle
    stream = torch.cuda.current_stream().cuda_stream

    def launch() -> Any:
        return driver.cuLaunchKernel(
            handle, plan.blocks, 1, 1, lowered.threads, 1, 1, lowered.shared_bytes, stream, buffer.pointers, 0
        )

    return launch


def _microseconds(torch: Any, launch: Callable[[], Any]) -> float:
    """Host time of one launch; few at a time, so that the queue is never full."""
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        times.append((time.perf_counter() - start) / LAUNCHES * 1e6)
    return statistics.median(times)


CHECKS: tuple[Callable[[], str], ...] = (graph, side_stream, threads, strides, odd_rows, host_arrays, launch_overhead)
