"""Which things of a scene are in sight, and in which order to paint them so that near hides far."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.projection import Projector

SIGHT_M = 300.0
# Slack (m) in calling a thing in front of a wall.
TOUCH_M = 0.1
# Rows of things behind each other's sides that the order gets right.
PUSHES = 3


@dataclass(frozen=True)
class Footprint:
    """Where a thing stands: middle (m), yaw (rad), half length and half width (m)."""

    center: tuple[float, float]
    yaw_rad: float
    half: tuple[float, float]


def painting_order(eye: Projector, footprints: list[Footprint]) -> list[tuple[int, float]]:
    """Index and depth (m) of the things in sight, in painting order.

    A thing is painted at the distance of its nearest point; one in front of a long thing's side, though farther away
    than its nearest corner, pushes the long thing back.
    """
    if not footprints:
        return []
    centers = np.array([print_.center for print_ in footprints])
    half = np.array([print_.half for print_ in footprints])
    yaw = np.array([print_.yaw_rad for print_ in footprints])
    # (N, 2, 2): the rows are a thing's forward and left.
    axes = np.stack([np.stack([np.cos(yaw), np.sin(yaw)], 1), np.stack([-np.sin(yaw), np.cos(yaw)], 1)], 1)
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    corners = centers[:, None] + (signs * half[:, None]) @ axes  # (N, 4, 2)
    seen = eye.ground_to_camera(corners)
    shown = np.flatnonzero(_in_sight(eye, seen))
    if len(shown) == 0:
        return []
    axes, centers, half, corners, seen = (x[shown] for x in (axes, centers, half, corners, seen))
    eyes = np.einsum("nij,nj->ni", axes, eye.position[:2] - centers)
    distance = np.linalg.norm(np.maximum(np.abs(eyes) - half, 0.0), axis=1)
    before = _in_front(centers, axes, half, corners, eyes)
    before &= ~before.T & _overlapping(seen)
    for _ in range(PUSHES):
        distance = np.maximum(distance, np.where(before, distance[:, None] + TOUCH_M, 0.0).max(axis=0, initial=0.0))
    depth = seen[:, :, 2].mean(axis=1)
    return [(int(shown[i]), float(depth[i])) for i in np.argsort(-distance, kind="stable")]


def _in_sight(eye: Projector, seen: Floats) -> NDArray[np.bool_]:
    """Whether anything of (N, 4, 3) camera corners may fall into the picture."""
    x, z = seen[:, :, 0], seen[:, :, 2]
    # Crowns, heads and lamps reach beyond their footprints.
    slope, slack = eye.camera.width_px / 2.0 / eye.camera.focal_px, 1.0
    outside = (x > slope * z + slack).all(axis=1) | (-x > slope * z + slack).all(axis=1)
    return np.asarray(~outside & (z.max(axis=1) > 0.0) & (z.min(axis=1) < SIGHT_M))


def _in_front(centers: Floats, axes: Floats, half: Floats, corners: Floats, eyes: Floats) -> NDArray[np.bool_]:
    """[i, j]: a side of j that faces the eye parts it and all of i from j."""
    # Each thing's two axes, turned toward the eye: (2 j, 2).
    outward = (axes * np.sign(eyes)[:, :, None]).reshape(-1, 2)
    walls = (np.einsum("nij,nj->ni", axes, centers) * np.sign(eyes) + half - TOUCH_M).ravel()
    # How far the innermost corner of i stands beyond each wall of j: (i, 2 j).
    beyond = (corners.reshape(-1, 2) @ outward.T).reshape(len(corners), 4, -1).min(axis=1) > walls
    beyond &= (np.abs(eyes) > half).ravel()
    return np.asarray(beyond.reshape(len(corners), -1, 2).any(axis=2))


def _overlapping(seen: Floats) -> NDArray[np.bool_]:
    """[i, j]: both cover a common column of the picture."""
    bearing = seen[:, :, 0] / np.maximum(seen[:, :, 2], 0.3)
    low, high = bearing.min(axis=1), bearing.max(axis=1)
    return np.asarray((low[:, None] < high[None]) & (low[None] < high[:, None]))
