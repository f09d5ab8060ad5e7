"""The picture being painted: colours under the scene's light and haze, polygons, glows."""

import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.projection import SHIFT, Projector, fixed_point
from flatrope_planner.simulation.view import Appearance

Color = tuple[int, int, int]
GLOW_SIZE = 65


class Canvas:
    """A BGR picture seen through one camera."""

    def __init__(self, image: Image, eye: Projector, appearance: Appearance) -> None:
        """Paint on `image` (H, W, 3)."""
        self.image, self.eye, self.appearance = image, eye, appearance

    @property
    def camera_half_width_per_depth(self) -> float:
        """Half the width of what is seen, per metre of depth."""
        return self.eye.camera.width_px / (2.0 * self.eye.camera.focal_px)

    def tint(self, color: Color, depth_m: float, shade: float = 1.0) -> Color:
        """A surface colour in this light at this distance."""
        clear = math.exp(-max(depth_m, 0.0) / self.appearance.haze_m)
        light = self.appearance.brightness * shade
        b, g, r = (
            int(min(255.0, clear * min(255.0, c * light) + (1.0 - clear) * h * self.appearance.brightness))
            for c, h in zip(color, self.appearance.sky_horizon, strict=True)
        )
        return b, g, r

    def fill(self, points: Floats, color: Color) -> None:
        """Paint a world polygon (N, 3)."""
        polygon = self.eye.polygon(points)
        if polygon is not None:
            cv2.fillPoly(self.image, [polygon], color, lineType=cv2.LINE_AA, shift=SHIFT)

    def fill_pixels(self, pixels: Floats, color: Color) -> None:
        """Paint a polygon given in pixels (N, 2)."""
        cv2.fillPoly(self.image, [fixed_point(pixels)], color, lineType=cv2.LINE_AA, shift=SHIFT)

    def disc(self, center: tuple[float, float], radius_px: float, color: Color) -> None:
        """Paint a disc."""
        unit = 1 << SHIFT
        u, v = round((center[0] - 0.5) * unit), round((center[1] - 0.5) * unit)
        cv2.circle(self.image, (u, v), max(1, round(radius_px * unit)), color, -1, cv2.LINE_AA, SHIFT)

    def stroke(self, start: tuple[float, float], end: tuple[float, float], width_px: float, color: Color) -> None:
        """Paint a bar between two pixels."""
        along = np.array(end) - np.array(start)
        length = float(np.hypot(*along)) or 1.0
        across = np.array([-along[1], along[0]]) / length * width_px / 2.0
        a, b = np.array(start), np.array(end)
        self.fill_pixels(np.array([a + across, b + across, b - across, a - across]), color)

    def glow(self, center: tuple[float, float], radius_px: float, color: tuple[float, float, float]) -> None:
        """Add light about a pixel."""
        size = 2 * math.ceil(radius_px) + 1
        left, top = round(center[0]) - size // 2, round(center[1]) - size // 2
        height, width = self.image.shape[:2]
        x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + size, width), min(top + size, height)
        if x0 >= x1 or y0 >= y1 or size > 4 * height:
            return
        shape = cv2.resize(_glow(), (size, size), interpolation=cv2.INTER_AREA)[
            y0 - top : y1 - top, x0 - left : x1 - left
        ]
        light = shape[:, :, None] * np.array(color, dtype=np.float32)
        patch = self.image[y0:y1, x0:x1]
        patch[:] = np.minimum(patch + light, 255.0).astype(np.uint8)


@lru_cache(maxsize=1)
def _glow() -> NDArray[np.float32]:
    """A round spot of light, 1 in the middle, 0 at the rim."""
    axis = np.linspace(-1.0, 1.0, GLOW_SIZE, dtype=np.float32)
    distance = np.hypot(axis[:, None], axis[None, :])
    return np.asarray(np.clip(1.0 - distance, 0.0, 1.0) ** 2, dtype=np.float32)
