"""`python -m warpwave.conformance run ...`: the command without an installation, from the source tree alone."""

from __future__ import annotations

import argparse
import sys

from warpwave.conformance.source_tree import provide_entry_points


def main() -> int:
    """Run the command; the exit status is the command's, 2 for errors."""
    provide_entry_points()
    from warpwave.conformance.cli import COMMAND
    from warpwave.tiles.cli.command import ERROR
    from warpwave.tiles.errors import TileError

    parser = argparse.ArgumentParser(prog="python -m warpwave.conformance", description=COMMAND.help)
    COMMAND.add_arguments(parser)
    try:
        return COMMAND.run(parser.parse_args())
    except TileError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return ERROR


if __name__ == "__main__":
    sys.exit(main())
