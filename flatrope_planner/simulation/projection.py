"""From world points to pixels, and polygons cut off where they pass behind the camera."""

import math

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.camera import CameraModel

# Polygons are cut here (m in front of the lens), and at these multiples of the image's half width and height.
NEAR_M = 0.4
SIDE_MARGIN = 3.0
# Pixel coordinates are handed to OpenCV with this many fractional bits.
SHIFT = 4


class Projector:
    """A camera at one ego pose."""

    def __init__(self, camera: CameraModel, ego: tuple[float, float, float]) -> None:
        """Place the camera of the ego at world x, y (m) and yaw (rad)."""
        x, y, yaw = ego
        cos, sin = math.cos(yaw), math.sin(yaw)
        self.camera = camera
        self.position = np.array(
            [x + cos * camera.x_m - sin * camera.y_m, y + sin * camera.x_m + cos * camera.y_m, camera.z_m]
        )
        pitch = math.radians(camera.pitch_deg)
        forward = np.array([cos * math.cos(pitch), sin * math.cos(pitch), math.sin(pitch)])
        right = np.array([sin, -cos, 0.0])
        # Rows: right, down, forward of the camera in world axes.
        self._axes = np.stack([right, np.cross(forward, right), forward])
        half_w, half_h = camera.width_px / 2.0, camera.height_px / 2.0
        kx, ky = SIDE_MARGIN * half_w / camera.focal_px, SIDE_MARGIN * half_h / camera.focal_px
        # Clipping planes n . p + d >= 0 in camera axes.
        self._planes = (
            (np.array([0.0, 0.0, 1.0]), -NEAR_M),
            (np.array([1.0, 0.0, kx]), 0.0),
            (np.array([-1.0, 0.0, kx]), 0.0),
            (np.array([0.0, 1.0, ky]), 0.0),
            (np.array([0.0, -1.0, ky]), 0.0),
        )

    def to_camera(self, points: Floats) -> Floats:
        """(N, 3) world points -> right, down, forward (m)."""
        return np.asarray((points - self.position) @ self._axes.T)

    def to_pixels(self, seen: Floats) -> Floats:
        """(N, 3) camera points in front of the lens -> (N, 2) u, v (px)."""
        f = self.camera.focal_px
        uv = seen[:, :2] * (f / seen[:, 2:])
        return np.asarray(uv + np.array([self.camera.width_px, self.camera.height_px]) / 2.0)

    def scale_at(self, depth_m: float) -> float:
        """Pixels per metre at a depth."""
        return self.camera.focal_px / depth_m

    def clip(self, seen: Floats) -> Floats:
        """Cut a polygon of camera points to what lies in front, near the picture (Sutherland, Hodgman 1974)."""
        for normal, offset in self._planes:
            if len(seen) == 0:
                break
            distance = seen @ normal + offset
            inside = distance >= 0.0
            if not inside.all():
                seen = _cut(seen, distance, inside)
        return seen

    def polygon(self, points: Floats) -> NDArray[np.int32] | None:
        """(N, 3) world polygon -> (M, 2) fixed-point pixels, or None when nothing of it can be seen."""
        seen = self.clip(self.to_camera(points))
        if len(seen) < 3:
            return None
        return fixed_point(self.to_pixels(seen))


def _cut(points: Floats, distance: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Keep the inside of one plane, with new corners where edges cross it."""
    following, next_distance = np.roll(points, -1, axis=0), np.roll(distance, -1)
    crossing = inside != np.roll(inside, -1)
    share = np.divide(distance, distance - next_distance, out=np.zeros_like(distance), where=crossing)
    corners = points + share[:, None] * (following - points)
    both = np.stack([points, corners], axis=1).reshape(-1, points.shape[1])
    keep = np.stack([inside, crossing], axis=1).reshape(-1)
    return np.asarray(both[keep])


def fixed_point(pixels: Floats) -> NDArray[np.int32]:
    """Pixels as OpenCV wants them with SHIFT; OpenCV's pixel centres are whole numbers, ours are halves."""
    return np.round((pixels - 0.5) * (1 << SHIFT)).astype(np.int32)
