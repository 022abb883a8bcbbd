"""`warpwave sim --time`: modelled clocks, reasons of waiting and a trace from the command line."""

from __future__ import annotations

import argparse
import json

from warpwave.backends.amd.sim import cli

from .micro import FRAME

BODY = "	v_mov_b32_e32 v1, 0\n	v_mov_b32_e32 v2, 0\n" + "	v_exp_f32_e32 v1, v2\n" * 20


def command(*words):
    parser = argparse.ArgumentParser()
    cli.COMMAND.add_arguments(parser)
    return cli.COMMAND.run(parser.parse_args([str(w) for w in words]))


def test_prints_clocks_and_writes_a_trace(tmp_path, capsys):
    file, trace = tmp_path / "k.s", tmp_path / "t.json"
    file.write_text(FRAME.format(target="gfx950", body=BODY))
    assert command(file, "--grid", "300", "--time", "MI350X", "--perfetto", trace) == 0
    printed = capsys.readouterr().out
    assert "k on MI350X at 2.2 GHz, 2 waves of 2 workgroups on one compute unit (modelled)" in printed
    assert "clocks waited at v_exp_f32_e32 v1, v2: vector" in printed
    assert len([e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]) == 2 * 23
    assert command(file, "--time") == 0
    assert "MI355X at 2.4 GHz" in capsys.readouterr().out


def test_a_chip_of_another_target_is_wrong_use(tmp_path, capsys):
    file = tmp_path / "k.s"
    file.write_text(FRAME.format(target="gfx950", body=BODY))
    assert command(file, "--time", "MI300X") == 2
    assert "MI300X is no gfx950 chip" in capsys.readouterr().err
