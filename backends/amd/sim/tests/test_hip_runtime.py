"""Unmodified hip-python runs kernels on the simulator: memory, modules, launches, streams, events, errors."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile

TARGET = "gfx950"
SOURCE = _compile.HERE / "hip" / "runtime.hip"
TO_DEVICE, TO_HOST, DEVICE_TO_DEVICE, DEFAULT = 1, 2, 3, 4


@pytest.fixture(scope="module")
def runtime():
    return sim.hip_runtime(TARGET)


@pytest.fixture(scope="module")
def hip(runtime):
    from hip import hip

    return hip


@pytest.fixture(scope="module")
def image():
    return _compile.assemble(_compile.hip(SOURCE, TARGET), TARGET).read_bytes()


@pytest.fixture
def module(hip, image):
    handle = good(hip.hipModuleLoadData(image))
    yield handle
    hip.hipModuleUnload(handle)


def good(result):
    """The results of a call that must succeed."""
    code, *values = result
    assert code.name == "hipSuccess", code
    return values[0] if len(values) == 1 else tuple(values)


def failed(result) -> str:
    """The error of a call that must fail."""
    assert result[0].name != "hipSuccess"
    return result[0].name


def kind(hip, number):
    return hip.hipMemcpyKind(number)


def upload(hip, array):
    pointer = good(hip.hipMalloc(array.nbytes))
    good(hip.hipMemcpy(pointer, array, array.nbytes, kind(hip, TO_DEVICE)))
    return pointer


def download(hip, pointer, like):
    out = np.empty_like(like)
    good(hip.hipMemcpy(out, pointer, out.nbytes, kind(hip, TO_HOST)))
    return out


def launch(hip, function, grid, block, extra, lds=0, stream=None):
    grid, block = (tuple(s) + (1,) * (3 - len(s)) for s in (grid, block))
    return hip.hipModuleLaunchKernel(function, *grid, *block, lds, stream, None, extra)


def function(hip, module, name):
    return good(hip.hipModuleGetFunction(module, name.encode()))


def test_device_is_the_simulated_chip(hip):
    assert good(hip.hipGetDeviceCount()) == 1
    properties = good(hip.hipGetDeviceProperties(0))
    assert properties.gcnArchName == "gfx950:sramecc+:xnack-"
    assert "simulator" in properties.name
    assert (properties.warpSize, properties.multiProcessorCount) == (64, 256)
    assert properties.sharedMemPerBlock == 160 * 1024
    attribute = hip.hipDeviceAttribute_t
    for name, value in [
        ("MultiprocessorCount", 256),
        ("WarpSize", 64),
        ("MaxThreadsPerBlock", 1024),
        ("MaxSharedMemoryPerBlock", 160 * 1024),
        ("ClockRate", 2_400_000),
    ]:
        assert good(hip.hipDeviceGetAttribute(getattr(attribute, f"hipDeviceAttribute{name}"), 0)) == value
    assert failed(hip.hipSetDevice(1)) == "hipErrorInvalidDevice"
    assert failed(hip.hipGetDeviceProperties(7)) == "hipErrorInvalidDevice"


def test_properties_structure_is_laid_out_as_hip_declares_it(hip):
    """Fields at the start, middle and end of the structure agree with the attribute of the same meaning."""
    properties = good(hip.hipGetDeviceProperties(0))
    pairs = {
        "maxThreadsPerBlock": "MaxThreadsPerBlock",
        "clockRate": "ClockRate",
        "memoryBusWidth": "MemoryBusWidth",
        "l2CacheSize": "L2CacheSize",
        "maxThreadsPerMultiProcessor": "MaxThreadsPerMultiProcessor",
        "regsPerMultiprocessor": "MaxRegistersPerMultiprocessor",
        "maxBlocksPerMultiProcessor": "MaxBlocksPerMultiProcessor",
        "hostRegisterSupported": "HostRegisterSupported",
        "maxSharedMemoryPerMultiProcessor": "MaxSharedMemoryPerMultiprocessor",
        "clockInstructionRate": "WallClockRate",
        "isLargeBar": "IsLargeBar",
        "major": "ComputeCapabilityMajor",
        "minor": "ComputeCapabilityMinor",
    }
    for field, name in pairs.items():
        attribute = getattr(hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}")
        assert getattr(properties, field) == good(hip.hipDeviceGetAttribute(attribute, 0)), field


def test_copies_and_fills(hip):
    data = np.arange(1000, dtype=np.float32)
    a, b = upload(hip, data), good(hip.hipMalloc(data.nbytes))
    good(hip.hipMemcpy(b, a, data.nbytes, kind(hip, DEVICE_TO_DEVICE)))
    assert np.array_equal(download(hip, b, data), data)
    good(hip.hipMemset(b, 0xAB, data.nbytes))
    assert set(download(hip, b, data).view(np.uint8)) == {0xAB}
    good(hip.hipMemsetD32(b, 0x01020304, data.size))
    assert set(download(hip, b, data).view(np.uint32)) == {0x01020304}
    host = np.zeros(4, np.float32)
    good(hip.hipMemcpy(host, int(a) + 40, host.nbytes, kind(hip, DEFAULT)))
    assert host.tolist() == [10, 11, 12, 13]
    for pointer in (a, b):
        good(hip.hipFree(pointer))


def test_bad_pointers_are_refused(hip, runtime):
    data = np.zeros(16, np.float32)
    pointer = upload(hip, data)
    assert failed(hip.hipMemcpy(pointer, data, 65, kind(hip, TO_DEVICE))) == "hipErrorInvalidValue"
    assert "65 bytes at byte 0 of buffer" in runtime.last_report()
    assert failed(hip.hipMemcpy(int(pointer) + 4, data, 64, kind(hip, TO_DEVICE))) == "hipErrorInvalidValue"
    assert failed(hip.hipMemcpy(pointer, data, 64, kind(hip, TO_HOST))) == "hipErrorInvalidMemcpyDirection"
    assert failed(hip.hipMemset(pointer, 0, 65)) == "hipErrorInvalidValue"
    assert failed(hip.hipFree(int(pointer) + 4)) == "hipErrorInvalidDevicePointer"
    good(hip.hipFree(pointer))
    assert failed(hip.hipFree(pointer)) == "hipErrorInvalidDevicePointer"
    assert failed(hip.hipMemcpy(pointer, data, 64, kind(hip, TO_DEVICE))) == "hipErrorInvalidValue"
    assert "not allocated" in runtime.last_report()


def test_pointer_attributes(hip):
    device, pinned = good(hip.hipMalloc(256)), good(hip.hipHostMalloc(256, 0))
    attributes = good(hip.hipPointerGetAttributes(int(device) + 16))
    assert attributes.type == hip.hipMemoryType.hipMemoryTypeDevice
    assert int(attributes.devicePointer) == int(device) + 16
    attributes = good(hip.hipPointerGetAttributes(pinned))
    assert attributes.type == hip.hipMemoryType.hipMemoryTypeHost
    assert int(good(hip.hipHostGetDevicePointer(pinned, 0))) == int(pinned)
    base, size = good(hip.hipMemGetAddressRange(int(device) + 100))
    assert (int(base), size) == (int(device), 256)
    assert failed(hip.hipPointerGetAttributes(np.zeros(4))) == "hipErrorInvalidValue"
    before, _ = good(hip.hipMemGetInfo())
    good(hip.hipFree(device))
    assert good(hip.hipMemGetInfo())[0] == before + 256
    good(hip.hipHostFree(pinned))


def test_vector_add_end_to_end(hip, module):
    n = 1000
    a, b = (np.random.default_rng(s).standard_normal(n).astype(np.float32) for s in (0, 1))
    da, db, dc = upload(hip, a), upload(hip, b), good(hip.hipMalloc(a.nbytes))
    kernel = function(hip, module, "vector_add")
    good(launch(hip, kernel, (16,), (64,), (dc, da, db, ctypes.c_int(n))))
    good(hip.hipDeviceSynchronize())
    assert np.array_equal(download(hip, dc, a), a + b)


def test_arguments_through_kernel_params(hip, runtime, module):
    """The C way: an array of pointers to the arguments; their sizes come from the kernel's metadata."""
    x = np.arange(100, dtype=np.float32)
    pointer = upload(hip, x)
    kernel = function(hip, module, "affine")
    values = [ctypes.c_void_p(int(pointer)), ctypes.c_ubyte(3), ctypes.c_double(0.5), ctypes.c_int(100)]
    array = (ctypes.c_void_p * 4)(*(ctypes.addressof(v) for v in values))
    raw = runtime.library.hipModuleLaunchKernel
    sizes = [ctypes.c_uint(v) for v in (2, 1, 1, 64, 1, 1, 0)]
    assert raw(ctypes.c_void_p(int(kernel)), *sizes, None, array, None) == 0
    assert np.array_equal(download(hip, pointer, x), x * 3 + 0.5)


def test_extra_arguments_of_mixed_sizes(hip, module):
    x = np.arange(100, dtype=np.float32)
    pointer = upload(hip, x)
    arguments = (pointer, ctypes.c_ubyte(7), ctypes.c_double(-2.0), ctypes.c_int(50))
    good(launch(hip, function(hip, module, "affine"), (2,), (64,), arguments))
    want = np.where(np.arange(100) < 50, x * 7 - 2, x)
    assert np.array_equal(download(hip, pointer, x), want)


def test_hidden_arguments_describe_the_launch(hip, module):
    out = np.zeros((5, 2), np.uint32)
    pointer = upload(hip, out)
    good(launch(hip, function(hip, module, "geometry"), (5,), (128,), (pointer, ctypes.c_int(5))))
    assert download(hip, pointer, out).tolist() == [[5, 128]] * 5


def test_dynamic_lds(hip, module):
    x = np.arange(128, dtype=np.uint32)
    pointer = upload(hip, x)
    kernel = function(hip, module, "reverse")
    good(launch(hip, kernel, (2,), (64,), (pointer,), lds=256))
    assert np.array_equal(download(hip, pointer, x), x.reshape(2, 64)[:, ::-1].reshape(-1))
    assert failed(launch(hip, kernel, (2,), (64,), (pointer,), lds=161 * 1024)) == "hipErrorLaunchOutOfResources"
    good(launch(hip, kernel, (2,), (64,), (pointer,), lds=128))  # half of what it uses
    assert failed(hip.hipDeviceSynchronize()) == "hipErrorIllegalAddress"


def test_module_variables_live_as_long_as_the_module(hip, module):
    address, size = good(hip.hipModuleGetGlobal(module, b"bias"))
    assert size == 8
    x = np.zeros(64, np.int32)
    pointer = upload(hip, x)
    kernel = function(hip, module, "add_bias")
    good(launch(hip, kernel, (1,), (64,), (pointer, ctypes.c_int(0))))
    assert set(download(hip, pointer, x)) == {5}
    bias = np.zeros(2, np.int32)
    good(hip.hipMemcpy(bias, address, 8, kind(hip, TO_HOST)))
    assert bias.tolist() == [5, -6]
    good(hip.hipMemcpy(address, np.array([100, 1], np.int32), 8, kind(hip, TO_DEVICE)))
    good(launch(hip, kernel, (1,), (64,), (pointer, ctypes.c_int(0))))
    assert set(download(hip, pointer, x)) == {105}
    assert failed(hip.hipModuleGetGlobal(module, b"no_such_variable")) == "hipErrorNotFound"


def test_two_modules_of_the_same_image_are_separate(hip, module, image):
    other = good(hip.hipModuleLoadData(image))
    pointer = upload(hip, np.zeros(64, np.int32))
    good(launch(hip, function(hip, module, "add_bias"), (1,), (64,), (pointer, ctypes.c_int(0))))
    bias = np.zeros(2, np.int32)
    good(hip.hipMemcpy(bias, good(hip.hipModuleGetGlobal(other, b"bias"))[0], 8, kind(hip, TO_HOST)))
    assert bias.tolist() == [5, -7]
    good(hip.hipModuleUnload(other))
    assert failed(hip.hipModuleUnload(other)) == "hipErrorInvalidHandle"


def test_module_from_a_file(hip, tmp_path, image):
    path = tmp_path / "k.hsaco"
    path.write_bytes(image)
    module = good(hip.hipModuleLoad(str(path).encode()))
    assert int(function(hip, module, "vector_add"))
    good(hip.hipModuleUnload(module))
    assert failed(hip.hipModuleLoad(b"/nonexistent")) == "hipErrorFileNotFound"


def test_bad_images_and_names(hip, runtime, module):
    assert failed(hip.hipModuleLoadData(b"not a code object" + bytes(200))) == "hipErrorInvalidImage"
    other = _compile.assemble(_compile.hip(SOURCE, "gfx942"), "gfx942").read_bytes()
    assert failed(hip.hipModuleLoadData(other)) == "hipErrorNoBinaryForGpu"
    assert "gfx942 on a simulated gfx950" in runtime.last_report()
    assert failed(hip.hipModuleGetFunction(module, b"vector_subtract")) == "hipErrorNotFound"
    assert "vector_subtract" in runtime.last_report()


def test_bad_launches(hip, runtime, module):
    kernel = function(hip, module, "reverse")
    pointer = upload(hip, np.zeros(64, np.uint32))
    assert failed(launch(hip, kernel, (1,), (65,), (pointer,))) == "hipErrorInvalidConfiguration"
    assert "65 threads" in runtime.last_report()
    assert failed(launch(hip, kernel, (0,), (64,), (pointer,))) == "hipErrorInvalidConfiguration"
    assert failed(launch(hip, kernel, (1,), (64,), ())) == "hipErrorInvalidValue"
    assert "takes 8 bytes of arguments; 0 were passed" in runtime.last_report()


def test_fault_is_reported_at_the_next_synchronisation(hip, runtime, module, capfd):
    pointer = upload(hip, np.zeros(64, np.float32))
    good(launch(hip, function(hip, module, "store_at"), (1,), (64,), (pointer, ctypes.c_long(64))))
    assert failed(hip.hipDeviceSynchronize()) == "hipErrorIllegalAddress"
    report = runtime.last_report()
    assert "bounds" in report
    assert "global_store_dword" in report
    assert f"hipMalloc {int(pointer):#x}" in report
    assert "global_store_dword" in capfd.readouterr().err
    assert hip.hipGetLastError()[0].name == "hipErrorIllegalAddress"
    assert hip.hipGetLastError()[0].name == "hipSuccess"
    good(hip.hipDeviceSynchronize())


def test_uninitialised_memory_is_followed_through_copies(hip, runtime, module):
    """What hipMalloc gives is undefined until it is written, and a copy of it is no better."""
    size = 256
    source, middle, target = (good(hip.hipMalloc(size)) for _ in range(3))
    kernel = function(hip, module, "copy_words")
    good(hip.hipMemcpy(middle, source, size, kind(hip, DEVICE_TO_DEVICE)))
    good(launch(hip, kernel, (1,), (64,), (target, middle)))
    assert failed(hip.hipDeviceSynchronize()) == "hipErrorLaunchFailure"
    assert "uninit" in runtime.last_report()
    good(hip.hipMemset(source, 0, size))
    good(hip.hipMemcpy(middle, source, size, kind(hip, DEVICE_TO_DEVICE)))
    good(launch(hip, kernel, (1,), (64,), (target, middle)))
    good(hip.hipDeviceSynchronize())


def test_pinned_and_managed_memory_is_shared(hip, module):
    for allocate, free in ((hip.hipHostMalloc, hip.hipHostFree), (hip.hipMallocManaged, hip.hipFree)):
        pointer = good(allocate(400, 0) if allocate is hip.hipHostMalloc else allocate(400, 1))
        view = np.ctypeslib.as_array((ctypes.c_float * 100).from_address(int(pointer)))
        view[:] = np.arange(100)
        arguments = (pointer, ctypes.c_ubyte(2), ctypes.c_double(1.0), ctypes.c_int(100))
        good(launch(hip, function(hip, module, "affine"), (2,), (64,), arguments))
        good(hip.hipDeviceSynchronize())
        assert np.array_equal(view, np.arange(100) * 2 + 1)
        good(free(pointer))


def test_registered_host_memory(hip, module):
    x = np.arange(100, dtype=np.float32)
    good(hip.hipHostRegister(x, x.nbytes, 0))
    pointer = good(hip.hipHostGetDevicePointer(x, 0))
    arguments = (pointer, ctypes.c_ubyte(2), ctypes.c_double(0.0), ctypes.c_int(100))
    good(launch(hip, function(hip, module, "affine"), (2,), (64,), arguments))
    good(hip.hipDeviceSynchronize())
    assert np.array_equal(x, np.arange(100) * 2)
    assert failed(hip.hipHostRegister(x, x.nbytes, 0)) == "hipErrorHostMemoryAlreadyRegistered"
    good(hip.hipHostUnregister(x))
    assert failed(hip.hipHostUnregister(x)) == "hipErrorHostMemoryNotRegistered"


def test_a_stream_keeps_its_order(hip, module):
    """affine twice does not commute with itself, so any reordering shows."""
    stream = good(hip.hipStreamCreate())
    x = np.ones(64, np.float32)
    pointer = upload(hip, x)
    kernel = function(hip, module, "affine")
    for factor, shift in ((2, 1.0), (3, -4.0), (5, 2.0)):
        arguments = (pointer, ctypes.c_ubyte(factor), ctypes.c_double(shift), ctypes.c_int(64))
        good(launch(hip, kernel, (1,), (64,), arguments, stream=stream))
    out = np.empty_like(x)
    good(hip.hipMemcpyAsync(out, pointer, out.nbytes, kind(hip, TO_HOST), stream))
    good(hip.hipStreamSynchronize(stream))
    assert set(out) == {((1 * 2 + 1) * 3 - 4) * 5 + 2}
    assert hip.hipStreamQuery(stream)[0].name == "hipSuccess"
    good(hip.hipStreamDestroy(stream))
    assert failed(hip.hipStreamSynchronize(stream)) == "hipErrorInvalidHandle"


class Gate:
    """A host function that holds a stream until it is opened."""

    def __init__(self, runtime, stream) -> None:
        self.event = threading.Event()
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self.event.wait(20))
        library = runtime.library
        assert library.hipLaunchHostFunc(ctypes.c_void_p(int(stream)), self.callback, None) == 0

    def open(self) -> None:
        self.event.set()


def test_launches_do_not_wait_and_events_order_streams(hip, runtime, module):
    first, second = (good(hip.hipStreamCreateWithFlags(1)) for _ in range(2))
    done = good(hip.hipEventCreate())
    x = upload(hip, np.ones(64, np.float32))
    kernel = function(hip, module, "affine")
    gate = Gate(runtime, first)
    good(launch(hip, kernel, (1,), (64,), (x, ctypes.c_ubyte(2), ctypes.c_double(1), ctypes.c_int(64)), stream=first))
    good(hip.hipEventRecord(done, first))
    good(hip.hipStreamWaitEvent(second, done, 0))
    good(launch(hip, kernel, (1,), (64,), (x, ctypes.c_ubyte(10), ctypes.c_double(0), ctypes.c_int(64)), stream=second))
    for query in (hip.hipStreamQuery(first), hip.hipStreamQuery(second), hip.hipEventQuery(done)):
        assert failed(query) == "hipErrorNotReady"
    gate.open()
    good(hip.hipStreamSynchronize(second))
    assert hip.hipEventQuery(done)[0].name == "hipSuccess"
    assert set(download(hip, x, np.empty(64, np.float32))) == {30}
    for stream in (first, second):
        good(hip.hipStreamDestroy(stream))
    good(hip.hipEventDestroy(done))


def test_default_stream_waits_for_blocking_streams_only(hip, runtime, module):
    blocking, free = good(hip.hipStreamCreate()), good(hip.hipStreamCreateWithFlags(1))
    order: list[str] = []
    mark = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    gates = {"blocking": Gate(runtime, blocking), "free": Gate(runtime, free)}
    marks = []
    for name, stream in (("blocking", blocking), ("free", free), ("default", None), ("after", blocking)):
        marks.append(mark(lambda _, name=name: order.append(name)))
        handle = ctypes.c_void_p(int(stream)) if stream is not None else None
        assert runtime.library.hipLaunchHostFunc(handle, marks[-1], None) == 0
    gates["blocking"].open()
    good(hip.hipStreamSynchronize(blocking))
    assert order == ["blocking", "default", "after"]
    gates["free"].open()
    good(hip.hipDeviceSynchronize())
    assert order[-1] == "free"
    for stream in (blocking, free):
        good(hip.hipStreamDestroy(stream))


def test_event_times_follow_the_order_of_work(hip, module):
    x = upload(hip, np.ones(64, np.float32))
    events = [good(hip.hipEventCreate()) for _ in range(3)]
    kernel = function(hip, module, "affine")
    for event in events:
        good(launch(hip, kernel, (1,), (64,), (x, ctypes.c_ubyte(2), ctypes.c_double(0), ctypes.c_int(64))))
        good(hip.hipEventRecord(event, None))
    good(hip.hipEventSynchronize(events[-1]))
    for earlier, later in pairwise(events):
        assert 0 < good(hip.hipEventElapsedTime(earlier, later)) < 10_000
    never = good(hip.hipEventCreate())
    assert failed(hip.hipEventElapsedTime(events[0], never)) == "hipErrorInvalidHandle"
    for event in (*events, never):
        good(hip.hipEventDestroy(event))


def test_a_fault_stays_with_its_stream(hip, module):
    guilty, innocent = good(hip.hipStreamCreate()), good(hip.hipStreamCreate())
    pointer = upload(hip, np.zeros(64, np.float32))
    good(launch(hip, function(hip, module, "store_at"), (1,), (64,), (pointer, ctypes.c_long(-1)), stream=guilty))
    good(hip.hipStreamSynchronize(innocent))
    assert failed(hip.hipStreamSynchronize(guilty)) == "hipErrorIllegalAddress"
    good(hip.hipStreamSynchronize(guilty))
    for stream in (guilty, innocent):
        good(hip.hipStreamDestroy(stream))


def test_function_attributes_and_occupancy(hip, module):
    kernel = function(hip, module, "reverse")
    attribute = hip.hipFunction_attribute
    assert good(hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel)) == 64
    assert good(hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel)) == 0
    assert 0 < good(hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_NUM_REGS, kernel)) <= 16
    occupancy = hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
    assert good(occupancy(kernel, 64, 0)) == 32  # eight wave slots on each of four SIMDs
    assert good(occupancy(kernel, 64, 64 * 1024)) == 2  # of 160 KiB of LDS
    assert good(occupancy(kernel, 128, 0)) == 0
    grid, block = good(hip.hipModuleOccupancyMaxPotentialBlockSize(kernel, 0, 0))
    assert (grid, block) == (32 * 256, 64)


def test_error_texts(hip):
    error = hip.hipError_t.hipErrorIllegalAddress
    assert "illegal memory access" in str(good(hip.hipGetErrorString(error)))
    assert str(good(hip.hipGetErrorName(error))) == "hipErrorIllegalAddress"


def test_many_threads_share_the_device(hip, module):
    kernel = function(hip, module, "affine")
    wrong: list[int] = []

    def work(seed: int) -> None:
        stream = good(hip.hipStreamCreate())
        x = np.random.default_rng(seed).integers(0, 100, 64).astype(np.float32)
        pointer = upload(hip, x)
        for _ in range(5):
            arguments = (pointer, ctypes.c_ubyte(2), ctypes.c_double(seed), ctypes.c_int(64))
            good(launch(hip, kernel, (1,), (64,), arguments, stream=stream))
        good(hip.hipStreamSynchronize(stream))
        if not np.array_equal(download(hip, pointer, x), x * 32 + seed * 31):
            wrong.append(seed)
        good(hip.hipFree(pointer))
        good(hip.hipStreamDestroy(stream))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_after_there_was_no_more(tmp_path, image):
    """Addresses of freed memory are handed out again after a failure, but not to the arguments of a launch as well."""
    (tmp_path / "k.hsaco").write_bytes(image)
    code = f"""
from warpwave.backends.amd import sim
sim.hip_runtime("gfx950")
from hip import hip
print(hip.hipMalloc(1 << 50)[0].name)
for _ in range(3):
    hip.hipFree(hip.hipMalloc(256)[1])
print(hip.hipMalloc(1 << 50)[0].name)
a, b = (hip.hipMalloc(256)[1] for _ in range(2))
for pointer in (a, b):
    hip.hipMemset(pointer, 1, 256)
module = hip.hipModuleLoad({str(tmp_path / "k.hsaco")!r}.encode())[1]
kernel = hip.hipModuleGetFunction(module, b"copy_words")[1]
for _ in range(4):
    hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, None, None, (a, b))
    print(hip.hipDeviceSynchronize()[0].name)
"""
    assert run_python(code).split("\n") == ["hipErrorOutOfMemory"] * 2 + ["hipSuccess"] * 4


def test_used_devices_cannot_be_changed(hip, runtime):
    good(hip.hipFree(good(hip.hipMalloc(4))))
    with pytest.raises(sim.HipRuntimeError, match="in use"):
        sim.hip_runtime("gfx942")
    with pytest.raises(sim.HipRuntimeError, match="gfx942 and gfx950"):
        sim.hip_runtime("gfx90a")


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_several_devices_of_the_other_chip():
    code = """
from warpwave.backends.amd import sim
sim.hip_runtime("gfx942", devices=2)
from hip import hip
import numpy as np
print(hip.hipGetDeviceCount()[1], hip.hipGetDeviceProperties(1)[1].gcnArchName)
pointers = []
for device in range(2):
    hip.hipSetDevice(device)
    pointers.append(hip.hipMalloc(64)[1])
    hip.hipMemset(pointers[-1], device + 1, 64)
print(hip.hipPointerGetAttributes(pointers[0])[1].device, hip.hipPointerGetAttributes(pointers[1])[1].device)
out = np.zeros(64, np.uint8)
hip.hipMemcpy(pointers[0], pointers[1], 32, hip.hipMemcpyKind.hipMemcpyDefault)
hip.hipMemcpy(out, pointers[0], 64, hip.hipMemcpyKind.hipMemcpyDefault)
print(out[0], out[63])
"""
    assert run_python(code).split("\n") == ["2 gfx942:sramecc+:xnack-", "0 1", "2 1"]


def test_checks_can_be_relaxed_by_name(tmp_path, image):
    (tmp_path / "k.hsaco").write_bytes(image)
    code = f"""
import ctypes
from warpwave.backends.amd import sim
runtime = sim.hip_runtime("gfx950", relax=["uninit"])
from hip import hip
a, b = (hip.hipMalloc(256)[1] for _ in range(2))
module = hip.hipModuleLoad({str(tmp_path / "k.hsaco")!r}.encode())[1]
kernel = hip.hipModuleGetFunction(module, b"copy_words")[1]
hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, None, None, (a, b))
print(hip.hipDeviceSynchronize()[0].name)
try:
    sim.hip_runtime("gfx950", relax=["everything"])
except sim.LoadError as error:
    print(str(error).partition(";")[0])
"""
    assert run_python(code).split("\n") == ["hipSuccess", "there is no check 'everything' to relax"]


def test_program_that_knows_nothing_of_the_simulator():
    """ROCM_PATH alone turns a plain hip-python program into a simulated one."""
    from warpwave.backends.amd.sim._hip_runtime import FOLDER

    code = "from hip import hip; print(hip.hipGetDeviceProperties(0)[1].gcnArchName)"
    assert run_python(code, ROCM_PATH=str(FOLDER), WARPWAVE_SIM_TARGET="gfx942") == "gfx942:sramecc+:xnack-"
