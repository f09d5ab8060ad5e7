"""From world points to pixels, and polygons cut off where they pass behind the camera."""

import math

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.camera import CameraModel

# Polygons are cut this far in front of the lens (m).
NEAR_M = 0.3
# Pixel coordinates are handed to OpenCV with this many fractional bits.
SHIFT = 4

Pixels = NDArray[np.int32]


class Projector:
    """A camera at one ego pose. Camera axes: right, down, forward."""

    def __init__(self, camera: CameraModel, ego: tuple[float, float, float]) -> None:
        """Place the camera of the ego at world x, y (m) and yaw (rad)."""
        x, y, yaw = ego
        cos, sin = math.cos(yaw), math.sin(yaw)
        self.camera, self.yaw_rad = camera, yaw
        self.position = np.array(
            [x + cos * camera.x_m - sin * camera.y_m, y + sin * camera.x_m + cos * camera.y_m, camera.z_m]
        )
        pitch = math.radians(camera.pitch_deg)
        forward = np.array([cos * math.cos(pitch), sin * math.cos(pitch), math.sin(pitch)])
        right = np.array([sin, -cos, 0.0])
        # Row vectors in the world times this are row vectors in the camera.
        self.to_axes = np.stack([right, np.cross(forward, right), forward], axis=1)
        self._middle = np.array([camera.width_px, camera.height_px]) / 2.0
        # OpenCV's pixel centres are whole numbers, ours are halves.
        self._scale = camera.focal_px * (1 << SHIFT)
        self._offset = (self._middle - 0.5) * (1 << SHIFT)

    @property
    def horizon_px(self) -> float:
        """Row of the horizon."""
        return self.camera.height_px / 2.0 + self.camera.focal_px * math.tan(math.radians(self.camera.pitch_deg))

    def to_camera(self, points: Floats) -> Floats:
        """(..., 3) world points -> right, down, forward (m)."""
        return np.asarray((points - self.position) @ self.to_axes)

    def ground_to_camera(self, points: Floats) -> Floats:
        """(..., 2) world points on the ground -> (..., 3) right, down, forward (m)."""
        return np.asarray(points @ self.to_axes[:2] - self.position @ self.to_axes)

    def to_pixels(self, seen: Floats) -> Floats:
        """(..., 3) camera points in front of the lens -> (..., 2) u, v (px)."""
        return np.asarray(seen[..., :2] * (self.camera.focal_px / seen[..., 2:]) + self._middle)

    def to_fixed(self, seen: Floats) -> Pixels:
        """(..., 3) camera points in front of the lens -> (..., 2) pixels with SHIFT fractional bits for OpenCV."""
        return np.rint(seen[..., :2] * (self._scale / seen[..., 2:]) + self._offset).astype(np.int32)

    def scale_at(self, depth_m: float) -> float:
        """Pixels per metre at a depth."""
        return self.camera.focal_px / depth_m

    def polygon(self, seen: Floats) -> Pixels | None:
        """(N, 3) camera polygon -> (M, 2) fixed-point pixels, or None when all of it lies behind the lens."""
        if seen[:, 2].min() < NEAR_M:
            seen = clip_near(seen)
        return self.to_fixed(seen) if len(seen) >= 3 else None


def clip_near(seen: Floats) -> Floats:
    """Cut a camera polygon (N, 3) at the near plane (one step of Sutherland, Hodgman 1974)."""
    inside = seen[:, 2] >= NEAR_M
    following = np.append(np.arange(1, len(seen)), 0)
    crossing = np.flatnonzero(inside != inside[following])
    a, b = seen[crossing], seen[following[crossing]]
    corners = a + (b - a) * ((NEAR_M - a[:, 2:]) / (b[:, 2:] - a[:, 2:]))
    # Each new corner comes after the one its edge starts from.
    place = np.concatenate([np.flatnonzero(inside), crossing + 0.5])
    return np.concatenate([seen[inside], corners])[np.argsort(place)]


def fixed_point(pixels: Floats) -> Pixels:
    """(N, 2) pixels -> fixed-point pixels for OpenCV."""
    return np.rint((pixels - 0.5) * (1 << SHIFT)).astype(np.int32)
