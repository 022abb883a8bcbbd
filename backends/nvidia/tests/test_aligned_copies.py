"""Operands whose rows the bulk copy engine cannot read: which are copied, and what is launched; on a fake driver.

With `-m gpu` also what is computed.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from cuda.bindings import driver as cuda

import warpwave as ww
from warpwave.backends.nvidia.arch import TARGETS
from warpwave.backends.nvidia.build import build
from warpwave.backends.nvidia.lower.lower import lower
from warpwave.backends.nvidia.lowered import AFTER_COPIES
from warpwave.backends.nvidia.runtime import aligned_copies, devices
from warpwave.backends.nvidia.runtime.aligned_copies import RowCopy
from warpwave.backends.nvidia.runtime.masks import ALL
from warpwave.backends.nvidia.runtime.streams import use_stream
from warpwave.backends.nvidia.tests.fake_cuda import FakeCuda
from warpwave.backends.nvidia.tests.harness import faked, ir_of, on_gpu, pretend_torch, scale, tile_map, unbuilt
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.softmax import softmax
from warpwave.tiles.errors import LaunchError

SIZES = [32, 32, 4, 128, 16, 8]  # of the parameters of `scale` with one map


@pytest.fixture
def fake(monkeypatch):
    with faked(FakeCuda(sizes=list(SIZES)), monkeypatch) as driver:
        yield driver


def program():
    x = np.zeros((1, 1), np.float32)
    return unbuilt(ir_of(scale, x, x, 1.0), maps=(tile_map("x", (0, 1)),), copied=("x",))


def arguments(x: np.ndarray, owner=None) -> dict:
    y = rows(x.shape[0], 64, pitch=64)
    return {"x": on_gpu(x, owner=owner), "y": on_gpu(y, owner=owner), "factor": 2.0}


def rows(rows: int, cols: int, pitch: int, start: int = 0) -> np.ndarray:
    """A matrix that begins `start` elements behind an aligned address, its rows `pitch` elements apart."""
    around = np.arange(rows * pitch + 64, dtype=np.float32)
    first = -around.ctypes.data % 16 // 4 + start
    return np.lib.stride_tricks.as_strided(around[first:], (rows, cols), (pitch * 4, 4))


def as_copy(launch) -> dict:
    """What a launch of the copying kernel was told about its first tensor."""
    end = struct.calcsize("3Q4qq4iii")
    start, last, to, *rest = struct.unpack("3Q4qq4iii", launch.parameters[0][:end])
    return {"from": start, "end": last, "to": to, "strides": rest[:4], "pitch": rest[4], "rows": rest[9]}


def test_a_tensor_with_unaligned_rows_is_copied_and_the_launch_reads_the_copy(fake):
    x = rows(100, 51, pitch=53)
    seen = {}

    def on_launch(launch):
        if launch.name == "copy_rows":
            seen.update(as_copy(launch), live=set(fake.memory))

    fake.on_launch = on_launch
    program().run(arguments(x))
    copying, launch = fake.launches
    assert (copying.name, copying.early, launch.early) == ("copy_rows", False, True)
    assert copying.grid == (-(-100 * 13 // 512), 1, 1)
    assert (seen["from"], seen["end"]) == (x.ctypes.data, x.ctypes.data + (99 * 53 + 51) * 4)
    assert (seen["strides"], seen["pitch"], seen["rows"]) == ([53 * 4, 0, 0, 0], 256, 100)
    assert seen["to"] in seen["live"]
    data, row, col, extent, width = struct.unpack("Qqqii", launch.parameters[0])
    assert (data, row, col, extent, width) == (seen["to"], 64, 1, 100, 51)
    assert struct.unpack("Q", launch.parameters[3][:8]) == (seen["to"],)  # the fake's map holds its address


def test_the_variant_that_waits_for_copies_is_built_for_them_alone(fake):
    program().run(arguments(rows(100, 51, pitch=53)))
    program().run(arguments(rows(100, 51, pitch=52)))
    masks = [int(image.split()[1], 16) for (image,) in fake.called("cuModuleLoadData") if b" " in image[:20]]
    assert AFTER_COPIES | 1 in masks
    assert 1 in masks


@pytest.mark.parametrize(
    ("x", "copied"),
    [
        (rows(100, 51, pitch=52), False),
        (rows(100, 51, pitch=52, start=1), True),
        (rows(100, 52, pitch=52)[:, ::2], False),  # no rows of neighbours: the kernel reads it itself
        (np.broadcast_to(rows(1, 52, pitch=52)[0], (100, 52)), True),  # the engine takes no stride of 0
        (rows(100, 52, pitch=52)[::-1], False),  # nor a negative one
    ],
)
def test_what_is_copied(fake, x, copied):
    program().run(arguments(x))
    assert [launch.name == "copy_rows" for launch in fake.launches] == [True, False][not copied :]


def test_launching_again_passes_what_a_launch_would(fake, monkeypatch):
    torch = pretend_torch(monkeypatch)
    first, second = (arguments(rows(100, 51, pitch=53), owner=("capsule", torch)) for _ in range(2))
    built = program()
    again = built.again(first)
    assert again([second["x"].address, second["y"].address], [2.0])
    built.run(second)
    assert fake.launches[:2] == fake.launches[2:]
    assert [launch.early for launch in fake.launches[:2]] == [False, True]
    assert not again([second["x"].address + 4, second["y"].address], [2.0])
    assert len(fake.launches) == 4


def test_host_arrays_are_copied_twice(fake):
    """To the device as they are, and there to aligned rows."""
    x, y = rows(100, 51, pitch=53), np.zeros((100, 64), np.float32)
    program().run({"x": ww.tiles.runtime.arrays.borrow(x), "y": ww.tiles.runtime.arrays.borrow(y), "factor": 2.0})
    assert [launch.name for launch in fake.launches] == ["copy_rows", "scale"]
    assert len(fake.memory) == 1  # what the stream keeps


# -- memory -------------------------------------------------------------------------------------------


def places(fake, *launches) -> list[int]:
    """Where each launch's copy goes; `launches` are shapes of x and streams."""
    fake.on_launch = lambda launch: found.append(as_copy(launch)["to"]) if launch.name == "copy_rows" else None
    found: list[int] = []
    for height, stream in launches:
        with use_stream(stream):
            program().run(arguments(rows(height, 51, pitch=53)))
    return found


def test_a_stream_keeps_its_memory_and_no_other_gets_it(fake):
    first, again, smaller, other = places(fake, (100, 3), (100, 3), (50, 3), (100, 4))
    assert first == again == smaller != other


def test_more_memory_takes_the_place_of_less(fake):
    places(fake, (100, 3), (2000, 3), (100, 3))
    assert len(fake.memory) == 1
    ((freed, stream),) = fake.called("cuMemFreeAsync")
    assert (freed not in fake.memory, stream) == (True, 3)


def test_a_captured_launch_has_memory_of_its_own(fake):
    (kept,) = places(fake, (100, 3))
    fake.capturing.add(3)
    (captured,) = places(fake, (100, 3))
    assert captured != kept
    assert list(fake.memory) == [kept]  # the graph frees its own


def test_memory_can_be_used_again_after_a_launch_that_failed(fake):
    def refuse(launch):
        if launch.early:
            raise RuntimeError("refused")

    for captured in (False, True):
        fake.capturing |= {0} if captured else set()
        fake.on_launch = refuse
        with pytest.raises(RuntimeError, match="refused"):
            program().run(arguments(rows(100, 51, pitch=53)))
        fake.on_launch = lambda launch: None
        program().run(arguments(rows(100, 51, pitch=53)))
    assert len(fake.memory) == 1


def test_memory_that_is_not_there_is_told(fake, monkeypatch):
    monkeypatch.setattr(FakeCuda, "do_cuGetErrorName", lambda self, code: code.name.encode(), raising=False)
    monkeypatch.setattr(FakeCuda, "do_cuGetErrorString", lambda self, code: b"out of memory", raising=False)
    fake.failing["cuMemAllocFromPoolAsync"] = cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    for captured in (False, True):
        fake.capturing |= {0} if captured else set()
        with pytest.raises(LaunchError, match=r"kernel scale .* 25600 bytes for aligned copies of operands") as caught:
            program().run(arguments(rows(100, 51, pitch=53)))
        assert "begin at multiples of 16 bytes" in caught.value.hint
    assert not fake.launches
    fake.failing.clear()
    fake.capturing.clear()
    program().run(arguments(rows(100, 51, pitch=53)))
    assert len(fake.memory) == 1


# -- which kernels ------------------------------------------------------------------------------------


def copied(kernel, *shapes, target="sm90a", **constants):
    tensors = [ww.spec(f"bf16[{shape}]") for shape in shapes]
    return lower(kernel.compile(*tensors, target="reference", **constants).ir, TARGETS[target], {}).copied


def test_operands_of_products_can_be_copied():
    assert copied(gemm, *["1000,1001"] * 3, transpose_b=True) == ("a", "b")
    assert copied(attention, *["2,4,1000,128"] * 4) == ("q", "k", "v")


def test_what_is_read_once_is_not_worth_it():
    assert copied(softmax, "1000,1001", "1000,1001") == ()
    assert copied(gemm, *["1000,1001"] * 3, transpose_b=True, target="sm80") == ()


@ww.kernel
def squared(a: ww.gl[ww.bf16], b: ww.gl[ww.bf16], *, B=64):
    """a = a @ b, of one tile."""
    ww.grid(1)
    acc = ww.zeros(ww.rt[ww.f32, B, B])
    for k in ww.pipeline(1):
        acc = ww.mma_AB(acc, ww.load(a, (0, k), ww.st[ww.bf16, B, B]), ww.load(b, (k, 0), ww.st[ww.bf16, B, B]))
    ww.store(a, (0, 0), acc)


def test_nothing_is_copied_where_a_product_reads_what_the_kernel_writes():
    """It would read the copy, and write the tensor; and b alone does not help if a keeps the engine away."""
    assert copied(squared, "64,64", "64,64") == ()


def test_nothing_is_copied_for_a_tensor_without_a_bit_in_the_masks(monkeypatch):
    monkeypatch.setattr("warpwave.backends.nvidia.lower.lower.MASKED", 1)
    assert copied(gemm, *["1000,1001"] * 3, transpose_b=True) == ()


def test_the_kernel_waits_for_copies_where_there_are_any():
    x = ww.spec("bf16[1000,1001]")
    program = gemm.compile(x, x, x, transpose_b=True, target="nvidia:sm90a").program
    odd = program.built(ALL & ~0xFFFFFFFF, 3 | AFTER_COPIES)
    assert odd.ptx.count("griddepcontrol.wait") == 1
    assert "0 bytes spill stores, 0 bytes spill loads" in odd.log
    assert "griddepcontrol" not in program.built(ALL, 7).ptx
    assert "st.global.v4" in odd.ptx or "st.v4" in odd.ptx  # c's rows begin anywhere, and are written in whole units


def test_the_copying_kernel_takes_what_the_runtime_packs():
    """Structures of rows.cuh and of aligned_copies.py; the next kernel may begin as soon as this one runs."""
    built = build(aligned_copies.KERNEL, TARGETS["sm90a"], ALL, 0)
    one = RowCopy(0, 2, (3, 5), (5, 1))
    assert f"copy_rows_param_0[{aligned_copies.COPIES * len(one.packed())}]" in built.ptx
    assert "griddepcontrol.launch_dependents" in built.ptx
    assert "0 bytes spill stores, 0 bytes spill loads" in built.log


# -- on a GPU -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    if not devices.devices():
        pytest.skip("no NVIDIA GPU here")
    return pytest.importorskip("torch")


def inside(torch, shape, start, pad, dtype):
    """Memory full of NaN, and a tensor in it: `start` elements behind its beginning, `pad` between rows."""
    pitch = shape[-1] + pad
    around = torch.full((start + math.prod(shape[:-1]) * pitch + 16,), float("nan"), device="cuda", dtype=dtype)
    strides = [1, pitch]
    for extent in reversed(shape[1:-1]):
        strides.append(strides[-1] * extent)
    return around, around.as_strided(shape, strides[::-1], start)


def small_integers(torch, x):
    x.copy_(torch.randint(-4, 5, x.shape, device="cuda"))
    return x.double()


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tile", [(64, 32), (64, 64), (64, 128), (64, 256), (128, 192), (192, 192), (256, 128)])
@pytest.mark.parametrize("shape", [(1000, 999, 1001), (513, 8, 2), (2049, 2047, 127), (130, 257, 64), (65, 1, 1)])
def test_products_are_exact_on_small_integers_and_write_nothing_else(torch, shape, tile):
    """Rounded once to the result's dtype, since every sum is exact in f32."""
    m, n, k = shape
    for dtype, starts in ((torch.bfloat16, (0, 0, 0)), (torch.bfloat16, (3, 6, 1)), (torch.float16, (7, 0, 5))):
        a, b = (inside(torch, (r, k), s, s, dtype)[1] for r, s in zip((m, n), starts, strict=False))
        around, c = inside(torch, (m, n), starts[2], starts[2], dtype)
        exact = small_integers(torch, a) @ small_integers(torch, b).T
        gemm(a, b, c, transpose_b=True, BM=tile[0], BN=tile[1])
        assert torch.equal(c, exact.to(dtype))
        c.fill_(float("nan"))
        assert bool(around.isnan().all())


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
def test_batches_and_bytes(torch):
    a, b = (inside(torch, s, 3, 1, torch.float16)[1] for s in ((3, 300, 301), (3, 301, 203)))
    c = torch.empty(3, 300, 203, device="cuda", dtype=torch.float16)
    exact = small_integers(torch, a) @ small_integers(torch, b)
    gemm(a, b, c)
    assert torch.equal(c, exact.half())
    a, b = (torch.randint(-4, 5, (r, 333), device="cuda").to(torch.float8_e4m3fn) for r in (500, 203))
    c = torch.empty(500, 203, device="cuda", dtype=torch.bfloat16)
    gemm(a, b, c, transpose_b=True)
    assert torch.equal(c, (a.double() @ b.double().T).bfloat16())


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
def test_copies_on_several_streams_and_in_graphs_do_not_meet(torch):
    """Each launch has memory of its own; a replayed graph copies what is there then."""
    a, b = torch.empty(1000, 1001, device="cuda").bfloat16(), torch.empty(999, 1001, device="cuda").bfloat16()
    exact = (small_integers(torch, a) @ small_integers(torch, b).T).bfloat16()
    replayed, *outs = (torch.zeros(1000, 999, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, replayed, transpose_b=True)
    streams = [torch.cuda.Stream() for _ in outs]
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, out in zip(streams, outs, strict=True):
            with torch.cuda.stream(stream):
                gemm(a, b, out, transpose_b=True)
        graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(out, exact) for out in (replayed, *outs))
    exact = (small_integers(torch, a) @ b.double().T).bfloat16()
    graph.replay()
    assert torch.equal(replayed, exact)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
def test_attention_of_heads_that_begin_anywhere(torch):
    """Equal to that of aligned copies, bit for bit."""
    packed = torch.randn(2, 3, 300, 137, device="cuda").bfloat16()
    q, k, v = (packed[..., first : first + 128] for first in (3, 1, 5))
    results = [torch.empty(2, 3, 300, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    attention(q, k, v, results[0], causal=True)
    attention(*(x.contiguous() for x in (q, k, v)), results[1], causal=True)
    assert torch.equal(*results)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [0, 1, 5])
def test_an_operand_that_is_written_too_goes_the_other_way(torch, start):
    a, b = (inside(torch, (64, 64), start + first, 3, torch.bfloat16)[1] for first in (0, 2))
    exact = small_integers(torch, a) @ small_integers(torch, b)
    squared(a, b)
    assert torch.equal(a, exact.bfloat16())


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
def test_columns_as_rows(torch):
    """Views whose last axis is not contiguous are read by the kernel itself."""
    a, b = torch.empty(130, 200, device="cuda").half().T, torch.empty(90, 130, device="cuda").half()
    exact = small_integers(torch, a) @ small_integers(torch, b).T
    c = torch.empty(90, 200, device="cuda").half().T
    gemm(a, b, c, transpose_b=True)
    assert torch.equal(c, exact.half())
