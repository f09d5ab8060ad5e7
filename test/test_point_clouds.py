"""Point clouds as they come: any layout gives the same points, and none that does not fit together is read."""

import sys
import types
from array import array

import numpy as np
import pytest
from sensor_msgs.msg import PointCloud2, PointField

from flatrope_planner.conversion.point_clouds import MAX_POINTS, points_xyz
from flatrope_planner.errors import InputError

POINTS = np.array([[1.5, -2.0, 0.25], [30.0, 4.0, 1.0], [-7.0, 8.5, 2.0], [0.0, 0.0, -1.0]])
NAMES = {
    "i1": PointField.INT8,
    "i2": PointField.INT16,
    "i4": PointField.INT32,
    "u1": PointField.UINT8,
    "u2": PointField.UINT16,
    "f4": PointField.FLOAT32,
    "f8": PointField.FLOAT64,
}


def cloud(
    layout: list[tuple[str, str, int]], step: int, *, height: int = 1, row_padding: int = 0, big: bool = False
) -> PointCloud2:
    """POINTS in fields (name, type, offset) of points of `step` bytes."""
    order = ">" if big else "<"
    names, formats, offsets = zip(*layout, strict=True)
    dtype = np.dtype(
        {"names": names, "formats": [order + kind for kind in formats], "offsets": offsets, "itemsize": step}
    )
    rows = np.zeros(len(POINTS), dtype)
    for axis, name in enumerate("xyz"):
        rows[name] = POINTS[:, axis]
    width = len(POINTS) // height
    lines = [rows[i * width : (i + 1) * width].tobytes() + b"\xff" * row_padding for i in range(height)]
    fields = [PointField(name=n, datatype=NAMES[kind], offset=offset, count=1) for n, kind, offset in layout]
    return PointCloud2(
        height=height,
        width=width,
        fields=fields,
        is_bigendian=big,
        point_step=step,
        row_step=width * step + row_padding,
        data=array("B", b"".join(lines)),
    )


XYZ = [("x", "f4", 0), ("y", "f4", 4), ("z", "f4", 8)]


@pytest.mark.parametrize(
    "message",
    [
        cloud(XYZ, 12),
        # PCL's padding, and what a lidar adds.
        cloud([*XYZ, ("intensity", "f4", 16)], 32),
        cloud([("intensity", "u1", 0), ("ring", "u2", 1), ("z", "f4", 3), ("x", "f8", 7), ("y", "f4", 15)], 22),
        cloud(XYZ, 12, height=2),
        cloud(XYZ, 12, height=2, row_padding=5),
        cloud(XYZ, 16, height=4, row_padding=16, big=True),
        cloud([("x", "f8", 0), ("y", "f8", 8), ("z", "f8", 16)], 24, big=True),
    ],
)
def test_any_layout_gives_the_points(message: PointCloud2) -> None:
    np.testing.assert_array_equal(points_xyz(message), POINTS)


def test_whole_numbers_are_points_too() -> None:
    message = cloud([("x", "i2", 0), ("y", "i1", 2), ("z", "i4", 4)], 8, big=True)
    np.testing.assert_array_equal(points_xyz(message), np.trunc(POINTS))


def test_points_that_are_none_are_left_out() -> None:
    message = cloud(XYZ, 12)
    values = np.frombuffer(message.data, dtype="<f4").reshape(4, 3).copy()
    values[1, 2], values[3, 0] = np.nan, np.inf
    message.data = array("B", values.tobytes())
    np.testing.assert_array_equal(points_xyz(message), POINTS[[0, 2]])


@pytest.mark.parametrize("size", [(0, 1), (4, 0), (0, 0)])
def test_an_empty_cloud_has_no_points(size: tuple[int, int]) -> None:
    message = cloud(XYZ, 12)
    message.width, message.height = size
    message.data = array("B")
    assert points_xyz(message).shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"fields": []}, "with fields 'none', expected x, y, z"),
        (
            {"fields": [PointField(name="x", datatype=7), PointField(name="y", datatype=7)]},
            "fields 'x, y', expected x, y, z",
        ),
        ({"fields": [PointField(name=n, datatype=99) for n in "xyz"]}, "field x of type 99"),
        ({"data": array("B", bytes(47))}, "47 bytes came, expected fields within a point, points within a row, and 48"),
        ({"point_step": 8}, "expected fields within a point"),
        ({"point_step": 0}, "expected fields within a point"),
        ({"row_step": 47}, "expected fields within a point"),
        ({"width": 4_000_000_000}, f"expected at most {MAX_POINTS} points"),
        ({"width": 4_000_000_000, "height": 4_000_000_000}, f"expected at most {MAX_POINTS} points"),
        ({"fields": [PointField(name=n, datatype=7, offset=4_000_000_000) for n in "xyz"]}, "fields within a point"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, object], complaint: str) -> None:
    message = cloud(XYZ, 12)
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(InputError) as refused:
        points_xyz(message)
    assert complaint in str(refused.value)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[PointCloud2]:
    """sensor_msgs_py as far as it is used here; the clouds it was asked to read."""
    asked: list[PointCloud2] = []

    def read_points(message: PointCloud2, field_names: list[str], skip_nans: bool) -> np.ndarray:
        asked.append(message)
        assert not skip_nans
        return np.zeros(2, dtype=[(name, "f4") for name in field_names])

    package, module = types.ModuleType("sensor_msgs_py"), types.ModuleType("sensor_msgs_py.point_cloud2")
    setattr(module, "read_points", read_points)  # noqa: B010
    monkeypatch.setitem(sys.modules, "sensor_msgs_py", package)
    monkeypatch.setitem(sys.modules, "sensor_msgs_py.point_cloud2", module)
    return asked


def test_sensor_msgs_py_reads_the_plain_clouds_where_it_is_installed(installed: list[PointCloud2]) -> None:
    assert points_xyz(cloud(XYZ, 12)).shape == (2, 3)
    assert len(installed) == 1


@pytest.mark.parametrize("message", [cloud(XYZ, 16), cloud(XYZ, 12, height=2, row_padding=4), cloud(XYZ, 12, big=True)])
def test_what_sensor_msgs_py_reads_wrong_is_not_given_to_it(installed: list[PointCloud2], message: PointCloud2) -> None:
    np.testing.assert_array_equal(points_xyz(message), POINTS)
    assert not installed
