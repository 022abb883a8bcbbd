"""The layouts of the headers, computed by the headers, against the published formulas.

Register fragments: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "... m16n8k32". Shared tiles: the swizzle modes of
the CUDA driver API's tensor maps. Descriptors: PTX ISA, "Matrix-descriptor" of wgmma.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

from warpwave.backends.nvidia import nvrtc
from warpwave.backends.nvidia.tests.device_kernels import DEVICE, FLAGS

pytestmark = pytest.mark.skipif(not nvrtc.version(), reason="NVRTC is not installed")
Table = npt.NDArray[np.int32]


@lru_cache(maxsize=1)
def tables() -> dict[str, Table]:
    """Initial values of the module's variables, as the compiler wrote them."""
    source = (DEVICE / "tables.cu").read_text()
    ptx = nvrtc.compile_source(source, "tables.cu", (*FLAGS, "--gpu-architecture=sm_90a", "-default-device"))[1]
    found = re.findall(r"\.global \.align 4 \.b8 (\w+)\[(\d+)\] = \{([^}]*)\}", ptx)
    result = {}
    for name, size, numbers in found:
        data = np.zeros(int(size), np.uint8)
        values = [int(n) for n in numbers.split(",")]
        data[: len(values)] = values
        result[name] = data.view(np.int32)
    return result


def fragment(lane: int, item: int, size: int) -> tuple[int, int]:
    """Row and column that register `item` of A holds in a 16 x (32 bytes) fragment, for elements of 2 bytes or 1."""
    per = 4 // size
    register, element = divmod(item, per)
    group, thread = lane // 4, lane % 4
    return group + 8 * (register in (1, 3)), per * thread + element + (16 // size) * (register in (2, 3))


@pytest.mark.parametrize("name", ["f32_row", "bf16_row", "fp8_row", "f32_col", "bf16_col"])
def test_register_tiles_are_fragments(name: str) -> None:
    size = 1 if "fp8" in name else 2  # f32 tiles hold pairs at the places of a pair of 16-bit elements
    per_tile, width = (16, 32) if size == 1 else (8, 16)
    rows, cols = tables()[f"rows_{name}"].reshape(32, -1), tables()[f"cols_{name}"].reshape(32, -1)
    for lane in range(32):
        for item in range(rows.shape[1]):
            base = item // per_tile
            if name.endswith("row"):
                row, col = fragment(lane, item % per_tile, size)
            else:
                # The transposed tile's fragment, with the same number for the register 8 rows down as for 8 columns.
                col, row = fragment(lane, item % per_tile, size)
            want = (row + 16 * (base // 2), col + width * (base % 2))
            assert (rows[lane, item], cols[lane, item]) == want, (lane, item)


def test_each_element_of_a_tile_has_one_place() -> None:
    for name in ("f32_row", "f32_col", "bf16_row", "bf16_col", "fp8_row"):
        rows, cols = tables()[f"rows_{name}"], tables()[f"cols_{name}"]
        assert len(set(zip(rows.tolist(), cols.tolist(), strict=True))) == len(rows)


@pytest.mark.parametrize("name", ["bf16_row", "bf16_col"])
def test_vectors_lie_with_their_tile(name: str) -> None:
    """The item of a vector that goes with an item of a tile holds that item's row or column."""
    rows, cols = tables()[f"rows_{name}"].reshape(32, -1), tables()[f"cols_{name}"].reshape(32, -1)
    across, along = ("col", "row") if name.endswith("row") else ("row", "col")
    elements = {
        across: tables()["elements_ortho"].reshape(32, -1),
        along: tables()["elements_align"].reshape(32, -1),
    }
    for vector, places in (("col", rows), ("row", cols)):
        items = tables()[f"{vector}_vec_{name}"]
        for item, at in enumerate(items):
            np.testing.assert_array_equal(elements[vector][:, at], places[:, item])


def test_vector_layouts() -> None:
    lane, item = np.indices((32, 8))
    want = {
        "align": 16 * (item // 4) + 8 * (item // 2 % 2) + 2 * (lane % 4) + item % 2,
        "ortho": 16 * (item // 2) + 8 * (item % 2) + lane // 4,
        "naive": 32 * item + lane,
    }
    for name, elements in want.items():
        np.testing.assert_array_equal(tables()[f"elements_{name}"].reshape(32, 8), elements)


# Panel widths in bytes by element and columns.
WIDTHS = {
    "bf16_16": 32, "bf16_32": 64, "bf16_48": 32, "bf16_64": 128, "bf16_96": 64, "bf16_192": 128, "f32_16": 64,
    "f32_64": 128, "fp8_32": 32, "fp8_64": 64, "fp8_96": 32, "fp8_128": 128, "bf16_64_narrow": 32,
}  # fmt: skip


@pytest.mark.parametrize("name", WIDTHS)
def test_shared_tiles_are_panels_with_the_hardware_swizzle(name: str) -> None:
    width, size = WIDTHS[name], {"bf16": 2, "f32": 4, "fp8": 1}[name.split("_")[0]]
    cols = int(name.split("_")[1])
    panel, *addresses = tables()[f"shared_{name}_addresses"]
    assert panel == width
    grid = np.array(addresses).reshape(-1, cols)
    r, c = np.indices(grid.shape)
    chunk = c * size % width // 16
    flipped = chunk ^ (r // (128 // width) % (width // 16))
    want = c * size // width * (grid.shape[0] * width) + r * width + flipped * 16 + c * size % 16
    np.testing.assert_array_equal(grid, want)


@pytest.mark.parametrize(
    ("name", "rows", "width", "leading", "advances"),
    [
        ("k_128", 64, 128, 16, [0, 32, 64, 96]),
        ("k_64", 64, 64, 16, [0, 32, 64 * 64, 64 * 64 + 32]),
        ("k_32", 128, 32, 16, [0, 4096, 8192, 12288]),
        ("k_fp8", 128, 128, 16, [0, 32, 64, 96]),
        ("mn_128", 64, 128, 8192, [0, 2048, 4096, 6144]),
        ("mn_64", 64, 64, 4096, [0, 1024, 2048, 3072]),
        ("mn_32", 64, 32, 2048, [0, 512, 1024, 1536]),
    ],
)
def test_descriptors(name: str, rows: int, width: int, leading: int, advances: list[int]) -> None:
    low, high, *steps = (int(v) & 0xFFFFFFFF for v in tables()[f"operand_{name}_descriptor"])
    assert low & 0x3FFF == 0x4000 >> 4
    assert low >> 16 & 0x3FFF == leading >> 4
    assert high & 0x3FFF == 8 * width >> 4
    assert high >> 30 == {128: 1, 64: 2, 32: 3}[width]
    assert steps == advances
