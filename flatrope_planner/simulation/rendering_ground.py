"""Kerbs, asphalt, paint, shadows and haze: everything that lies flat."""

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.canvas import Canvas, Color, rgb
from flatrope_planner.simulation.projection import NEAR_M, SHIFT
from flatrope_planner.simulation.rendering_shadows import shadow_layer
from flatrope_planner.simulation.view import Appearance, Crosswalk, Paint, RoadMarking, RoadSurface, SceneView

DASH_M = 3.0
DASH_PERIOD_M = 9.0
STRIPE_M = 0.5
# Roads and their paint are drawn this far (m).
ROAD_SIGHT_M, PAINT_SIGHT_M = 500.0, 220.0
BEHIND_M = 6.0
VERGE_M, KERB_M = 1.3, 0.22
DUST: Color = (160, 150, 126)
KERB: Color = (172, 170, 166)
ZEBRA: Color = (230, 230, 230)


def paint_ground(canvas: Canvas, view: SceneView) -> None:
    """Paint what lies flat, then darken it by shadows and veil it by haze."""
    look = view.appearance
    r, g, b = (round(0.62 * turf + 0.38 * dust) for turf, dust in zip(rgb(look.ground), DUST, strict=True))
    for wider_m, color in ((VERGE_M, (r, g, b)), (KERB_M, KERB), (0.0, rgb(look.asphalt))):
        for surface in view.surfaces:
            _paint_strip(canvas, *_widened(surface, wider_m), _lit(canvas, color))
    for marking in view.markings:
        _paint_marking(canvas, marking, _lit(canvas, rgb(marking.color)))
    for crosswalk in view.crosswalks:
        _paint_crosswalk(canvas, crosswalk, _lit(canvas, ZEBRA))
    _shade(canvas, view)


def _lit(canvas: Canvas, color: Color) -> Color:
    """A colour of the ground; haze comes over all of it at the end."""
    r, g, b = (int(min(255.0, c * canvas.appearance.brightness)) for c in color)
    return r, g, b


def _widened(surface: RoadSurface, by_m: float) -> tuple[Floats, Floats]:
    if by_m == 0.0:
        return surface.left, surface.right
    across = surface.left - surface.right
    across = across * (by_m / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-6))
    return surface.left + across, surface.right - across


def _in_sight(depth_m: Floats, sight_m: float) -> slice:
    """The points (N,) of a line from its first in sight to its last, and one more at each end."""
    shown = np.flatnonzero((depth_m > -BEHIND_M) & (depth_m < sight_m))
    if len(shown) == 0:
        # A long segment can pass through sight with both its ends outside.
        return slice(None) if depth_m.min() < 0.0 < depth_m.max() else slice(0)
    return slice(max(int(shown[0]) - 1, 0), int(shown[-1]) + 2)


def _paint_strip(canvas: Canvas, left: Floats, right: Floats, color: Color, sight_m: float = ROAD_SIGHT_M) -> None:
    """Paint what lies between two borders (N, 2)."""
    a, b = canvas.eye.ground_to_camera(left), canvas.eye.ground_to_camera(right)
    shown = _in_sight((a[:, 2] + b[:, 2]) / 2.0, sight_m)
    outline = np.concatenate([a[shown], b[shown][::-1]])
    polygon = canvas.eye.polygon(outline) if len(outline) else None
    if polygon is not None:
        canvas.fill(polygon, color)


def _paint_marking(canvas: Canvas, marking: RoadMarking, color: Color) -> None:
    points = marking.points
    legs = np.diff(points, axis=0)
    lengths = np.hypot(legs[:, 0], legs[:, 1])
    across = np.stack([-legs[:, 1], legs[:, 0]], axis=1) * (marking.width_m / 2.0 / lengths)[:, None]
    # At a corner, the mean of the two legs' normals.
    across = (np.concatenate([across[:1], across]) + np.concatenate([across, across[-1:]])) / 2.0
    if marking.paint is Paint.SOLID:
        _paint_strip(canvas, points + across, points - across, color, PAINT_SIGHT_M)
        return
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    starts = np.arange(0.0, along[-1] - DASH_M, DASH_PERIOD_M)
    if len(starts) == 0:
        return
    places = starts[:, None] + np.array([0.0, DASH_M, DASH_M, 0.0])
    sides = np.array([1.0, 1.0, -1.0, -1.0])
    corners = np.stack(
        [
            np.interp(places, along, points[:, axis]) + sides * np.interp(places, along, across[:, axis])
            for axis in (0, 1)
        ],
        axis=2,
    )
    _paint_quads(canvas, corners, color)


def _paint_quads(canvas: Canvas, corners: Floats, color: Color) -> None:
    """Paint four-cornered pieces of ground (K, 4, 2) that do not overlap."""
    seen = canvas.eye.ground_to_camera(corners)
    near, far = seen[:, :, 2].min(axis=1), seen[:, :, 2].max(axis=1)
    whole = (near >= NEAR_M) & (near < PAINT_SIGHT_M)
    if whole.any():
        cv2.fillPoly(canvas.image, list(canvas.eye.to_fixed(seen[whole])), color, cv2.LINE_AA, SHIFT)
    for i in np.flatnonzero((near < NEAR_M) & (far > NEAR_M)):
        polygon = canvas.eye.polygon(seen[i])
        if polygon is not None:
            canvas.fill(polygon, color)


def _paint_crosswalk(canvas: Canvas, crosswalk: Crosswalk, color: Color) -> None:
    cos, sin = np.cos(crosswalk.yaw_rad), np.sin(crosswalk.yaw_rad)
    half = crosswalk.width_m / 2.0
    starts = np.arange(-half, half - STRIPE_M + 1e-6, 2.0 * STRIPE_M)
    y = starts[:, None] + np.array([0.0, 0.0, STRIPE_M, STRIPE_M])
    x = np.broadcast_to(np.array([-1.0, 1.0, 1.0, -1.0]) * (crosswalk.length_m / 2.0), y.shape)
    corners = np.array(crosswalk.center) + np.stack([cos * x - sin * y, sin * x + cos * y], axis=2)
    _paint_quads(canvas, corners, color)


def _shade(canvas: Canvas, view: SceneView) -> None:
    """Darken the ground by the shadows on it, then blend its rows into the haze by their depth."""
    first = min(max(int(canvas.eye.horizon_px), 0), canvas.eye.camera.height_px)
    patch = canvas.image[first:]
    if len(patch) == 0:
        return
    clear, veil = _haze(view.appearance, canvas.eye.camera, first)
    light = cv2.multiply(shadow_layer(canvas.eye, view, first), clear, scale=1.0 / 255.0)
    cv2.multiply(patch, cv2.cvtColor(light, cv2.COLOR_GRAY2RGB), dst=patch, scale=1.0 / 255.0)
    cv2.add(patch, veil, dst=patch)


@lru_cache(maxsize=16)
def _haze(look: Appearance, camera: CameraModel, first_row: int) -> tuple[NDArray[np.uint8], Image]:
    """Of the rows below the horizon: what the haze leaves of the ground (of 255), (R, W), and its light, (R, W, 3)."""
    rows = np.arange(first_row, camera.height_px) + 0.5
    pitch = np.radians(camera.pitch_deg)
    below = np.maximum((rows - camera.height_px / 2.0) / camera.focal_px - np.tan(pitch), 1e-6)
    clear = np.exp(-camera.z_m / below / look.haze_m)
    tone = np.array(rgb(look.sky_horizon)) * look.brightness
    left = np.round(255.0 * clear).astype(np.uint8)
    veil = np.round(np.minimum((1.0 - clear)[:, None] * tone, 255.0)).astype(np.uint8)
    size = (len(rows), camera.width_px)
    return np.broadcast_to(left[:, None], size).copy(), np.broadcast_to(veil[:, None], (*size, 3)).copy()
