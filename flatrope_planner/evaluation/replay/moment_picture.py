"""Draws where the plan leads and where the car went into a camera picture."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from flatrope_planner.domain import Floats, Image
from flatrope_planner.evaluation.replay.compared_paths import ComparedPath, compared_paths
from flatrope_planner.evaluation.report.pictures import Eye

# BGR, as in the page: planned orange, driven blue.
PLANNED, DRIVEN = (46, 140, 240), (224, 122, 31)
# Half widths of the lines on the road (m): the driven one is a car's track, the planned one lies in it.
PLANNED_HALF_M, DRIVEN_HALF_M = 0.35, 0.9
PLANNED_OPACITY, DRIVEN_OPACITY = 0.75, 0.4
# Of what follows the measured part this share is left.
BEYOND_OPACITY = 0.35
# The dot in which the measured part ends: as a share of the picture's width, with an edge of white.
DOT_SHARE, WHITE = 0.011, (255, 255, 255)
# Where a bonnet ends.
FIRST_SHOWN_M = 4.0
SPACING_M = 0.5
# Parts of a pixel that OpenCV is told, in powers of two.
SHIFT = 3
# What lies further outside is not drawn, or drawn there.
FAR_PX = 1e4


def drawn_into(image: Image, row: Mapping[str, Any], horizon: str, eye: Eye) -> Image:
    """A copy of a BGR picture with the paths of a row of plans.jsonl on the road; dots show where the horizon ends."""
    planned, driven = compared_paths(row, horizon)
    image = _path(image, driven, eye, (DRIVEN, DRIVEN_HALF_M, DRIVEN_OPACITY))
    image = _path(image, planned, eye, (PLANNED, PLANNED_HALF_M, PLANNED_OPACITY))
    for path, color in ((driven, DRIVEN), (planned, PLANNED)):
        image = _dot(image, path.measured_m[-1], eye, color)
    return image


def _path(image: Image, path: ComparedPath, eye: Eye, style: tuple[tuple[int, int, int], float, float]) -> Image:
    """The measured part and, pale, what follows."""
    color, half_width_m, opacity = style
    distance_m = _distance_m(path.points_m)
    for low_m, high_m, visibility in (
        (FIRST_SHOWN_M, distance_m[path.end], 1.0),
        (max(FIRST_SHOWN_M, distance_m[path.end]), distance_m[-1], BEYOND_OPACITY),
    ):
        part_m = _resampled(path.points_m, distance_m, low_m, high_m)
        image = _ribbon(image, part_m, eye, (color, half_width_m, opacity * visibility))
    return image


def _distance_m(path_m: Floats) -> Floats:
    """Along a path (N, 2) from its beginning, (N,)."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path_m, axis=0), axis=1))])


def _resampled(path_m: Floats, distance_m: Floats, low_m: float, high_m: float) -> Floats:
    """The stretch of a path (N, 2) between two distances, at about equal ones; empty where it is too short."""
    count = int((high_m - low_m) / SPACING_M) + 1 if high_m > low_m else 0
    wanted_m = np.linspace(low_m, high_m, count)
    return np.stack([np.interp(wanted_m, distance_m, path_m[:, axis]) for axis in range(2)], axis=1)


def _dot(image: Image, point_m: Floats, eye: Eye, color: tuple[int, int, int]) -> Image:
    """A dot on the road, where it can be seen."""
    (at_px,) = eye.project(np.array([[*point_m, 0.0]])) * image.shape[1] / eye.width_px
    if not np.isfinite(at_px).all() or np.abs(at_px).max() > FAR_PX:
        return image
    center = tuple(round(float(value) * 2**SHIFT) for value in at_px)
    radius = round(DOT_SHARE * image.shape[1] * 2**SHIFT)
    image = image.copy()
    for grown, painted in ((1.4, WHITE), (1.0, color)):
        cv2.circle(image, center, round(radius * grown), painted, cv2.FILLED, cv2.LINE_AA, shift=SHIFT)
    return image


def _ribbon(image: Image, path_m: Floats, eye: Eye, style: tuple[tuple[int, int, int], float, float]) -> Image:
    color, half_width_m, opacity = style
    if len(path_m) < 2:
        return image
    ahead = np.gradient(path_m, axis=0)
    side_m = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) / np.linalg.norm(ahead, axis=1)[:, None] * half_width_m
    scale = image.shape[1] / eye.width_px
    edges = [eye.project(np.column_stack([path_m + sign * side_m, np.zeros(len(path_m))])) * scale for sign in (1, -1)]
    visible = np.isfinite(edges[0]).all(axis=1) & np.isfinite(edges[1]).all(axis=1)
    if visible.sum() < 2:
        return image
    outline = np.clip(np.vstack([edges[0][visible], edges[1][visible][::-1]]), -FAR_PX, FAR_PX)
    layer = image.copy()
    cv2.fillPoly(layer, [np.round(outline * 2**SHIFT).astype(np.int32)], color, cv2.LINE_AA, shift=SHIFT)
    return np.asarray(cv2.addWeighted(layer, opacity, image, 1.0 - opacity, 0.0), dtype=np.uint8)
