"""`python -m warpwave.tiles.cli` is the command `warpwave`."""

from __future__ import annotations

import sys

from warpwave.tiles.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
