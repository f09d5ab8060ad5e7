"""sensor_msgs/PointCloud2 to points: any order and type of fields, endianness, padding, organised or not.

sensor_msgs_py reads where it is installed and right, which it is for clouds of this machine's byte order without
padding (it takes points and rows for as long as their fields); the reader here reads all.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2, PointField

from flatrope_planner.conversion.limits import shortened
from flatrope_planner.domain import Floats
from flatrope_planner.errors import InputError

AXES = ("x", "y", "z")
# More than any lidar measures in a turn; a cloud is refused beyond, read from the header before anything is allocated.
MAX_POINTS = 4_000_000
MAX_BYTES = 512 * 1024 * 1024
_TYPES = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}


def points_xyz(cloud: PointCloud2) -> Floats:
    """The finite points (N, 3), m, in the cloud's own frame.

    Raises:
        InputError: if the cloud is too large, lacks an axis, or its sizes do not fit together.
    """
    dtype = _checked(cloud)
    read = _reader() if _is_plain(cloud, dtype) else None
    rows = _read(cloud, dtype) if read is None else read(cloud, field_names=list(AXES), skip_nans=False)
    points = np.stack([np.asarray(rows[axis], dtype=np.float64).reshape(-1) for axis in AXES], axis=1)
    return np.asarray(points[np.all(np.isfinite(points), axis=1)])


def _reader() -> Callable[..., Any] | None:
    try:
        return getattr(import_module("sensor_msgs_py.point_cloud2"), "read_points", None)
    except ImportError:
        return None


def _checked(cloud: PointCloud2) -> np.dtype[np.void]:
    """The layout of x, y, z within a point."""
    count = int(cloud.width) * int(cloud.height)
    data = len(cloud.data)
    if count > MAX_POINTS or data > MAX_BYTES:
        msg = f"point cloud of {count} points, {data} bytes, expected at most {MAX_POINTS} points, {MAX_BYTES} bytes"
        raise InputError(msg)
    fields = {str(field.name): field for field in cloud.fields}
    missing = [axis for axis in AXES if axis not in fields]
    if missing:
        msg = f"point cloud with fields {shortened(', '.join(fields) or 'none')}, expected x, y, z"
        raise InputError(msg)
    formats = [_format(fields[axis], big=bool(cloud.is_bigendian)) for axis in AXES]
    offsets = [int(fields[axis].offset) for axis in AXES]
    step, row = int(cloud.point_step), int(cloud.row_step)
    if not count:
        return np.dtype([(axis, name) for axis, name in zip(AXES, formats, strict=True)])
    ends = [offset + np.dtype(name).itemsize for offset, name in zip(offsets, formats, strict=True)]
    needed = (int(cloud.height) - 1) * row + int(cloud.width) * step
    if max(ends) > step or row < int(cloud.width) * step or data < needed:
        msg = f"point cloud of {cloud.width} x {cloud.height} points of {step} bytes, rows of {row} bytes: {data} bytes"
        msg = f"{msg} came, expected fields within a point, points within a row, and {needed} bytes"
        raise InputError(msg)
    return np.dtype({"names": list(AXES), "formats": formats, "offsets": offsets, "itemsize": step})


def _format(field: PointField, *, big: bool) -> str:
    if int(field.datatype) not in _TYPES:
        msg = f"point cloud field {field.name} of type {field.datatype}, expected one that PointField names"
        raise InputError(msg)
    return (">" if big else "<") + _TYPES[int(field.datatype)]


def _is_plain(cloud: PointCloud2, dtype: np.dtype[np.void]) -> bool:
    fields = [(int(field.offset), int(field.datatype)) for field in cloud.fields]
    known = all(datatype in _TYPES for _, datatype in fields)
    end = max(offset + np.dtype(_TYPES[datatype]).itemsize for offset, datatype in fields) if known else 0
    names = [str(field.name) for field in cloud.fields]
    unpadded = int(cloud.row_step) == int(cloud.width) * dtype.itemsize and end == dtype.itemsize
    ours = bool(cloud.is_bigendian) == (sys.byteorder == "big")
    exact = len(cloud.data) == int(cloud.height) * int(cloud.row_step)
    return unpadded and ours and exact and len(set(names)) == len(names) and len(cloud.data) > 0


def _read(cloud: PointCloud2, dtype: np.dtype[np.void]) -> Any:
    width, height = int(cloud.width), int(cloud.height)
    if not width or not height:
        return np.zeros(0, dtype)
    strides = (int(cloud.row_step), int(cloud.point_step))
    return np.ndarray((height, width), dtype, buffer=memoryview(cloud.data).cast("B"), strides=strides)
