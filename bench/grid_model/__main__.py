"""Writes the record of the grid model: data, page and chart.

python -m warpwave.bench.grid_model [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from warpwave.bench.grid_model.chart import draw
from warpwave.bench.grid_model.page import page
from warpwave.bench.grid_model.record import OUT, make_record


def main() -> None:
    """Make and write everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    record = make_record()
    (out / "grid_model.json").write_text(json.dumps(record, indent=1) + "\n")
    (out / "README.md").write_text(page(json.loads(json.dumps(record))))
    draw(record, out / "grid_model.png")


if __name__ == "__main__":
    main()
