"""The picture being painted: colours under the scene's light and haze, polygons, discs, glows."""

import math
from functools import lru_cache

import cv2
import numpy as np

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.projection import SHIFT, Pixels, Projector, fixed_point
from flatrope_planner.simulation.view import Appearance

# RGB, as everything on the canvas; a view's colours are BGR.
Color = tuple[int, int, int]
Point = tuple[float, float]

# Unit vector to the sun: behind the ego at the start of a road, somewhat left.
SUN = np.array([-0.45, 0.25, 0.857])
AMBIENT, DIFFUSE = 0.62, 0.46
GLOW_PX = 64
GLOW_OPACITY = 0.85


def rgb(bgr: Color) -> Color:
    """A view's colour on the canvas."""
    return bgr[2], bgr[1], bgr[0]


class Canvas:
    """An RGB picture seen through one camera."""

    def __init__(self, image: Image, eye: Projector, appearance: Appearance) -> None:
        """Paint on `image` (H, W, 3)."""
        self.image, self.eye, self.appearance = image, eye, appearance
        self._horizon = [c * appearance.brightness for c in rgb(appearance.sky_horizon)]

    def tint(self, color: Color, depth_m: float, shade: float = 1.0) -> Color:
        """A surface colour in this light at this distance."""
        clear, light = math.exp(-max(depth_m, 0.0) / self.appearance.haze_m), self.appearance.brightness * shade
        faded = [
            min(255, int(clear * min(255.0, c * light) + (1.0 - clear) * h))
            for c, h in zip(color, self._horizon, strict=True)
        ]
        return faded[0], faded[1], faded[2]

    def tints(self, colors: Floats, shades: Floats, depth_m: float) -> Floats:
        """Surface colours (N, 3) with a shade each (N,) in this light at this distance."""
        clear = math.exp(-max(depth_m, 0.0) / self.appearance.haze_m)
        lit = np.minimum(colors * (shades * self.appearance.brightness)[:, None], 255.0)
        return np.asarray(np.minimum(clear * lit + (1.0 - clear) * np.array(self._horizon), 255.0))

    def fill(self, polygon: Pixels, color: Color) -> None:
        """Paint a polygon of fixed-point pixels (N, 2)."""
        cv2.fillPoly(self.image, [polygon], color, lineType=cv2.LINE_AA, shift=SHIFT)

    def fill_pixels(self, pixels: list[Point] | Floats, color: Color) -> None:
        """Paint a polygon given in pixels."""
        self.fill(fixed_point(np.array(pixels)), color)

    def disc(self, center: Point, radius_px: float, color: Color) -> None:
        """Paint a disc."""
        unit = 1 << SHIFT
        u, v = round((center[0] - 0.5) * unit), round((center[1] - 0.5) * unit)
        cv2.circle(self.image, (u, v), max(1, round(radius_px * unit)), color, -1, cv2.LINE_AA, SHIFT)

    def bar(self, start: Point, end: Point, widths_px: tuple[float, float], color: Color) -> None:
        """Paint a bar between two pixels, as wide at each end as given."""
        along_u, along_v = end[0] - start[0], end[1] - start[1]
        length = math.hypot(along_u, along_v) or 1.0
        u, v = -along_v / length / 2.0, along_u / length / 2.0
        a, b = widths_px
        corners = [
            (start[0] + u * a, start[1] + v * a),
            (end[0] + u * b, end[1] + v * b),
            (end[0] - u * b, end[1] - v * b),
            (start[0] - u * a, start[1] - v * a),
        ]
        self.fill_pixels(corners, color)

    def glow(self, center: Point, radius_px: float, color: Color) -> None:
        """Lay a round haze of light about a pixel."""
        size = 2 * math.ceil(radius_px) + 1
        left, top = round(center[0]) - size // 2, round(center[1]) - size // 2
        height, width = self.image.shape[:2]
        x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + size, width), min(top + size, height)
        if x0 >= x1 or y0 >= y1 or size > 4 * height:
            return
        part = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
        veil, light = (cv2.resize(x, (size, size), interpolation=cv2.INTER_LINEAR)[part] for x in _glow(color))
        patch = self.image[y0:y1, x0:x1]
        cv2.multiply(patch, veil, dst=patch, scale=1.0 / 255.0)
        cv2.add(patch, light, dst=patch)


@lru_cache(maxsize=16)
def _glow(color: Color) -> tuple[Image, Image]:
    """What a glow leaves of the picture (of 255) and the light it adds: (N, N, 3) each."""
    axis = (np.arange(GLOW_PX) + 0.5) / (GLOW_PX / 2.0) - 1.0
    distance = np.minimum(np.hypot(axis[:, None], axis[None, :]), 1.0)
    opacity = (GLOW_OPACITY * (1.0 - distance**2) ** 2)[:, :, None]
    veil = np.broadcast_to(255.0 * (1.0 - opacity), (GLOW_PX, GLOW_PX, 3))
    return veil.round().astype(np.uint8), (opacity * np.array(color)).round().astype(np.uint8)
