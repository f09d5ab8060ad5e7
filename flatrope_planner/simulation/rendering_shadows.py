"""Soft shadows that things cast on the ground."""

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import SUN
from flatrope_planner.simulation.projection import NEAR_M, SHIFT, Projector
from flatrope_planner.simulation.view import SceneView

# The layer is painted at half size and blurred by this many of its pixels.
HALF = 2
BLUR_PX = 5
SHADOW_SIGHT_M = 140.0
FULL, SHADE = 255, 138
# How far a shadow falls per metre of height, world x and y.
FALL = -SUN[:2] / SUN[2]
# Every outline is given by this many points.
OUTLINE = 8


def shadow_layer(eye: Projector, view: SceneView, first_row: int) -> NDArray[np.uint8]:
    """Light on the ground in the rows from `first_row` (R, W): 255 in the sun."""
    camera = eye.camera
    height, width = camera.height_px - first_row, camera.width_px
    layer = np.full(((height + 1) // HALF, width // HALF), FULL, dtype=np.uint8)
    up = np.array([0, first_row << SHIFT], dtype=np.int32)
    seen = eye.ground_to_camera(np.concatenate([_boxes(view), _crowns(view)]))
    near, far = seen[:, :, 2].min(axis=1), seen[:, :, 2].max(axis=1)
    # The half-size layer: half the pixels, half the fixed-point numbers.
    sideways = np.abs(seen[:, :, 0]).min(axis=1) * camera.focal_px
    whole = (near >= NEAR_M) & (near < SHADOW_SIGHT_M) & (sideways < far * camera.width_px / 2.0)
    for polygon in (eye.to_fixed(seen[whole]) - up) // HALF:
        cv2.fillConvexPoly(layer, cv2.convexHull(polygon), SHADE, cv2.LINE_AA, SHIFT)
    for i in np.flatnonzero((near < NEAR_M) & (far > NEAR_M)):
        hull = cv2.convexHull(seen[i][:, [0, 2]].astype(np.float32))[:, 0]
        polygon = eye.polygon(np.stack([hull[:, 0], np.full(len(hull), eye.position[2]), hull[:, 1]], axis=1))
        if polygon is not None:
            cv2.fillPoly(layer, [(polygon - up) // HALF], SHADE, cv2.LINE_AA, SHIFT)
    layer = np.asarray(cv2.blur(layer, (BLUR_PX, BLUR_PX)), dtype=np.uint8)
    return np.asarray(cv2.resize(layer, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _boxes(view: SceneView) -> Floats:
    """(K, 8, 2) feet of boxes and poles, and the same where their tops throw them."""
    # x, y, yaw, length, width, height.
    boxes = [(*b.center, b.yaw_rad, b.length_m, b.width_m, b.height_m) for b in view.buildings]
    # The roof of a vehicle is smaller than its foot.
    boxes += [(*v.center, v.yaw_rad, v.length_m, v.width_m * 1.04, v.height_m * 0.75) for v in view.vehicles]
    boxes += [(*person.center, person.yaw_rad, 0.3, 0.4, 0.85 * person.height_m) for person in view.pedestrians]
    boxes += [(*cone.center, 0.0, 0.35, 0.35, 0.7 * cone.height_m) for cone in view.cones]
    boxes += [(*light.center, light.yaw_rad, 0.2, 0.2, light.height_m) for light in view.lights]
    boxes += [(*sign.center, sign.yaw_rad, 0.1, 0.12, sign.height_m) for sign in view.stop_signs]
    boxes += [(*tree.center, 0.0, 0.6, 0.6, 0.5 * tree.height_m) for tree in view.trees]
    x, y, yaw, length, width, height = np.array(boxes).reshape(-1, 6).T[:, :, None]
    forward, left = np.array([1, 1, -1, -1]) * length / 2.0, np.array([1, -1, -1, 1]) * width / 2.0
    cos, sin = np.cos(yaw), np.sin(yaw)
    foot = np.stack([x + cos * forward - sin * left, y + sin * forward + cos * left], axis=2)
    return np.concatenate([foot, foot + FALL * height[:, :, None]], axis=1)


def _crowns(view: SceneView) -> Floats:
    """(K, 8, 2) round shadows of tree crowns."""
    trees = np.array([(*tree.center, tree.height_m) for tree in view.trees]).reshape(-1, 1, 3)
    angle = np.arange(OUTLINE) * (2.0 * np.pi / OUTLINE)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(trees[:, :, :2] + trees[:, :, 2:] * (0.68 * FALL + 0.27 * ring))
