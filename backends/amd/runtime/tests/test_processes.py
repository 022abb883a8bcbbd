"""What needs a process of its own: several devices, another chip, no hip-python, no device."""

from __future__ import annotations

import os
import subprocess
import sys


def run(code: str, **environment: str) -> str:
    without = {n: v for n, v in os.environ.items() if n != "HIP_VISIBLE_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=without | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TWO = """
import numpy as np
from warpwave.backends.amd import sim
sim.hip_runtime({target!r}, devices=2)
from hip import hip
from warpwave.backends.amd.runtime.tests.device_arrays import on_device
from warpwave.backends.amd.runtime.tests.kernels import affine
from warpwave.tiles.errors import LaunchError
"""


def test_the_device_of_the_arrays_is_used_whatever_is_current():
    code = TWO.format(target="gfx942") + (
        """
x = np.ones((40, 40), np.float32)
for device in (1, 0):
    d = on_device(hip, x, device)
    before = hip.hipGetDevice()[1]
    affine(d, d, 2.0)
    after = hip.hipGetDevice()[1]
    hip.hipSetDevice(device)
    hip.hipDeviceSynchronize()
    hip.hipSetDevice(before)
    print(device, before, after, set(d.numpy().reshape(-1).tolist()), hip.hipPointerGetAttributes(d.pointer)[1].device)
hip.hipSetDevice(1)
affine(x, x, 2.0, target="amd:gfx942")
print(set(x.reshape(-1).tolist()), hip.hipGetDevice()[1])
try:
    affine(on_device(hip, x, 0), on_device(hip, x, 1), 1.0)
except LaunchError as error:
    print(error.message)
"""
    )
    assert run(code).splitlines() == [
        "1 0 0 {3.0} 1",
        "0 0 0 {3.0} 0",
        "{3.0} 1",
        "kernel affine: its arrays are on different devices: x on dlpack10:0, y on dlpack10:1",
    ]


def test_hidden_devices_are_not_looked_for():
    code = """
import sys
from warpwave.backends.amd.runtime.devices import devices
print(devices(), "hip" in sys.modules)
"""
    assert run(code, HIP_VISIBLE_DEVICES="-1").split() == ["()", "False"]
    assert run(code, ROCM_PATH="/nonexistent").split()[0] == "()"  # looked for, and no library found


def test_without_hip_python_all_but_devices_works():
    code = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("hip", "rocm"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] in ("hip", "rocm") else found(name, *rest)
import numpy as np
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.runtime.tests.device_arrays import DeviceArray
from warpwave.backends.amd.runtime.tests.kernels import affine
from warpwave.tiles.errors import LaunchError
x = np.ones((4, 4), np.float32)
affine(x, x, 2.0, target="amd:gfx950")
print(set(x.reshape(-1).tolist()), [(d.what, d.ok) for d in BACKEND.diagnose()][1])
try:
    d = DeviceArray(None, 4096, np.float32, (4, 4), (4, 1))
    affine(d, d, 1.0)
except LaunchError as error:
    print(error)
"""
    lines = run(code).splitlines()
    assert lines[:2] == [
        "{3.0} ('hip-python', False)",
        "an array is on AMD device 0, but hip-python is not installed",
    ]
    assert "pip install" in lines[2]


def test_import_does_not_load_hip():
    code = "import sys, warpwave, warpwave.backends.amd.backend; print([n for n in sys.modules if n.split('.')[0] == 'hip'])"
    assert run(code).strip() == "[]"
