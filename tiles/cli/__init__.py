"""The command line `warpwave`: its own subcommands, and those that packages add in group `warpwave.commands`."""

from __future__ import annotations

from warpwave.tiles.cli.main import main

__all__ = ["main"]
