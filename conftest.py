"""Tests run on the simulators unless they ask for a GPU (`-m gpu`): AMD GPUs of this machine are hidden from them.

A kernel that does not fit is not searched a smaller configuration for, but where a test is about that.
"""

from __future__ import annotations

import os

os.environ["WARPWAVE_FIT_SECONDS"] = "0"
if os.environ.get("WARPWAVE_HW") != "1":
    os.environ["HIP_VISIBLE_DEVICES"] = "-1"
