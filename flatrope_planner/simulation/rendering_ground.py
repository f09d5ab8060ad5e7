"""Asphalt, paint and zebra stripes."""

import cv2
import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import Canvas
from flatrope_planner.simulation.view import Crosswalk, Paint, RoadMarking, SceneView

DASH_M = 3.0
DASH_PERIOD_M = 9.0
STRIPE_M = 0.5
BEHIND_M = 6.0


def paint_ground(canvas: Canvas, view: SceneView, sight_m: float) -> None:
    """Everything that lies flat; haze is laid over it row by row at the end."""
    light = view.appearance.brightness
    asphalt = _lit(view.appearance.asphalt, light)
    for surface in view.surfaces:
        for left, right in _runs(canvas, surface.left, surface.right, sight_m):
            canvas.fill(_flat(np.concatenate([left, right[::-1]])), asphalt)
    for marking in view.markings:
        _paint_marking(canvas, marking, _lit(marking.color, light), sight_m)
    for crosswalk in view.crosswalks:
        _paint_crosswalk(canvas, crosswalk, _lit((228, 228, 228), light))
    _lay_haze(canvas)


def _lit(color: tuple[int, int, int], light: float) -> tuple[int, int, int]:
    b, g, r = (int(min(255.0, c * light)) for c in color)
    return b, g, r


def _flat(points: Floats) -> Floats:
    """(N, 2) ground points -> (N, 3)."""
    return np.concatenate([points, np.zeros((len(points), 1))], axis=1)


def _runs(canvas: Canvas, left: Floats, right: Floats, sight_m: float) -> list[tuple[Floats, Floats]]:
    """The stretches of a strip that lie before the lens within sight, one segment more at each end."""
    middle = canvas.eye.to_camera(_flat((left + right) / 2.0))[:, 2]
    sides = np.minimum(canvas.eye.to_camera(_flat(left))[:, 2], canvas.eye.to_camera(_flat(right))[:, 2])
    reach = np.linalg.norm(left[0] - right[0])
    keep = (middle > -BEHIND_M - reach) & (sides < sight_m)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], keep, [False]])))
    return [
        (left[max(a - 1, 0) : b + 1], right[max(a - 1, 0) : b + 1])
        for a, b in zip(edges[::2], edges[1::2], strict=True)
        if b - a >= 1
    ]


def _paint_marking(canvas: Canvas, marking: RoadMarking, color: tuple[int, int, int], sight_m: float) -> None:
    step = np.gradient(marking.points, axis=0)
    normal = np.stack([-step[:, 1], step[:, 0]], axis=1) / np.linalg.norm(step, axis=1, keepdims=True)
    left, right = marking.points + normal * marking.width_m / 2.0, marking.points - normal * marking.width_m / 2.0
    if marking.paint is Paint.SOLID:
        for a, b in _runs(canvas, left, right, sight_m):
            canvas.fill(_flat(np.concatenate([a, b[::-1]])), color)
        return
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(marking.points, axis=0), axis=1))])
    starts = np.arange(0.0, length[-1] - DASH_M, DASH_PERIOD_M)
    places = np.stack([starts, starts + DASH_M / 2.0, starts + DASH_M], axis=1)
    # (dashes, 3, 2) points on each side.
    a, b = (np.stack([np.interp(places, length, side[:, axis]) for axis in (0, 1)], axis=2) for side in (left, right))
    depth = canvas.eye.to_camera(_flat(a[:, 1]))[:, 2]
    for i in np.flatnonzero((depth > -DASH_M) & (depth < sight_m)):
        canvas.fill(_flat(np.concatenate([a[i], b[i][::-1]])), color)


def _paint_crosswalk(canvas: Canvas, crosswalk: Crosswalk, color: tuple[int, int, int]) -> None:
    forward = np.array([np.cos(crosswalk.yaw_rad), np.sin(crosswalk.yaw_rad)]) * crosswalk.length_m / 2.0
    left = np.array([-np.sin(crosswalk.yaw_rad), np.cos(crosswalk.yaw_rad)])
    center = np.array(crosswalk.center)
    for place in np.arange(-crosswalk.width_m / 2.0, crosswalk.width_m / 2.0 - STRIPE_M, 2.0 * STRIPE_M):
        a, b = center + left * place, center + left * (place + STRIPE_M)
        canvas.fill(_flat(np.array([a - forward, a + forward, b + forward, b - forward])), color)


def _lay_haze(canvas: Canvas) -> None:
    """Blend the rows below the horizon toward the horizon's colour by their depth on the ground."""
    look, camera = canvas.appearance, canvas.eye.camera
    if not np.isfinite(look.haze_m):
        return
    horizon = camera.height_px / 2.0 + camera.focal_px * np.tan(np.radians(camera.pitch_deg))
    rows = np.arange(camera.height_px) + 0.5
    depth = camera.z_m * camera.focal_px / np.maximum(rows - horizon, 1e-3)
    hazy = np.flatnonzero((rows > horizon) & (depth / look.haze_m > 0.03))
    if len(hazy) == 0:
        return
    first, last = int(hazy[0]), int(hazy[-1]) + 1
    clear = np.exp(-depth[first:last] / look.haze_m).astype(np.float32)[:, None, None]
    tone = np.array(look.sky_horizon, dtype=np.float32) * np.float32(look.brightness)
    patch = canvas.image[first:last]
    patch[:] = cv2.convertScaleAbs(patch * clear + tone * (1.0 - clear))
