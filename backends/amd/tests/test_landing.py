"""Registers of transposing reads between the read and its wait, on small listings and on all ways through them."""

from __future__ import annotations

import pytest

from warpwave.backends.amd.landing import check_landing, registers
from warpwave.tiles.errors import InternalError

READ = "\tds_read_b64_tr_b16 v[4:5], v9 offset:64\n"
WAIT = "\ts_waitcnt vmcnt(3) lgkmcnt(0)\n"
USE = "\tv_add_f32 v0, v1, v5\n"


@pytest.mark.parametrize(
    ("operands", "found"),
    [("v[4:7], v9, s[0:3]", {4, 5, 6, 7, 9}), ("a[0:3], v12, vcc", {12}), ("s3, 0x10", set()), ("v255", {255})],
)
def test_registers_of_operands(operands, found):
    assert registers(operands) == found


@pytest.mark.parametrize(
    "between",
    [
        USE,
        "\tv_mov_b32 v4, 0\n",  # written: the read would land on it later
        "\ts_waitcnt lgkmcnt(1)\n" + USE,
        "\ts_waitcnt vmcnt(0)\n" + USE,
        "\tds_read_b64_tr_b16 v[10:11], v4\n",
        "\ts_cbranch_scc1 .A\n\ts_nop 0\n.A:\n" + USE,
    ],
)
def test_a_use_before_the_wait_is_an_error(between):
    with pytest.raises(InternalError, match="has not filled yet"):
        check_landing("f:\n" + READ + between + WAIT + "\ts_endpgm\n")


def test_a_use_on_one_way_only_is_an_error():
    text = "f:\n\ts_cbranch_scc0 .B\n" + READ + ".B:\n" + USE + WAIT + "\ts_endpgm\n"
    with pytest.raises(InternalError, match="line 5 of the assembly, v_add_f32"):
        check_landing(text)


def test_a_read_at_the_end_of_a_loop_reaches_its_beginning():
    with pytest.raises(InternalError, match="v_add_f32"):
        check_landing("f:\n.L:\n" + USE + WAIT + READ + "\ts_cbranch_scc1 .L\n\ts_endpgm\n")
    check_landing("f:\n.L:\n" + WAIT + USE + READ + "\ts_cbranch_scc1 .L\n\ts_endpgm\n")


@pytest.mark.parametrize("between", ["", "\tv_add_f32 v0, v1, v6\n", READ.replace("4:5", "6:7"), WAIT + USE])
def test_what_does_not_touch_them_may_come_first(between):
    check_landing("f:\n" + READ + between + WAIT + USE + "\ts_endpgm\n")
