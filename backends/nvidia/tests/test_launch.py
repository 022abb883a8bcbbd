"""Launches, recorded by a fake driver: devices, streams, attributes, parameters, graphs, threads and errors."""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import types
from dataclasses import replace

import numpy as np
import pytest
from cuda.bindings import driver as cuda

import warpwave as ww
from warpwave import f32, gl, i32, st
from warpwave.backends.nvidia.arch import SM80, SM90A
from warpwave.backends.nvidia.backend import BACKEND, _targets
from warpwave.backends.nvidia.program import NvidiaProgram
from warpwave.backends.nvidia.runtime import devices, driver, relaunch, use_stream
from warpwave.backends.nvidia.tests.fake_cuda import FakeCuda, Gpu
from warpwave.backends.nvidia.tests.harness import (
    checked,
    copy4,
    faked,
    ir_of,
    library,
    lowered_scale,
    on_gpu,
    pretend_torch,
    program_of,
    scale,
    tile_map,
    unbuilt,
)
from warpwave.tiles.errors import CheckFailed, InternalError, LaunchError, ResourceError, UnsupportedError
from warpwave.tiles.ir import walk
from warpwave.tiles.runtime.arrays import borrow

TENSOR2 = 8 + 2 * 8 + 2 * 4
SCALE_SIZES = [TENSOR2, TENSOR2, 4, 16, 8]


@pytest.fixture
def fake(monkeypatch):
    with faked(FakeCuda(sizes=SCALE_SIZES), monkeypatch) as found:
        _targets.cache_clear()
        yield found
        _targets.cache_clear()


def matrix(rows=100, cols=64):
    return np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)


def scale_program(**changes) -> NvidiaProgram:
    return unbuilt(ir_of(scale, matrix(), matrix(), 1.0), **changes)


def arguments(x=None, y=None, factor=2.5, device="dlpack2:0", owner=None):
    x = matrix() if x is None else x
    y = np.zeros_like(x) if y is None else y
    return {"x": on_gpu(x, device, owner), "y": on_gpu(y, device, owner), "factor": factor}


def test_a_launch_has_the_grid_the_threads_and_the_parameters(fake):
    x = matrix()
    given = arguments(x)
    scale_program().run(given)
    (launch,) = fake.launches
    assert (launch.grid, launch.block, launch.shared, launch.stream) == ((4 * 2, 1, 1), (128, 1, 1), 0, 0)
    data, row, col, rows, cols = struct.unpack("Qqqii", launch.parameters[0])
    assert (data, row, col, rows, cols) == (x.ctypes.data, 64, 1, 100, 64)
    assert struct.unpack("Q", launch.parameters[1][:8]) == (given["y"].address,)
    assert struct.unpack("f", launch.parameters[2]) == (2.5,)
    assert struct.unpack("4i", launch.parameters[3]) == (4, 2, 1, 1)
    assert launch.parameters[4] == bytes(8)  # no checks: no status word


def test_only_what_changes_is_written_again(fake):
    program = scale_program()
    for factor in (1.0, 2.0, 3.0):
        program.run(arguments(factor=factor))
    assert [struct.unpack("f", launch.parameters[2])[0] for launch in fake.launches] == [1.0, 2.0, 3.0]
    assert len(fake.called("cuModuleLoadData")) == 1
    assert len(program.launcher._plans) == 1  # the factor has no say in the grid


def test_a_launch_allocates_and_waits_for_nothing(fake):
    program = scale_program()
    given = arguments()
    program.run(given)
    fake.calls.clear()
    program.run(given)
    assert {name for name, _ in fake.calls} <= {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel"}


def test_an_empty_grid_launches_nothing(fake):
    scale_program().run(arguments(np.zeros((0, 64), np.float32)))
    assert not fake.launches
    assert not fake.called("cuModuleLoadData")


def test_a_grid_beyond_the_limit_is_refused(fake):
    given = arguments()
    given.update({name: replace(given[name], shape=(2**31 - 1, 2**31 - 1)) for name in "xy"})
    with pytest.raises(UnsupportedError, match="blocks, a launch has at most 2147483647"):
        scale_program().run(given)


@pytest.mark.parametrize(
    ("x", "wide", "tma"),
    [
        (matrix(), "ffffffffffffffff", "1"),
        (matrix(100, 63), "fffffffffffffffc", "0"),
        (np.zeros((100, 65), np.float32)[:, 1:], "fffffffffffffffe", "0"),
        (np.zeros((100, 68), np.float32)[:, :64], "ffffffffffffffff", "1"),
        (np.zeros((64, 100), np.float32).T, "fffffffefffffffe", "0"),
    ],
    ids=["best", "odd", "misaligned", "padded", "transposed"],
)
def test_the_variant_is_chosen_for_each_launch(fake, x, wide, tma):
    fake.sizes = [*SCALE_SIZES[:3], 128, 16, 8]
    y = np.zeros(x.shape, np.float32)
    program = scale_program(maps=(tile_map("x", (0, 1)),))
    program.run(arguments(x, y))
    assert fake.called("cuModuleLoadData")[0][0].decode() == f"{wide} {tma}"
    (launch,) = fake.launches
    expected = x.ctypes.data.to_bytes(8, "little") * 16 if tma == "1" else bytes(128)
    assert launch.parameters[3] == expected


def test_tensor_maps_are_encoded_once_for_an_address(fake):
    fake.sizes = [*SCALE_SIZES[:3], 128, 128, 16, 8]
    program = scale_program(maps=(tile_map("x", (0, 1)), tile_map("y", (0, 1), rows=32)))
    first, second = arguments(), arguments()
    for given in (first, second, first, second):
        program.run(given)
    assert len(fake.called("cuTensorMapEncodeTiled")) == 4
    assert [call[2] for call in fake.called("cuTensorMapEncodeTiled")[:2]] == [first["x"].address, first["y"].address]
    assert fake.launches[0].parameters == fake.launches[2].parameters


def test_maps_of_tensors_of_higher_rank(fake):
    x = np.zeros((2, 3, 100, 64), np.uint16)
    kernel = ir_of(copy4, x.view(np.float16).astype("bfloat16"), x.view(np.float16).astype("bfloat16"))
    fake.sizes = [8 + 4 * 8 + 4 * 4] * 2 + [128, 16, 8]
    b = x.astype(np.float32).astype("bfloat16")
    unbuilt(kernel, maps=(tile_map("y", (2, 3)),)).run({"x": on_gpu(b), "y": on_gpu(b.copy())})
    (call,) = fake.called("cuTensorMapEncodeTiled")
    assert [int(n) for n in call[3]] == [64, 100, 3, 2]
    assert fake.launches[0].grid == (2 * 3 * 2 * 1, 1, 1)


# -- grids and attributes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "blocks"),
    [
        ({"persistent": True}, 264),  # 132 multiprocessors, 2 blocks on each
        ({"cluster": 2}, 314),
        ({"cluster": 2, "persistent": True}, 4),  # the fake says: 2 clusters at a time
        ({"cluster": 4}, 316),
    ],
    ids=str,
)
def test_persistent_grids_and_clusters(fake, changes, blocks):
    scale_program(**changes).run(arguments(matrix(157 * 32, 33)))  # 157 x 2 blocks
    (launch,) = fake.launches
    assert launch.grid == (blocks, 1, 1)
    assert launch.cluster == changes.get("cluster", 1)
    assert struct.unpack("4i", launch.parameters[3]) == (157, 2, 1, 1)


def test_a_small_problem_on_a_persistent_grid(fake):
    scale_program(persistent=True).run(arguments())
    assert fake.launches[0].grid == (8, 1, 1)


def test_dynamic_shared_memory_is_asked_for(fake):
    scale_program(shared_bytes=200 << 10).run(arguments())
    (_, attribute, value) = fake.called("cuFuncSetAttribute")[0]
    assert attribute == cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert value == 200 << 10
    assert fake.launches[0].shared == 200 << 10


def test_large_clusters_are_asked_for(fake):
    scale_program(cluster=16).run(arguments())
    (_, attribute, _) = fake.called("cuFuncSetAttribute")[0]
    assert attribute == cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


def test_a_device_with_less_shared_memory_refuses(fake):
    fake.gpus[:] = [Gpu((8, 6), "NVIDIA A10", 72, 101376)]
    program = scale_program(target=SM80, shared_bytes=160 << 10)
    with pytest.raises(ResourceError, match=r"163840 bytes of shared memory a block, device 0 \(NVIDIA A10"):
        program.run(arguments())


# -- devices ------------------------------------------------------------------------------------------


def test_a_launch_goes_to_the_arrays_device_and_leaves_the_current_one(fake):
    fake.gpus.append(Gpu())
    program = scale_program()
    program.run(arguments(device="dlpack2:1"))
    program.run(arguments(device="dlpack2:0"))
    fake.do_cuCtxSetCurrent(0xC0)
    program.run(arguments(device="dlpack2:1"))
    assert [launch.context for launch in fake.launches] == [0xC1, 0xC0, 0xC1]
    assert fake.do_cuCtxGetCurrent() == 0xC0
    assert len(fake.called("cuModuleLoadData")) == 2  # once for each device


def test_another_kind_of_gpu_is_refused(fake):
    fake.gpus[:] = [Gpu((8, 9), "NVIDIA L4")]
    with pytest.raises(
        LaunchError, match=r"compiled for nvidia:sm90a, its arrays are on device 0 \(NVIDIA L4"
    ) as caught:
        scale_program().run(arguments())
    assert "target='nvidia:sm89'" in str(caught.value)


def test_code_of_an_older_target_runs_as_ptx_if_that_is_asked_for(fake, monkeypatch, tmp_path):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    monkeypatch.delenv(devices.PTX, raising=False)
    program = program_of(*lowered_scale(), SM80)
    with pytest.raises(LaunchError, match=r"compiled for nvidia:sm80, its arrays are on device 0 \(NVIDIA H200"):
        program.run(arguments())
    monkeypatch.setenv(devices.PTX, "1")
    program.run(arguments())
    (image,) = fake.called("cuModuleLoadData")[0]
    assert b".target sm_80" in image
    assert image.endswith(b"\0")


@pytest.mark.parametrize("target", [SM80, SM90A])
def test_ptx_of_one_architecture_and_older_devices_stay_refused(fake, monkeypatch, target):
    fake.gpus[:] = [Gpu((7, 5), "NVIDIA T4") if target is SM80 else Gpu((10, 0), "NVIDIA B200")]
    monkeypatch.setenv(devices.PTX, "1")
    with pytest.raises(LaunchError, match=f"compiled for {target.full_name}, its arrays are on device 0"):
        scale_program(target=target).run(arguments())


def test_arrays_of_another_vendor_are_refused(fake):
    with pytest.raises(LaunchError, match="its arrays are on dlpack10:0"):
        scale_program().run(arguments(device="dlpack10:0"))


def test_a_device_that_cuda_does_not_show(fake):
    with pytest.raises(LaunchError, match="an array is on CUDA device 3, but CUDA shows 1 devices"):
        scale_program().run(arguments(device="dlpack2:3"))


def test_the_target_follows_from_the_device(fake):
    fake.gpus[:] = [Gpu(), Gpu((8, 0), "NVIDIA A100"), Gpu((8, 9), "NVIDIA L40S"), Gpu((10, 0), "NVIDIA B200")]
    assert BACKEND.target_for("dlpack2:0") == "nvidia:sm90a"
    assert BACKEND.target_for("dlpack2:1") == "nvidia:sm80"
    assert BACKEND.target_for("dlpack13:2") == "nvidia:sm89"
    assert BACKEND.target_for("cpu:0") is None
    assert BACKEND.target_for("dlpack10:0") is None
    with pytest.raises(UnsupportedError, match=r"device 3 \(NVIDIA B200, compute capability 10.0\) is not supported"):
        BACKEND.target_for("dlpack2:3")


def test_targets_name_the_device_that_runs_them(fake):
    fake.gpus[:] = [Gpu(), Gpu((8, 9), "NVIDIA L40S")]
    runs = {t.name: t.runs for t in BACKEND.targets()}
    assert runs == {"nvidia:sm90a": "NVIDIA H200", "nvidia:sm89": "NVIDIA L40S", "nvidia:sm80": ""}
    assert "NVIDIA H200" in BACKEND.diagnose()[-1].detail


def test_without_a_device_code_is_built_but_not_run(monkeypatch):
    monkeypatch.setattr(driver, "may_have_devices", lambda: False)
    devices.devices.cache_clear()
    _targets.cache_clear()
    x = borrow(matrix())
    with pytest.raises(UnsupportedError, match="built for nvidia:sm90a, which no device here can run") as caught:
        scale_program().run({"x": x, "y": x, "factor": 1.0})
    assert "devices that CUDA shows: none" in str(caught.value)
    assert {t.runs for t in BACKEND.targets()} == {""}
    assert all(t.missing for t in BACKEND.targets())


def test_without_cuda_bindings_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(driver, "is_installed", lambda: False)
    devices.devices.cache_clear()
    with pytest.raises(LaunchError, match="cuda-bindings is not installed") as caught:
        scale_program().run(arguments())
    assert "pip install cuda-bindings" in str(caught.value)
    devices.devices.cache_clear()


def test_there_is_no_simulator():
    with pytest.raises(UnsupportedError, match="no simulator for nvidia:sm90a"):
        BACKEND.compile(ir_of(scale, matrix(), matrix(), 1.0), "nvidia:sm90a:sim", {})


# -- streams ------------------------------------------------------------------------------------------


@pytest.fixture
def torch(monkeypatch):
    return pretend_torch(monkeypatch)


@pytest.fixture
def cupy(monkeypatch):
    entered = []

    class Device:
        def __init__(self, ordinal):
            self.ordinal = ordinal

        def __enter__(self):
            entered.append(self.ordinal)

        def __exit__(self, *error):
            entered.pop()

    current = types.SimpleNamespace(
        Device=Device, get_current_stream=lambda: types.SimpleNamespace(ptr=0x900 + entered[-1])
    )
    module, owner = library("cupy", cuda=current)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return owner


def test_pytorchs_current_stream_is_used(fake, torch):
    fake.gpus.append(Gpu())
    scale_program().run(arguments(owner=("capsule", torch)))
    scale_program().run(arguments(owner=torch, device="dlpack2:1"))
    assert [launch.stream for launch in fake.launches] == [0x700, 0x701]


def test_older_pytorch_is_asked_through_its_public_name(fake, monkeypatch):
    public = types.SimpleNamespace(current_stream=lambda ordinal: types.SimpleNamespace(cuda_stream=0x710 + ordinal))
    module, owner = library("torch", _C=types.SimpleNamespace(), cuda=public)
    monkeypatch.setitem(sys.modules, "torch", module)
    scale_program().run(arguments(owner=owner))
    assert fake.launches[0].stream == 0x710


def test_cupys_current_stream_is_used(fake, cupy):
    scale_program().run(arguments(owner=("capsule", cupy)))
    assert fake.launches[0].stream == 0x900


def test_a_stream_may_be_named(fake, torch, cupy):
    program = scale_program()
    mixed = {**arguments(owner=torch), "y": on_gpu(matrix(), owner=cupy)}
    with pytest.raises(LaunchError, match="libraries with different current streams"):
        program.run(mixed)
    with use_stream(0x42):
        program.run(mixed)
        with use_stream(cuda.CUstream(0x43)):
            program.run(mixed)
        program.run(mixed)
    assert [launch.stream for launch in fake.launches] == [0x42, 0x43, 0x42]


def test_other_libraries_make_their_data_ready_on_the_stream(fake):
    asked = []

    class Foreign:
        def __dlpack__(self, stream):
            asked.append(stream)

    owner = Foreign()
    program = scale_program()
    program.run(arguments(owner=("capsule", owner)))
    with use_stream(0x42):
        program.run(arguments(owner=owner))
    assert asked == [1, 1, 0x42, 0x42]  # 1 is DLPack's name of the default stream


# -- reports ------------------------------------------------------------------------------------------


CHECKED_SIZES = [TENSOR2, TENSOR2, 4, 8, 1, 16, 8]


def checked_program():
    x = matrix()
    return unbuilt(ir_of(checked, x, x, 1.0, 1, True))


def checked_arguments(**changes):
    given = arguments()
    return {"x": given["x"], "y": given["y"], "limit": 3.5, "seed": 2**40, "flag": True, **changes}


def failing(launch):
    """The kernel writes the number of its first check."""
    (address,) = struct.unpack("Q", launch.parameters[-1])
    ctypes.c_int32.from_address(address).value = 1


def test_scalars_of_all_kinds(fake):
    fake.sizes = CHECKED_SIZES
    checked_program().run(checked_arguments())
    limit, seed, flag = fake.launches[0].parameters[2:5]
    assert struct.unpack("f", limit) == (3.5,)
    assert struct.unpack("q", seed) == (2**40,)
    assert flag == b"\1"


def test_a_failed_check_is_raised_at_the_users_line(fake):
    fake.sizes = CHECKED_SIZES
    program = checked_program()
    program.run(checked_arguments())
    fake.on_launch = failing
    with pytest.raises(CheckFailed, match="too many rows") as caught:
        program.run(checked_arguments())
    assert 'ww.check(m < 100000, "too many rows")' in str(caught.value)
    assert len(fake.called("cuStreamSynchronize")) == 2
    assert not fake.memory  # everything was freed


def test_checks_in_a_captured_graph_are_raised_later(fake):
    """Nothing is waited for under capture; what a replay reports is raised by the next ordinary launch."""
    fake.sizes = CHECKED_SIZES
    program = checked_program()
    fake.capturing.add(0)
    program.run(checked_arguments())
    assert [args for args in fake.called("cuStreamSynchronize") if args[0] == 0] == []
    assert not fake.called("cuMemcpyDtoH")
    captured = fake.launches[0]
    assert captured.parameters[-1] != bytes(8)
    modes = [mode.name for (mode,) in fake.called("cuThreadExchangeStreamCaptureMode")]
    assert modes == ["CU_STREAM_CAPTURE_MODE_RELAXED", "CU_STREAM_CAPTURE_MODE_GLOBAL"] * 2  # loading, the status word
    fake.capturing.clear()
    program.run(checked_arguments())
    failing(captured)  # a replay of the graph
    with pytest.raises(CheckFailed, match="too many rows in a replay of a captured graph"):
        program.run(checked_arguments())
    program.run(checked_arguments())


def test_kernels_without_checks_are_captured_without_any_other_call(fake):
    fake.capturing.add(0)
    program = scale_program()
    program.run(arguments())
    fake.calls.clear()
    program.run(arguments())
    assert "cuMemAlloc" not in {name for name, _ in fake.calls}
    assert not fake.called("cuStreamSynchronize")


# -- arrays in host memory ----------------------------------------------------------------------------


def test_host_arrays_are_copied_in_and_what_was_written_out(fake):
    x, y = matrix(), np.zeros((100, 64), np.float32)

    def multiply(launch):
        for_x, for_y = (struct.unpack("Q", p[:8])[0] for p in launch.parameters[:2])
        assert for_x != x.ctypes.data
        assert for_x % 256 == x.ctypes.data % 256
        source = np.ctypeslib.as_array((ctypes.c_float * 6400).from_address(for_x))
        np.ctypeslib.as_array((ctypes.c_float * 6400).from_address(for_y))[:] = source * 2.5
        source[:] = -1

    fake.on_launch = multiply
    scale_program().run({"x": borrow(x), "y": borrow(y), "factor": 2.5})
    np.testing.assert_array_equal(y, matrix() * 2.5)
    np.testing.assert_array_equal(x, matrix())  # inputs are not copied back
    assert not fake.memory


def test_views_of_one_host_array_stay_views_of_one_array(fake):
    base = np.zeros((200, 64), np.float32)
    x, y = base[::-1][:150], base[50:]
    addresses = []
    fake.on_launch = lambda launch: addresses.extend(struct.unpack("Q", p[:8])[0] for p in launch.parameters[:2])
    scale_program().run({"x": borrow(x), "y": borrow(y), "factor": 1.0})
    assert addresses[0] - addresses[1] == x.ctypes.data - y.ctypes.data


# -- faults and threads -------------------------------------------------------------------------------


def test_driver_errors_have_cudas_name_and_point_at_the_kernel(fake):
    fake.failing["cuLaunchKernel"] = cuda.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    type(fake).do_cuGetErrorName = lambda self, code: code.name.encode()
    type(fake).do_cuGetErrorString = lambda self, code: b"an illegal memory access was encountered"
    try:
        with pytest.raises(LaunchError) as caught:
            scale_program().run(arguments())
    finally:
        del type(fake).do_cuGetErrorName, type(fake).do_cuGetErrorString
    message = str(caught.value)
    assert "kernel scale for nvidia:sm90a on device 0 (NVIDIA H200, compute capability 9.0)" in message
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered) from cuLaunchKernel" in message
    assert "def scale" in message


def test_threads_load_a_kernel_once_and_do_not_mix_parameters(fake):
    program = scale_program()
    ready = threading.Barrier(8)
    problems = []

    def work(number):
        ready.wait()
        for i in range(50):
            program.run(arguments(factor=float(1000 * number + i)))

    def seen(launch):
        if struct.unpack("f", launch.parameters[2])[0] not in expected:
            problems.append(launch)

    expected = {float(1000 * n + i) for n in range(8) for i in range(50)}
    fake.on_launch = seen
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert sorted(struct.unpack("f", launch.parameters[2])[0] for launch in fake.launches) == sorted(expected)
    assert len(fake.called("cuModuleLoadData")) == 1


def test_a_real_cubin_is_what_is_loaded(fake, monkeypatch, tmp_path):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    program = program_of(*lowered_scale())
    program.run(arguments())
    (image,) = fake.called("cuModuleLoadData")[0]
    assert image.startswith(b"\x7fELF")
    assert program.target is SM90A


def test_a_bad_source_is_an_internal_error(fake, monkeypatch, tmp_path):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    kernel, lowered = lowered_scale()
    with pytest.raises(InternalError, match="does not compile"):
        program_of(kernel, lowered, built_source="nonsense", source="nonsense").run(arguments())


# -- launching again ----------------------------------------------------------------------------------


def aligned(shape=(100, 64)):
    """Zeros whose address is a multiple of 16."""
    memory = np.zeros(shape[0] * shape[1] + 4, np.float32)
    start = -(memory.ctypes.data // 4) % 4
    return memory[start : start + shape[0] * shape[1]].reshape(shape)


@pytest.mark.parametrize(
    "changes",
    [{}, {"cluster": 2}, {"persistent": True}, {"shared_bytes": 100 << 10}, {"maps": (tile_map("x", (0, 1)),)}],
    ids=lambda changes: next(iter(changes), "plain"),
)
def test_launching_again_passes_what_a_launch_would(fake, torch, changes):
    if "maps" in changes:
        fake.sizes = [*SCALE_SIZES[:3], 128, 16, 8]
    program = scale_program(**changes)
    first, second = (arguments(aligned(), aligned(), factor, owner=("capsule", torch)) for factor in (2.0, 3.0))
    again = program.again(first)
    assert again([second["x"].address, second["y"].address], [3.0])
    program.run(second)
    quick, full = fake.launches
    assert quick == full
    assert quick.stream == 0x700


def test_launching_again_remembers_sets_of_addresses_not_numbers(fake, torch, monkeypatch):
    monkeypatch.setattr(relaunch, "REMEMBERED", 2)
    fake.sizes = [*SCALE_SIZES[:3], 128, 16, 8]
    x = aligned()
    again = scale_program(maps=(tile_map("x", (0, 1)),)).again(arguments(x, x, owner=("capsule", torch)))
    sets = [(16, 32), (32, 16), (16, 32), (48, 64), (16, 32), (80, 96)]
    for number, addresses in enumerate(sets):
        assert again(list(addresses), [float(number)])
    assert len(again._images) <= 2
    for number, (addresses, launch) in enumerate(zip(sets, fake.launches, strict=True)):
        assert tuple(struct.unpack("Q", p[:8])[0] for p in launch.parameters[:2]) == addresses
        assert struct.unpack("f", launch.parameters[2]) == (number,)
        assert launch.parameters[3] == addresses[0].to_bytes(8, "little") * 16


def test_launching_again_is_refused_where_more_matters(fake, torch, cupy):
    program = scale_program()
    x, owner = aligned(), ("capsule", torch)
    again = program.again(arguments(x, aligned(), owner=owner))
    assert not again([x.ctypes.data + 4, x.ctypes.data], [1.0])
    assert not fake.launches
    assert program.again(arguments(aligned((100, 65))[:, 1:], aligned(), owner=owner)) is None
    assert program.again(arguments(x, aligned(), owner=cupy)) is None
    assert program.again(arguments(np.zeros((0, 64), np.float32), np.zeros((0, 64), np.float32), owner=owner)) is None
    assert program.again({"x": borrow(x), "y": borrow(aligned()), "factor": 1.0}) is None
    given = arguments(x, aligned(), owner=owner)
    assert checked_program().again(checked_arguments(x=given["x"], y=given["y"])) is None


@ww.kernel
def repeated(x: gl[f32], y: gl[f32], factor: f32, count: i32, *, B=32):
    n = ww.grid(count)
    ww.store(y, (n, 0), ww.load(x, (n, 0), st[f32, B, B]) * factor)


def test_numbers_that_the_grid_depends_on_must_be_the_same(fake, torch):
    fake.sizes = [TENSOR2, TENSOR2, 4, 4, 16, 8]
    x = aligned()
    program = unbuilt(ir_of(repeated, x, x, 1.0, 3))
    given = {**arguments(x, x, owner=("capsule", torch)), "count": 3}
    again = program.again(given)
    assert again([x.ctypes.data] * 2, [7.0, 3])
    assert not again([x.ctypes.data] * 2, [7.0, 4])
    assert [launch.grid for launch in fake.launches] == [(3, 1, 1)]


def test_launching_again_on_another_device_stream_and_thread(fake, torch):
    fake.gpus.append(Gpu())
    x = aligned()
    again = scale_program().again(arguments(x, x, device="dlpack2:1", owner=("capsule", torch)))
    fake.do_cuCtxSetCurrent(0xC0)
    again([x.ctypes.data] * 2, [1.0])
    with use_stream(0x55):
        again([x.ctypes.data] * 2, [2.0])
    worker = threading.Thread(target=again, args=([x.ctypes.data] * 2, [3.0]))
    worker.start()
    worker.join()
    assert fake.do_cuCtxGetCurrent() == 0xC0
    assert [launch.context for launch in fake.launches] == [0xC1] * 3
    assert [launch.stream for launch in fake.launches] == [0x701, 0x55, 0x701]
    assert [struct.unpack("f", launch.parameters[2])[0] for launch in fake.launches] == [1.0, 2.0, 3.0]


def test_threads_that_launch_again_do_not_mix_parameters(fake, torch):
    x = aligned()
    again = scale_program().again(arguments(x, x, owner=("capsule", torch)))
    ready = threading.Barrier(8)

    def work(number):
        ready.wait()
        for i in range(100):
            assert again([16 * number, 16 * i], [float(1000 * number + i)])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = {tuple(struct.unpack("Q", p[:8])[0] // 16 for p in launch.parameters[:2]) for launch in fake.launches}
    assert seen == {(n, i) for n in range(1, 9) for i in range(100)}
    for launch in fake.launches:
        number, i = (struct.unpack("Q", p[:8])[0] // 16 for p in launch.parameters[:2])
        assert struct.unpack("f", launch.parameters[2]) == (1000 * number + i,)


def test_a_launch_again_that_fails_names_the_kernel(fake, torch, monkeypatch):
    x = aligned()
    again = scale_program().again(arguments(x, x, owner=("capsule", torch)))
    fake.failing["cuLaunchKernel"] = cuda.CUresult.CUDA_ERROR_LAUNCH_FAILED
    monkeypatch.setattr(FakeCuda, "do_cuGetErrorName", lambda self, code: code.name.encode(), raising=False)
    monkeypatch.setattr(
        FakeCuda, "do_cuGetErrorString", lambda self, code: b"unspecified launch failure", raising=False
    )
    with pytest.raises(LaunchError, match=r"kernel scale for nvidia:sm90a on device 0 .*CUDA_ERROR_LAUNCH_FAILED"):
        again([x.ctypes.data] * 2, [1.0])


# -- prints -------------------------------------------------------------------------------------------


@ww.kernel
def printing(x: gl[f32]):
    m, n = ww.grid(x.rows, x.cols)
    ww.print("number", m * 10 + n)


def printing_program():
    kernel = ir_of(printing, matrix(2, 2))
    prints = tuple(op for op in walk(kernel.body) if op.name == "print")
    return unbuilt(kernel, prints=prints)


def test_prints_are_shown_block_by_block(fake, capsys):
    fake.sizes = [TENSOR2, 16, 8, 8]

    def two_records(launch):
        """As the generated code writes them: words in use, then for each record the print, the block, the values."""
        (address,) = struct.unpack("Q", launch.parameters[-1])
        words = (ctypes.c_uint64 * 16).from_address(address)
        assert words[0] == 1
        words[0:9] = [9, 1, 1, 1, 11, 1, 0, 1, 1]

    fake.on_launch = two_records
    printing_program().run({"x": on_gpu(matrix(2, 2))})
    assert capsys.readouterr().out.splitlines() == ["block (0, 1) number 1", "block (1, 1) number 11"]
    assert not fake.memory


def test_prints_in_a_captured_graph_are_refused(fake):
    fake.sizes = [TENSOR2, 16, 8, 8]
    fake.capturing.add(0)
    with pytest.raises(UnsupportedError, match=r"ww.print cannot be shown from a captured graph") as caught:
        printing_program().run({"x": on_gpu(matrix(2, 2))})
    assert 'ww.print("number"' in str(caught.value)
    assert not fake.launches
