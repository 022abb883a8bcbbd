"""Tensor maps: what cuTensorMapEncodeTiled is told for tiles in the shared layout of kittens::st.

The rules are the driver's ("Tensor Map Object Management" of the CUDA driver API).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.backends.nvidia.lowered import TensorMap
from warpwave.backends.nvidia.runtime import driver
from warpwave.tiles.dtypes import DType

NBYTES = 128
_NO_STRIDE = 16  # of an axis of one element: any legal value

_DATA_TYPES = {"bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "i32": "INT32", "i64": "INT64"}


@dataclass(frozen=True)
class MapParameters:
    """One tensor map but for its address. `dims` and `box` count elements, `strides` bytes, without the innermost."""

    data_type: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


def map_parameters(spec: TensorMap, dtype: DType, shape: Sequence[int], strides: Sequence[int]) -> MapParameters:
    """The map of a tensor that `masks.fits_maps` accepted; strides count elements."""
    rows, cols = spec.axes
    others = [axis for axis in reversed(range(len(shape))) if axis not in spec.axes]
    axes = (cols, rows, *others)
    return MapParameters(
        _DATA_TYPES.get(dtype.name, "UINT8"),
        tuple(shape[axis] for axis in axes),
        tuple(_stride(shape[axis], strides[axis] * dtype.nbytes) for axis in axes[1:]),
        (spec.swizzle // dtype.nbytes, spec.rows, *(1 for _ in others)),
        spec.swizzle,
    )


def _stride(extent: int, stride: int) -> int:
    return stride if extent > 1 else _NO_STRIDE


def encode(parameters: MapParameters, address: int) -> bytes:
    """The 128 bytes of a CUtensorMap; CudaError, with all parameters, if the driver refuses them."""
    cuda = driver.module()
    arguments = (
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{parameters.data_type}"),
        len(parameters.dims),
        address,
        [cuda.cuuint64_t(n) for n in parameters.dims],
        [cuda.cuuint64_t(n) for n in parameters.strides],
        [cuda.cuuint32_t(n) for n in parameters.box],
        [cuda.cuuint32_t(1)] * len(parameters.dims),
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{parameters.swizzle}B"),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    try:
        encoded = driver.call("cuTensorMapEncodeTiled", *arguments)
    except driver.CudaError as error:
        error.message += f": {parameters}, address {address:#x}"
        raise
    return ctypes.string_at(int(encoded.getPtr()), NBYTES)
