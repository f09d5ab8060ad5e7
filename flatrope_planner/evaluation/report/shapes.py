"""Markers (visualization_msgs) as flat shapes seen from above."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.planning.pose import Pose2D

# visualization_msgs/msg/Marker types.
CUBE, SPHERE, CYLINDER = 1, 2, 3
LISTS = {4: "line", 5: "lines", 11: "mesh"}
ADD = 0


@dataclass(frozen=True)
class Shape:
    """Something on the map, in the frame of the odometry."""

    # "area" (one polygon), "mesh" (triangles), "line" (one polyline), "lines" (pairs of ends), "disc" (centre, rim).
    kind: str
    # What it stands for: the marker's namespace.
    name: str
    # float64 (N, 2), m.
    points_m: Floats
    # CSS colour.
    color: str


def shapes_of(marker: Any) -> Iterator[Shape]:
    """The shapes of one marker; of a kind that has no footprint, none."""
    if marker.action != ADD:
        return
    color = css_color(marker.color)
    for kind, points_m in _footprints(marker):
        yield Shape(kind, marker.ns, _placed(marker.pose, points_m), color)


def css_color(color: Any) -> str:
    """A std_msgs/ColorRGBA as CSS."""
    red, green, blue = (round(255 * float(np.clip(c, 0.0, 1.0))) for c in (color.r, color.g, color.b))
    return f"rgba({red},{green},{blue},{float(color.a):.2f})"


def _footprints(marker: Any) -> Iterator[tuple[str, Floats]]:
    half_x, half_y = marker.scale.x / 2.0, marker.scale.y / 2.0
    if marker.type == CUBE:
        yield "area", np.array([[half_x, half_y], [-half_x, half_y], [-half_x, -half_y], [half_x, -half_y]])
    elif marker.type in (SPHERE, CYLINDER):
        yield "disc", np.array([[0.0, 0.0], [half_x, 0.0]])
    elif marker.type in LISTS:
        yield LISTS[marker.type], np.array([[point.x, point.y] for point in marker.points]).reshape(-1, 2)


def _placed(pose: Any, points_m: Floats) -> Floats:
    turn = pose.orientation
    yaw_rad = float(np.arctan2(2.0 * (turn.w * turn.z + turn.x * turn.y), 1.0 - 2.0 * (turn.y**2 + turn.z**2)))
    return Pose2D(pose.position.x, pose.position.y, yaw_rad).to_outer(points_m)
