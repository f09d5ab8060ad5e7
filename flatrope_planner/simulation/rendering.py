"""Draws a SceneView through a camera: sky and ground, then everything that stands on it, far things first."""

from collections.abc import Callable
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Image
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.canvas import Canvas
from flatrope_planner.simulation.projection import Projector
from flatrope_planner.simulation.rendering_ground import paint_ground
from flatrope_planner.simulation.rendering_roadside import (
    paint_building,
    paint_cone,
    paint_light,
    paint_pedestrian,
    paint_stop_sign,
    paint_tree,
)
from flatrope_planner.simulation.rendering_vehicles import paint_vehicle
from flatrope_planner.simulation.view import Appearance, SceneView

SIGHT_M = 160.0
NOISE_STEP = 0.5
NOISE_MARGIN_PX = 64


def render(view: SceneView, camera: CameraModel, ego: tuple[float, float, float]) -> Image:
    """What the camera sees from the ego at world x, y (m) and yaw (rad): uint8 (H, W, 3), RGB."""
    eye = Projector(camera, ego)
    canvas = Canvas(_backdrop(view.appearance, camera), eye, view.appearance)
    paint_ground(canvas, view, SIGHT_M)
    for paint in _far_to_near(canvas, view):
        paint()
    noisy = _with_noise(canvas.image, view.appearance.noise, view.noise_seed)
    return np.asarray(cv2.cvtColor(noisy, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def _far_to_near(canvas: Canvas, view: SceneView) -> list[Callable[[], None]]:
    """The painters of all upright things within sight and in front of the lens, in painting order."""
    jobs: list[tuple[float, Callable[[], None]]] = []
    groups: list[tuple[tuple[object, ...], Callable[..., None], float]] = [
        (view.buildings, paint_building, 12.0),
        (view.trees, paint_tree, 3.0),
        (view.vehicles, paint_vehicle, 4.0),
        (view.pedestrians, paint_pedestrian, 0.5),
        (view.lights, paint_light, 0.5),
        (view.stop_signs, paint_stop_sign, 0.5),
        (view.cones, paint_cone, 0.5),
    ]
    for things, paint, radius_m in groups:
        if not things:
            continue
        centers = np.array([(*thing.center, 0.0) for thing in things])  # type: ignore[attr-defined]
        seen = canvas.eye.to_camera(centers)
        limit = canvas.camera_half_width_per_depth
        visible = (seen[:, 2] > -radius_m) & (seen[:, 2] < SIGHT_M)
        visible &= np.abs(seen[:, 0]) < limit * np.maximum(seen[:, 2], 0.0) + 2.0 * radius_m
        for i in np.flatnonzero(visible):
            depth = float(seen[i, 2])
            jobs.append((depth, lambda p=paint, t=things[i], d=depth: p(canvas, t, d)))  # type: ignore[misc]
    return [job for _, job in sorted(jobs, key=lambda entry: -entry[0])]


def _backdrop(appearance: Appearance, camera: CameraModel) -> Image:
    return _sky_and_ground(appearance, camera).copy()


@lru_cache(maxsize=16)
def _sky_and_ground(appearance: Appearance, camera: CameraModel) -> Image:
    """Sky fading to the horizon, ground fading into the haze."""
    horizon = camera.height_px / 2.0 + camera.focal_px * np.tan(np.radians(camera.pitch_deg))
    rows = np.arange(camera.height_px) + 0.5
    top, low, ground = (np.array(color) for color in (appearance.sky_top, appearance.sky_horizon, appearance.ground))
    # The sky reaches its full colour 25 degrees up, whatever the lens.
    up = np.clip((horizon - rows) / (camera.focal_px * np.tan(np.radians(25.0))), 0.0, 1.0)[:, None]
    sky = low + (top - low) * up
    depth = camera.z_m * camera.focal_px / np.maximum(rows - horizon, 1e-3)
    clear = np.exp(-depth / appearance.haze_m)[:, None]
    # Turf of two tones in the distance and near, so that the ground is not one flat patch.
    land = (ground * (0.92 + 0.08 * np.exp(-depth / 12.0))[:, None]) * clear + low * (1.0 - clear)
    column = np.where((rows < horizon)[:, None], sky, land) * appearance.brightness
    picture = np.broadcast_to(column[:, None, :], (camera.height_px, camera.width_px, 3))
    return np.ascontiguousarray(np.clip(picture, 0, 255).astype(np.uint8))


def _with_noise(image: Image, level: float, seed: int) -> Image:
    height, width = image.shape[:2]
    bank = _noise_bank(height, width, round(level / NOISE_STEP))
    dy, dx = np.random.default_rng([seed, width]).integers(0, NOISE_MARGIN_PX, 2)
    crop = bank[dy : dy + height, dx : dx + width]
    return np.asarray(cv2.add(image, crop, dtype=cv2.CV_8U), dtype=np.uint8)


@lru_cache(maxsize=16)
def _noise_bank(height: int, width: int, steps: int) -> NDArray[np.int16]:
    """Sensor noise of this strength, larger than a picture: each frame takes its own cut."""
    shape = (height + NOISE_MARGIN_PX, width + NOISE_MARGIN_PX, 3)
    noise = np.random.default_rng(7).normal(0.0, steps * NOISE_STEP, shape)
    return np.round(noise).astype(np.int16)
