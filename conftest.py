"""Tests run on the simulators unless they ask for a GPU (`-m gpu`): AMD GPUs of this machine are hidden from them."""

from __future__ import annotations

import os

if os.environ.get("WARPWAVE_HW") != "1":
    os.environ["HIP_VISIBLE_DEVICES"] = "-1"
