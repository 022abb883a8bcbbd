"""All modelled VALU and SALU instructions of a target."""

from __future__ import annotations

from functools import lru_cache

from . import lanes, packed, salu, scaled, valu_compare, valu_convert, valu_float, valu_int
from .machine import Spec


@lru_cache
def table(target: str) -> dict[str, Spec]:
    return (
        valu_int.TABLE
        | valu_float.TABLE
        | valu_compare.TABLE
        | valu_convert.target_table(target)
        | packed.TABLE
        | lanes.TABLE
        | scaled.target_table(target)
        | salu.TABLE
    )
