"""Kernel arguments and limits from the metadata that compilers put into assembly and code objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_KEY = re.compile(r"(?P<indent>\s*)(?P<item>- )?\.(?P<key>\w+):\s*(?P<value>.*?)\s*")


@dataclass(frozen=True)
class KernelArgument:
    """One explicit argument: `kind` is "by_value", "global_buffer" and so on."""

    name: str
    kind: str
    offset: int
    size: int

    @property
    def is_pointer(self) -> bool:
        """Whether the kernel gets an address."""
        return self.kind in ("global_buffer", "dynamic_shared_pointer")


@dataclass(frozen=True)
class KernelInfo:
    """What the compiler says of a kernel."""

    name: str
    arguments: tuple[KernelArgument, ...]
    max_workgroup_size: int


def kernels(metadata: str) -> dict[str, KernelInfo]:
    """The kernels described in a metadata text (the YAML between the .amdgpu_metadata directives), by name.

    LLVM writes kernels at indent 2 and arguments at indent 6 (AMDGPUUsage, "Code Object Metadata").
    """
    found = {}
    for keys, arguments in _entries(metadata):
        explicit = tuple(_argument(a) for a in arguments if not a["value_kind"].startswith("hidden_"))
        info = KernelInfo(keys["name"], explicit, int(keys.get("max_flat_workgroup_size", "1024")))
        found[info.name] = info
    return found


def _entries(metadata: str) -> Iterator[tuple[dict[str, str], list[dict[str, str]]]]:
    keys: dict[str, str] = {}
    arguments: list[dict[str, str]] = []
    for line in metadata.splitlines():
        match = _KEY.fullmatch(line)
        if not match:
            continue
        indent = len(match["indent"])
        if indent == 2 and match["item"]:
            if keys:
                yield keys, arguments
            keys, arguments = {}, []
        if indent == 6 and match["item"]:
            arguments.append({})
        into = arguments[-1] if indent >= 6 and arguments else keys
        into[match["key"]] = match["value"].strip("'\"")
    if keys:
        yield keys, arguments


def _argument(keys: dict[str, str]) -> KernelArgument:
    return KernelArgument(keys.get("name", ""), keys["value_kind"], int(keys["offset"]), int(keys["size"]))
