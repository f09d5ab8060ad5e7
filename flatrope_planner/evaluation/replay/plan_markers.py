"""A plan of a replay as markers for RViz and Foxglove: where it leads, where the car went, and the words above."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Fields of visualization_msgs/Marker.
LINE_STRIP, TEXT, MODIFY = 4, 9, 0
# Widths of lines, height of letters, and how far above the ego they stand (m).
PLANNED_M, DRIVEN_M, LETTER_M, ABOVE_M = 0.35, 0.9, 0.8, 3.0
PLANNED_RGBA, DRIVEN_RGBA, TEXT_RGBA = (0.94, 0.55, 0.18, 0.9), (0.12, 0.48, 0.88, 0.5), (0.9, 0.9, 0.9, 1.0)

# Makes a message of a type like "std_msgs/Header" from its fields.
Make = Callable[..., Any]


class PlanMarkers:
    """Makes the markers of one plan after the other; each replaces the one before."""

    def __init__(self, make: Make) -> None:
        """`make` knows the types."""
        self._make = make

    def array(self, header: Any, ego: Any, paths: tuple[Sequence[Any], Sequence[Any]], text: str) -> Any:
        """A visualization_msgs/MarkerArray.

        Args:
            header: the plan's.
            ego: geometry_msgs/Pose at t0.
            paths: geometry_msgs/Pose planned and driven.
            text: the rationale.
        """
        planned, driven = paths
        markers = [
            self._line(header, "driven", (ego, *driven), (DRIVEN_M, DRIVEN_RGBA)),
            self._line(header, "planned", (ego, *planned), (PLANNED_M, PLANNED_RGBA)),
            self._words(header, ego, text),
        ]
        return self._make("visualization_msgs/MarkerArray", markers=markers)

    def _line(self, header: Any, name: str, poses: Sequence[Any], style: tuple[float, tuple[float, ...]]) -> Any:
        width_m, rgba = style
        points = [pose.position for pose in poses]
        return self._marker(
            header, ns=name, type=LINE_STRIP, points=points, scale=self._vector(width_m, 0.0), color=self._color(rgba)
        )

    def _words(self, header: Any, ego: Any, text: str) -> Any:
        place = self._make("geometry_msgs/Point", x=ego.position.x, y=ego.position.y, z=ego.position.z + ABOVE_M)
        pose = self._make("geometry_msgs/Pose", position=place, orientation=self._upright())
        color = self._color(TEXT_RGBA)
        return self._marker(
            header, ns="rationale", type=TEXT, text=text, pose=pose, scale=self._vector(0.0, LETTER_M), color=color
        )

    def _marker(self, header: Any, **fields: Any) -> Any:
        origin = self._make("geometry_msgs/Point", x=0.0, y=0.0, z=0.0)
        nothing = {
            "id": 0,
            "action": MODIFY,
            "pose": self._make("geometry_msgs/Pose", position=origin, orientation=self._upright()),
            # For ever: until the next plan.
            "lifetime": self._make("builtin_interfaces/Duration", sec=0, nanosec=0),
            "frame_locked": False,
            "points": [],
            "colors": [],
            "texture_resource": "",
            "texture": self._make("sensor_msgs/CompressedImage", header=header, format="", data=np.zeros(0, np.uint8)),
            "uv_coordinates": [],
            "text": "",
            "mesh_resource": "",
            "mesh_file": self._make("visualization_msgs/MeshFile", filename="", data=np.zeros(0, np.uint8)),
            "mesh_use_embedded_materials": False,
        }
        return self._make("visualization_msgs/Marker", header=header, **{**nothing, **fields})

    def _upright(self) -> Any:
        return self._make("geometry_msgs/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)

    def _vector(self, x: float, z: float) -> Any:
        return self._make("geometry_msgs/Vector3", x=x, y=0.0, z=z)

    def _color(self, rgba: tuple[float, ...]) -> Any:
        return self._make("std_msgs/ColorRGBA", **dict(zip("rgba", rgba, strict=True)))
