"""What the package registers, and the main job of the README."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from warpwave.tiles.cli import main

ROOT = Path(__file__).parent.parent


def test_every_entry_point_loads():
    ours = [p for group in ("warpwave.backends", "warpwave.commands") for p in entry_points(group=group)]
    loaded = {p.name: p.load() for p in ours if p.dist is not None and p.dist.name == "warpwave"}
    assert {"reference", "demo", "sim"} <= loaded.keys()
    for name in ("demo", "sim"):
        assert loaded[name].help
        assert callable(loaded[name].run)


def test_the_changelog_and_the_package_agree_on_the_version():
    assert version("warpwave") in (ROOT / "pyproject.toml").read_text()


def test_the_ci_script_is_executable_and_parses():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


def test_the_overview_lists_all_commands(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    for command in ("check", "show", "targets", "doctor", "conformance", "demo", "sim"):
        assert f"\n    {command}" in out


def test_the_demo_agrees(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "gemm, one source:" in out
    assert "attention, one source:" in out
    assert "all agree with the oracle" in out
    assert "reference" in out
