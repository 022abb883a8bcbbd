"""Entry points for a source tree that is on PYTHONPATH and not installed, as on a machine without a network."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tempfile
from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: warpwave\nVersion: {version}\n"


def provide_entry_points() -> None:
    """Unless warpwave is installed: metadata made from pyproject.toml, for this process and its children."""
    try:
        importlib.metadata.distribution("warpwave")
        return
    except importlib.metadata.PackageNotFoundError:
        pass
    text = _pyproject().read_text()
    folder = tempfile.mkdtemp(prefix="warpwave-metadata-")
    info = Path(folder) / "warpwave.dist-info"
    info.mkdir()
    version = re.search(r'^version = "(.*)"', text, re.MULTILINE)
    info.joinpath("METADATA").write_text(METADATA.format(version=version[1] if version else "0"))
    info.joinpath("entry_points.txt").write_text(entry_points_text(text))
    sys.path.insert(0, folder)
    paths = [folder, os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)


def entry_points_text(pyproject: str) -> str:
    """The sections `project.entry-points` in the form of entry_points.txt; Python 3.10 has no TOML reader."""
    lines: list[str] = []
    inside = False
    for line in pyproject.splitlines():
        header = re.match(r'\[project\.entry-points\.(?:"(.*)"|(\w+))\]', line)
        if line.startswith("["):
            inside = header is not None
        if header:
            lines.append(f"[{header[1] or header[2]}]")
        elif inside and (entry := re.match(r'"?([\w.-]+)"?\s*=\s*"(.*)"', line)):
            lines.append(f"{entry[1]} = {entry[2]}")
    return "\n".join(lines) + "\n"


def _pyproject() -> Path:
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").exists():
            return folder / "pyproject.toml"
    raise FileNotFoundError("warpwave is neither installed nor in its source tree")
