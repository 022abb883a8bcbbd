"""`python -m warpwave.conformance run ...`: the command without an installation, from the source tree alone."""

from __future__ import annotations

import sys

from warpwave.conformance.source_tree import provide_entry_points

if __name__ == "__main__":
    provide_entry_points()
    from warpwave.tiles.cli import main

    sys.exit(main(["conformance", *sys.argv[1:]]))
