"""What a measurement depends on besides the code: GPU, driver, versions, clocks, date, commit."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "triton", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cudnn-cu13", "numpy")
SCHEMA = 1


def environment(torch: Any) -> dict[str, Any]:
    """As JSON."""
    from warpwave.backends.nvidia.build import find_compiler

    compiler = find_compiler()
    properties = torch.cuda.get_device_properties(0)
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(0),
        "multiprocessors": properties.multi_processor_count,
        "driver": query("driver_version"),
        "clocks_after": clocks(),
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "compiler": compiler.version if compiler else "none",
        "commit": _commit(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def clocks() -> str:
    """SM and memory clock, power and temperature, as nvidia-smi tells them."""
    return query("clocks.sm,clocks.mem,power.draw,temperature.gpu")


def query(fields: str) -> str:
    """nvidia-smi's answer for the first GPU, empty if there is none."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    try:
        result = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=Path(__file__).parent
        )
    except OSError:
        return ""
    return result.stdout.strip()
