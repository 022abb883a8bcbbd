"""Launches on a real GPU, with hand-written kernels: what the fake driver cannot know. Run with `pytest -m gpu`."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from warpwave.backends.nvidia import sass
from warpwave.backends.nvidia.arch import SM90A, target_of
from warpwave.backends.nvidia.lowered import Lowered, TensorMap
from warpwave.backends.nvidia.program import NvidiaProgram
from warpwave.backends.nvidia.runtime import devices, use_stream
from warpwave.backends.nvidia.tests.harness import STRUCTS, checked, ir_of, lowered_scale
from warpwave.tiles.errors import CheckFailed, LaunchError
from warpwave.tiles.ir import walk
from warpwave.tiles.runtime.arrays import borrow

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def target():
    if not devices.devices():
        pytest.skip("no NVIDIA GPU here")
    found = target_of(devices.devices()[0].capability)
    if found is None:
        pytest.skip(f"{devices.devices()[0]} has no target")
    return found


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def program(target):
    kernel, lowered = lowered_scale()
    return NvidiaProgram(kernel, target, lowered)


def run(program, x, y, factor):
    program.run({"x": borrow(x), "y": borrow(y), "factor": factor})


def test_numpy_arrays(program):
    x = np.random.default_rng(0).standard_normal((100, 70), np.float32)
    y = np.zeros((200, 70), np.float32)
    run(program, x, y[::2], 3.0)
    np.testing.assert_array_equal(y[::2], 3 * x)
    assert not y[1::2].any()


def test_pytorch_tensors_of_any_strides(program, torch):
    base = torch.randn(201, 333, device="cuda")
    for x in (base, base[1:, 3:], base.T, base[::2, ::3], base[:0], base[0:1].expand(64, 333)):
        y = torch.zeros(x.shape, device="cuda")
        run(program, x, y, 2.0)
        assert bool((y == 2 * x).all())


def test_cupy_arrays_on_their_stream(program):
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.random.standard_normal((300, 300), dtype=cupy.float32)
        y = cupy.zeros_like(x)
        run(program, x, y, 2.0)
        stream.synchronize()
        assert bool((y == 2 * x).all())


def test_pytorchs_current_stream(program, torch):
    stream = torch.cuda.Stream()
    x, y = torch.zeros(2000, 2000, device="cuda"), torch.zeros(2000, 2000, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(1)
        run(program, x, y, 2.0)
    stream.synchronize()
    assert bool((y == 2).all())


def test_a_named_stream(program, torch):
    stream = torch.cuda.Stream()
    x, y = torch.ones(100, 100, device="cuda"), torch.zeros(100, 100, device="cuda")
    torch.cuda.synchronize()
    with use_stream(stream.cuda_stream):
        run(program, x, y, 5.0)
    stream.synchronize()
    assert bool((y == 5).all())


def test_graph_capture_from_the_first_launch(target, torch):
    """Loading the code under capture, too, is allowed; a replay sees new inputs."""
    kernel, lowered = lowered_scale()
    program = NvidiaProgram(kernel, target, replace(lowered, reasons=("another program",)))
    x, y = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(program, x, y, 2.0)
    x.fill_(21)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((y == 42).all())


def test_threads(program, torch):
    wrong = []

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            x, y = torch.randn(100, 100, device="cuda"), torch.zeros(100, 100, device="cuda")
            for i in range(100):
                run(program, x, y, float(number + i))
                torch.cuda.current_stream().synchronize()
                if not bool((y == (number + i) * x).all()):
                    wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_launching_again(program, torch):
    """Also from a thread that has no context yet, and on another stream."""
    x, y = torch.randn(100, 64, device="cuda"), torch.zeros(100, 64, device="cuda")
    again = program.again({"x": borrow(x), "y": borrow(y), "factor": 1.0})
    stream = torch.cuda.Stream()

    def launch(factor):
        assert again([x.data_ptr(), y.data_ptr()], [factor])

    worker = threading.Thread(target=launch, args=(5.0,))
    worker.start()
    worker.join()
    torch.cuda.synchronize()
    assert bool((y == 5 * x).all())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(2)
        launch(3.0)
    stream.synchronize()
    assert bool((y == 6).all())
    assert not again([x.data_ptr() + 4, y.data_ptr()], [1.0])


CHECK = (
    STRUCTS
    + """
extern "C" __global__ void checked(tensor<float, 2> x, tensor<float, 2> y, float limit, long long seed, bool flag,
                                   grid_sizes grid, int *status) {
  if (threadIdx.x == 0 && !(x.data[0] < limit) && seed == 1ll << 40 && flag) *status = 1;
}
"""
)


@pytest.fixture(scope="module")
def checking(target):
    x = np.zeros((8, 8), np.float32)
    kernel = ir_of(checked, x, x, 1.0, 1, True)
    checks = tuple(op for op in walk(kernel.body) if op.name == "check")
    return NvidiaProgram(kernel, target, Lowered(CHECK, CHECK, "checked", 32, 0, 1, False, (), (), checks, ()))


def with_limit(x, y, limit):
    return {"x": borrow(x), "y": borrow(y), "limit": limit, "seed": 2**40, "flag": True}


def test_a_failed_check(checking, torch):
    x, y = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    checking.run(with_limit(x, y, 2.0))
    with pytest.raises(CheckFailed, match="too many rows"):
        checking.run(with_limit(x, y, 0.5))
    checking.run(with_limit(x, y, 2.0))


def test_a_failed_check_in_a_graph(checking, torch):
    x, y = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        checking.run(with_limit(x, y, 5.0))
    graph.replay()
    torch.cuda.synchronize()
    checking.run(with_limit(x, y, 50.0))
    x.fill_(10)
    graph.replay()
    torch.cuda.synchronize()
    with pytest.raises(CheckFailed, match="in a replay of a captured graph"):
        checking.run(with_limit(x, y, 50.0))


def test_a_refused_launch_names_the_kernel(target, torch):
    kernel, lowered = lowered_scale()
    program = NvidiaProgram(kernel, target, replace(lowered, threads=2048))
    x, y = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    with pytest.raises(LaunchError, match=r"kernel scale for nvidia:\w+ on device 0 .*CUDA_ERROR_INVALID_VALUE"):
        run(program, x, y, 1.0)


TMA = (
    STRUCTS
    + """
struct alignas(64) tensor_map { unsigned long long opaque[16]; };
// Loads panel (0, m) of 32 x 32 floats with the 128-byte swizzle, and writes it out as it should be without.
extern "C" __global__ void scale(tensor<float, 2> x, tensor<float, 2> y, float factor,
                                 const __grid_constant__ tensor_map map, grid_sizes grid, int *status) {
  __shared__ alignas(1024) float tile[32 * 32];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned to = __cvta_generic_to_shared(tile), full = __cvta_generic_to_shared(&barrier);
  const int m = blockIdx.x / grid.sizes[1], n = blockIdx.x % grid.sizes[1];
  if (!(TMA & 1u)) return;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async;" ::"r"(full) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(full) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(n * 32), "r"(m * 32), "r"(full) : "memory");
  }
  __syncthreads();
  asm volatile("{.reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra WAIT;}" ::"r"(full));
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    const int r = i / 32, c = i % 32;
    const float value = tile[r * 32 + ((c / 4 ^ r % 8) * 4 + c % 4)];
    const int row = m * 32 + r, col = n * 32 + c;
    if (row < y.extents[0] && col < y.extents[1]) y.data[row * y.strides[0] + col * y.strides[1]] = factor * value + 1;
  }
}
"""
)


@pytest.mark.parametrize("shape", [(64, 64), (100, 84), (33, 4), (1, 128)], ids=str)
def test_tensor_maps_bound_rows_and_columns(target, torch, shape):
    """The swizzle is as published, what is outside reads as 0, and rows do not run on into the next."""
    if target is not SM90A:
        pytest.skip("TMA is Hopper's")
    kernel, _ = lowered_scale()
    lowered = Lowered(TMA, TMA, "scale", 128, 0, 1, False, (TensorMap("x", (0, 1), 32, 32, 128),), (), (), ())
    rows, cols = shape
    x = torch.randn(rows, cols + 12, device="cuda")[:, :cols]  # rows go on behind their end
    y = torch.zeros((rows + 31) // 32 * 32, (cols + 31) // 32 * 32, device="cuda")
    NvidiaProgram(kernel, target, lowered).run({"x": borrow(x), "y": borrow(y[:rows, :cols]), "factor": 2.0})
    padded = torch.ones_like(y)
    padded[:rows, :cols] = 2 * x + 1
    assert torch.equal(y[:rows, :cols], padded[:rows, :cols])


CLUSTER = (
    STRUCTS
    + """
extern "C" __global__ void scale(tensor<float, 2> x, tensor<float, 2> y, float factor, grid_sizes grid, int *status) {
  unsigned rank, blocks;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  for (int i = blockIdx.x; i < grid.sizes[0] * grid.sizes[1]; i += gridDim.x)
    if (threadIdx.x == 0) y.data[i] = 100 * blocks + rank;
}
"""
)


@pytest.mark.parametrize("persistent", [False, True])
def test_clusters(target, torch, persistent):
    if target.max_cluster < 2:
        pytest.skip("clusters are Hopper's")
    kernel, _ = lowered_scale()
    program = NvidiaProgram(kernel, target, Lowered(CLUSTER, CLUSTER, "scale", 128, 0, 2, persistent, (), (), (), ()))
    x = torch.zeros(32 * 333, 32, device="cuda")
    y = torch.zeros(32 * 333, 32, device="cuda")
    run(program, x, y, 1.0)
    expected = torch.tensor([200.0, 201.0], device="cuda").repeat(167)[:333]
    assert bool((y.flatten()[:333] == expected).all())


def test_occupancy_is_what_the_driver_says(program, torch):
    x = torch.ones(64, 64, device="cuda")
    run(program, x, torch.zeros_like(x), 1.0)
    (plan,) = [p for p in program.launcher._plans.values() if p.sizes == (2, 2)][:1]
    resident = plan.function.resident // plan.device.multiprocessors
    assert resident == program.resources["blocks_per_sm"]


def test_the_disassembler_is_found():
    assert sass.find_disassembler()
