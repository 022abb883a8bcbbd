"""Kernels launched through unmodified hip-python on the simulator's HIP: arrays, devices, streams, threads, faults."""

from __future__ import annotations

import sys
import threading
import types

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd import backend, program
from warpwave.backends.amd.runtime import devices, use_stream
from warpwave.backends.amd.runtime import hip as hip_module
from warpwave.backends.amd.runtime.launcher import Launcher
from warpwave.backends.amd.runtime.tests.device_arrays import DeviceArray, on_device
from warpwave.backends.amd.runtime.tests.kernels import affine, below, counted, doubled, telling
from warpwave.tiles.errors import CheckFailed, LaunchError, UnsupportedError
from warpwave.tiles.runtime.arrays import Array


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def result(x, factor):
    return np.float32(factor) * x + np.float32(1)


def test_arrays_choose_the_target_and_the_device(hip):
    x = numbers(50, 70)
    dx, dy = on_device(hip, x), on_device(hip, np.zeros_like(x))
    affine(dx, dy, 3.0)
    assert np.array_equal(dy.numpy(), result(x, 3))


def test_compiled_kernels_run_on_device_arrays(hip):
    compiled = affine.compile(ww.spec("f32[?,?]"), ww.spec("f32[?,?]"), ww.spec("f32"), target="amd:gfx950")
    x = numbers(5, 6)
    dx, dy = on_device(hip, x), on_device(hip, np.zeros_like(x))
    compiled.run(dx, dy, -2.0)
    assert np.array_equal(dy.numpy(), result(x, -2))


def views():
    base = numbers(40, 66)
    yield "columns", base[:, 1:64]
    yield "every other row", base[::2, :64]
    yield "transposed", base.T
    yield "reversed", base[::-1, ::-1]
    yield "offset by one", base.reshape(-1)[1:2601].reshape(40, 65)
    yield "broadcast", np.broadcast_to(base[:1], (9, 66))


@pytest.mark.parametrize("view", [pytest.param(v, id=n) for n, v in views()])
def test_strided_and_offset_arrays(hip, view):
    out = np.zeros(view.shape, np.float32)
    dx, dy = on_device(hip, view), on_device(hip, out)
    affine(dx, dy, 2.0)
    assert np.array_equal(dy.numpy(), result(view, 2))


def test_strided_output_leaves_the_rest_alone(hip):
    base = numbers(32, 80)
    out = on_device(hip, base)
    part = DeviceArray(hip, out.pointer, np.float32, (32, 20), (80, 3), 0, 7)
    doubled(part)
    expected = base.copy()
    expected[:, 7:67:3] *= 2
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_arrays_without_elements_launch_nothing(hip, shape):
    empty = DeviceArray(hip, 0, np.float32, shape, (max(shape[1], 1), 1))
    affine(empty, empty, 1.0)
    assert not hip.hipDeviceSynchronize()[0]


def test_host_arrays_are_copied_to_the_device_and_back(hip, monkeypatch):
    launches = record_launches(monkeypatch)
    x = numbers(33, 35)
    y = np.zeros_like(x)
    affine(x, y, 4.0, target="amd:gfx950")
    assert np.array_equal(y, result(x, 4))
    assert launches == [0]
    assert "runs on a gfx950 device" in affine.compile(x, y, 1.0, target="amd:gfx950").explain()
    assert "runs on the simulator" in affine.compile(x, y, 1.0, target="amd:gfx950:sim").explain()


def test_host_views_of_one_array_share_memory_on_the_device(hip):
    base = numbers(32, 64)
    expected = base.copy()
    expected[:, 1::2] = result(base[:, ::2], 0.5)
    affine(base[:, ::2], base[:, 1::2], 0.5, target="amd:gfx950")
    assert np.array_equal(base, expected)


def test_read_only_inputs_are_enough(hip):
    x = numbers(8, 8)
    x.flags.writeable = False
    y = np.zeros_like(x)
    affine(x, y, 1.0, target="amd:gfx950")
    assert np.array_equal(y, result(x, 1))


def record_launches(monkeypatch) -> list[int]:
    ordinals: list[int] = []
    launch = Launcher.launch

    def recorded(self, device, *rest):
        ordinals.append(device.ordinal)
        return launch(self, device, *rest)

    monkeypatch.setattr(Launcher, "launch", recorded)
    return ordinals


def test_sim_forces_the_simulator(hip, monkeypatch):
    launches = record_launches(monkeypatch)
    x = numbers(8, 8)
    y = np.zeros_like(x)
    affine(x, y, 4.0, target="amd:gfx950:sim")
    assert np.array_equal(y, result(x, 4))
    assert launches == []
    dx = on_device(hip, x)
    with pytest.raises(UnsupportedError, match=r"host memory, got one on dlpack10:0[\s\S]*without ':sim'"):
        affine(dx, dx, 4.0, target="amd:gfx950:sim")


def test_without_a_device_the_simulator_runs_and_says_so_once(caplog, monkeypatch):
    program._say_once.cache_clear()
    monkeypatch.setattr(devices, "devices", lambda: ())
    monkeypatch.setattr(program, "devices", lambda: ())
    x = numbers(8, 8)
    assert "runs on the simulator" in affine.compile(x, x, 1.0, target="amd:gfx942").explain()
    for _ in range(2):
        affine(x, np.zeros_like(x), 4.0, target="amd:gfx942")
    assert [r.getMessage() for r in caplog.records] == ["no gfx942 device here: amd:gfx942 runs on the simulator"]


def test_targets_name_the_device_that_runs_them(hip):
    from warpwave.backends.amd.backend import BACKEND

    assert {t.name: t.runs for t in BACKEND.targets()} == {
        "amd:gfx942": "simulator",
        "amd:gfx950": "AMD Instinct MI355X (warpwave simulator)",
    }
    assert any("device 0 (AMD Instinct MI355X" in d.detail for d in BACKEND.diagnose())


def test_another_chip_than_compiled_for(hip):
    x = on_device(hip, numbers(8, 8))
    with pytest.raises(LaunchError, match=r"affine was compiled for gfx942, .*device 0 .*gfx950\)") as error:
        affine(x, x, 1.0, target="amd:gfx942")
    assert "target='amd:gfx950'" in str(error.value)


def test_a_chip_that_is_no_target(hip, monkeypatch):
    radeon = devices.Device(0, "gfx1201", "Radeon RX 9070")
    monkeypatch.setattr(devices, "devices", lambda: (radeon,))
    x = on_device(hip, numbers(8, 8))
    with pytest.raises(UnsupportedError, match=r"gfx1201\) is not supported[\s\S]*gfx942, gfx950"):
        affine(x, x, 1.0)


def test_arrays_of_another_vendor_or_on_a_device_that_hip_does_not_show(hip):
    x = on_device(hip, numbers(8, 8))
    missing = DeviceArray(hip, x.pointer, np.float32, (8, 8), (8, 1), device=3)
    with pytest.raises(LaunchError, match="AMD device 3, but HIP shows 1 devices"):
        affine(missing, missing, 1.0)
    other = Array(ww.f32, (8, 8), (8, 1), "dlpack2:0", x.pointer, x)
    with pytest.raises(LaunchError, match="compiled for gfx950, its arrays are on dlpack2:0"):
        affine(other, other, 1.0, target="amd:gfx950")
    with pytest.raises(LaunchError, match="different devices: x on dlpack10:0, y on cpu:0"):
        affine(x, np.zeros((8, 8), np.float32), 1.0, target="amd:gfx950")


# -- what a kernel reports --------------------------------------------------------------------------------


def test_a_failed_check_is_raised_at_the_users_line(hip):
    x = numbers(40, 40)
    dx = on_device(hip, x)
    below(dx, float(x.max()) + 1)
    with pytest.raises(CheckFailed, match="x is too large") as error:
        below(dx, float(x.max()))
    assert error.value.loc.file.endswith("kernels.py")
    with pytest.raises(CheckFailed, match="x is too large"):
        below(x, float(x.max()), target="amd:gfx950")


def test_prints_arrive(hip, capsys):
    telling(on_device(hip, np.arange(8, dtype=np.float32).reshape(2, 4)))
    assert capsys.readouterr().out.splitlines() == ["block (0) row [[0. 1. 2. 3.]]", "block (1) row [[4. 5. 6. 7.]]"]


def test_atomics(hip):
    out = on_device(hip, np.zeros((1, 1), np.int32))
    counted(out)
    assert out.numpy() == 64


# -- streams ------------------------------------------------------------------------------------------------


def good(result):
    assert not result[0], result
    return result[1] if len(result) > 1 else None


def record_streams(hip, monkeypatch) -> list[int]:
    seen: list[int] = []
    launch = hip.hipModuleLaunchKernel
    proxy = types.SimpleNamespace(**{n: getattr(hip, n) for n in dir(hip) if n.startswith("hip")})

    def recorded(*arguments):
        seen.append(int(arguments[8] or 0))
        return launch(*arguments)

    proxy.hipModuleLaunchKernel = recorded
    monkeypatch.setattr(hip_module, "module", lambda: proxy)
    return seen


def test_launches_keep_the_order_of_the_chosen_stream(hip, monkeypatch):
    seen = record_streams(hip, monkeypatch)
    stream, done = good(hip.hipStreamCreateWithFlags(1)), good(hip.hipEventCreate())
    x = on_device(hip, np.ones((32, 32), np.float32))
    with use_stream(stream):
        for factor in (2.0, 3.0, 5.0):
            affine(x, x, factor)
    good(hip.hipEventRecord(done, stream))
    good(hip.hipEventSynchronize(done))
    assert set(x.numpy().flat) == {((1 * 2 + 1) * 3 + 1) * 5 + 1}
    assert seen == [int(stream)] * 3
    affine(x, x, 0.0)
    assert seen[-1] == 0
    assert x.streams[-1] == 0
    assert int(stream) in x.streams


def test_the_current_stream_of_pytorch_is_used(hip, monkeypatch):
    """No PyTorch for ROCm here: a module and a tensor with the attributes that its own have."""
    seen = record_streams(hip, monkeypatch)
    stream = good(hip.hipStreamCreate())
    x = as_torch(hip, monkeypatch, stream)(on_device(hip, np.ones((32, 32), np.float32)))
    for _ in range(3):  # the first launch binds the arguments, later ones take its route
        affine(x, x, 2.0)
    assert seen == [int(stream)] * 3
    assert set(x.streams) == {-1}  # PyTorch orders its own stream: nothing is to be waited for
    good(hip.hipStreamSynchronize(stream))
    assert set(x.numpy().flat) == {((1 * 2 + 1) * 2 + 1) * 2 + 1}


def as_torch(hip, monkeypatch, stream=0):
    """Makes device arrays look like PyTorch's tensors."""
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda _: types.SimpleNamespace(cuda_stream=int(stream)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    methods = {
        "stride": lambda x: x.strides,
        "data_ptr": lambda x: x.pointer + x.offset * x.dtype.itemsize,
        "requires_grad": False,
    }
    kind = type("Tensor", (DeviceArray,), {"__module__": "torch", **methods})
    return lambda x: kind(hip, x.pointer, x.dtype, x.shape, x.strides, x.device, x.offset)


def test_later_launches_differ_in_addresses_and_numbers_only(hip, monkeypatch):
    tensor, fresh = as_torch(hip, monkeypatch), ww.kernel(affine.function)
    full = record_launches(monkeypatch)
    for seed in range(4):
        x = numbers(40, 48, seed=seed)
        dx, dy = tensor(on_device(hip, x)), tensor(on_device(hip, np.zeros_like(x)))
        fresh(dx, dy, seed + 0.5)
        good(hip.hipDeviceSynchronize())
        assert np.array_equal(dy.numpy(), result(x, seed + 0.5))
    assert full == [0]


def test_another_alignment_takes_the_long_way_and_another_variant(hip, monkeypatch):
    tensor, fresh = as_torch(hip, monkeypatch), ww.kernel(doubled.function)
    full = record_launches(monkeypatch)
    memory = numbers(41 * 48)
    for offset in (0, 4, 1, 8):
        base = on_device(hip, memory)
        fresh(tensor(DeviceArray(hip, base.pointer, np.float32, (40, 48), (48, 1), 0, offset)))
        good(hip.hipDeviceSynchronize())
        expected = memory.copy()
        expected[offset : offset + 40 * 48] *= 2
        assert np.array_equal(base.numpy(), expected)
    assert len(full) == 2  # the first, and the one that is not aligned to 16 bytes


def test_kernels_that_report_always_take_the_long_way(hip, monkeypatch):
    tensor, fresh = as_torch(hip, monkeypatch), ww.kernel(below.function)
    x = np.zeros((8, 8), np.float32)
    fresh(tensor(on_device(hip, x)), 1.0)
    with pytest.raises(CheckFailed):
        fresh(tensor(on_device(hip, x + 2)), 1.0)


def test_libraries_with_different_streams_are_refused(hip, monkeypatch):
    like = on_device(hip, np.ones((32, 32), np.float32))
    arrays = []
    for name, handle in (("torch", 8), ("cupy", 16)):
        module = types.ModuleType(name)
        module.cuda = types.SimpleNamespace(
            current_stream=lambda _, h=handle: types.SimpleNamespace(cuda_stream=h),
            get_current_stream=lambda h=handle: types.SimpleNamespace(ptr=h),
        )
        monkeypatch.setitem(sys.modules, name, module)
        kind = type("ndarray", (DeviceArray,), {"__module__": name})
        arrays.append(kind(hip, like.pointer, like.dtype, like.shape, like.strides))
    with pytest.raises(LaunchError, match="different current streams"):
        affine(*arrays, 1.0)


# -- modules, threads ---------------------------------------------------------------------------------------


def count_calls(hip, monkeypatch, name) -> list[int]:
    calls: list[int] = []
    proxy = types.SimpleNamespace(**{n: getattr(hip, n) for n in dir(hip) if n.startswith("hip")})

    def counted_call(*arguments):
        calls.append(1)
        return getattr(hip, name)(*arguments)

    setattr(proxy, name, counted_call)
    monkeypatch.setattr(hip_module, "module", lambda: proxy)
    return calls


def test_modules_are_loaded_once_for_each_variant(hip, monkeypatch):
    loads = count_calls(hip, monkeypatch, "hipModuleLoadData")
    compiled = doubled.compile(ww.spec("f32[?,?]"), target="amd:gfx950", B=16)
    wide, narrow = on_device(hip, numbers(16, 32)), on_device(hip, numbers(16, 33))
    for _ in range(3):
        compiled.run(wide)
    assert len(loads) == 1
    compiled.run(narrow)
    compiled.run(narrow)
    assert len(loads) == 2


def test_threads_share_one_program(hip, monkeypatch):
    loads = count_calls(hip, monkeypatch, "hipModuleLoadData")
    compiled = affine.compile(ww.spec("f32[?,?]"), ww.spec("f32[?,?]"), ww.spec("f32"), target="amd:gfx950", B=16)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            x = numbers(20, 20, seed=seed)
            dx, dy = on_device(hip, x), on_device(hip, np.zeros_like(x))
            with use_stream(good(hip.hipStreamCreateWithFlags(1))):
                for factor in range(5):
                    compiled.run(dx, dy, float(seed * factor))
            good(hip.hipDeviceSynchronize())
            if not np.array_equal(dy.numpy(), result(x, seed * 4)):
                wrong.append(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(loads) == 1


def test_threads_that_call_a_new_kernel_compile_it_once(hip, monkeypatch):
    compiles: list[str] = []
    compiled = backend.compiled
    monkeypatch.setattr(backend, "compiled", lambda *a, **k: compiles.append(a[1].name) or compiled(*a, **k))
    loads = count_calls(hip, monkeypatch, "hipModuleLoadData")
    fresh = ww.kernel(doubled.function)
    arrays = [on_device(hip, np.full((8, 8), n, np.float32)) for n in range(8)]
    together = threading.Barrier(8)

    def work(array) -> None:
        together.wait()
        fresh(array)

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good(hip.hipDeviceSynchronize())
    assert [set(a.numpy().flat) for a in arrays] == [{2 * n} for n in range(8)]
    assert compiles == ["gfx950"]
    assert len(loads) == 1


# -- failures -------------------------------------------------------------------------------------------


def test_out_of_memory(hip):
    far = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 2), (1 << 50, 4))  # never read
    with pytest.raises(LaunchError, match=r"affine for gfx950 on device 0 .*hipErrorOutOfMemory .*hipMalloc") as error:
        affine(far, np.zeros((2, 2), np.float32), 1.0, target="amd:gfx950")
    assert error.value.code == "hipErrorOutOfMemory"
    assert "def affine" in str(error.value)


def test_a_fault_is_raised_where_it_happens_if_launches_block(hip, monkeypatch, capfd):
    """The array claims more memory than was allocated; the exception holds the simulator's report."""
    monkeypatch.setenv("HIP_LAUNCH_BLOCKING", "1")
    pointer = good(hip.hipMalloc(64))
    good(hip.hipMemset(pointer, 0, 64))
    x = DeviceArray(hip, pointer, np.float32, (64, 64), (64, 1))
    with pytest.raises(LaunchError, match=r"kernel doubled .*hipError\w+ .*hipStreamSynchronize") as error:
        doubled(x)
    assert "bounds" in str(error.value)
    assert "hipMalloc" in str(error.value)
    assert "store" in str(error.value) or "load" in str(error.value)


def test_a_fault_of_a_launch_that_did_not_block_is_found_at_the_next_synchronisation(hip, capfd):
    """Or by a later call of the launch itself, if the kernel is that quick."""
    pointer = good(hip.hipMalloc(64))
    try:
        doubled(DeviceArray(hip, pointer, np.float32, (64, 64), (64, 1)))
        found = hip.hipDeviceSynchronize()[0].name
    except LaunchError as error:
        found = str(error)
    assert found != "hipSuccess"
    x = on_device(hip, numbers(8, 8))
    affine(x, x, 1.0)
    good(hip.hipDeviceSynchronize())


def test_a_launch_beyond_hips_limit(hip):
    x = on_device(hip, numbers(1, 1))
    many = DeviceArray(hip, x.pointer, np.float32, (2**31 - 1, 2**31 - 1), (0, 0))
    with pytest.raises(UnsupportedError, match="at most"):
        below(many, 1.0)


def test_code_that_hip_refuses(hip, monkeypatch):
    compiled = doubled.compile(ww.spec("f32[?,?]"), target="amd:gfx950", B=8)
    monkeypatch.setattr(program, "code_object", lambda *_: b"no code object" + bytes(64))
    with pytest.raises(LaunchError, match=r"hipErrorInvalidImage .*hipModuleLoadData"):
        compiled.run(on_device(hip, numbers(8, 8)))
