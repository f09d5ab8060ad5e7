"""Pinhole cameras mounted on the ego."""

import math
from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import SIMULATED_CAMERAS
from flatrope_planner.domain import Floats


@dataclass(frozen=True)
class CameraModel:
    """A camera in the ego frame: x forward, y left, z up of its centre (m), looking forward, `pitch_deg` upward."""

    name: str
    width_px: int
    height_px: int
    # Horizontal field of view.
    fov_deg: float
    x_m: float
    y_m: float
    z_m: float
    pitch_deg: float = 0.0

    @property
    def focal_px(self) -> float:
        """Focal length, equal in x and y."""
        return self.width_px / (2.0 * math.tan(math.radians(self.fov_deg) / 2.0))

    def intrinsics(self) -> Floats:
        """float64 (3, 3), the K of sensor_msgs/CameraInfo as CARLA's bridge fills it."""
        f = self.focal_px
        return np.array([[f, 0.0, self.width_px / 2.0], [0.0, f, self.height_px / 2.0], [0.0, 0.0, 1.0]])


_WIDE, _TELE = SIMULATED_CAMERAS
FRONT_WIDE = CameraModel(_WIDE, 896, 320, 90.0, 1.6, 0.0, 1.5)
FRONT_TELE = CameraModel(_TELE, 896, 320, 30.0, 1.6, 0.0, 1.5)
CAMERAS = (FRONT_WIDE, FRONT_TELE)
