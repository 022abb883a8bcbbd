"""The replay of recorded steps (timing/bind_timing.cpp); backends/amd/model/timing.py is its typed interface."""

from typing import Any

def __getattr__(name: str) -> Any: ...
