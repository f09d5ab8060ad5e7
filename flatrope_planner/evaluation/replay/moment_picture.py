"""Draws where the plan leads and where the car went into a camera picture."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from flatrope_planner.domain import Floats, Image
from flatrope_planner.evaluation.report.pictures import Eye

# BGR, as in the page: planned orange, driven blue.
PLANNED, DRIVEN = (46, 140, 240), (224, 122, 31)
# Half widths of the lines on the road (m): the driven one is a car's track, the planned one lies in it.
PLANNED_HALF_M, DRIVEN_HALF_M = 0.35, 0.9
PLANNED_OPACITY, DRIVEN_OPACITY = 0.75, 0.4
# Where a bonnet ends.
FIRST_SHOWN_M = 4.0
SPACING_M = 0.5
# Parts of a pixel that OpenCV is told, in powers of two.
SHIFT = 3


def drawn_into(image: Image, row: Mapping[str, Any], eye: Eye) -> Image:
    """A copy of a BGR picture with the paths of a row of plans.jsonl on the road."""
    driven_m = np.array([point for point in row["driven_m"] if point is not None]).reshape(-1, 2)
    planned_m = np.array(row["position_m"])[:, :2]
    image = _ribbon(image, _resampled(driven_m), eye, (DRIVEN, DRIVEN_HALF_M, DRIVEN_OPACITY))
    return _ribbon(image, _resampled(planned_m), eye, (PLANNED, PLANNED_HALF_M, PLANNED_OPACITY))


def _resampled(path_m: Floats) -> Floats:
    """The path (N, 2) from the bonnet on at equal distances; empty for one that ends before."""
    path_m = np.vstack([np.zeros(2), path_m])
    distance_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path_m, axis=0), axis=1))])
    wanted_m = np.arange(FIRST_SHOWN_M, distance_m[-1], SPACING_M)
    return np.stack([np.interp(wanted_m, distance_m, path_m[:, axis]) for axis in range(2)], axis=1)


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
    outline = np.clip(np.vstack([edges[0][visible], edges[1][visible][::-1]]), -1e4, 1e4)
    layer = image.copy()
    cv2.fillPoly(layer, [np.round(outline * 2**SHIFT).astype(np.int32)], color, cv2.LINE_AA, shift=SHIFT)
    return np.asarray(cv2.addWeighted(layer, opacity, image, 1.0 - opacity, 0.0), dtype=np.uint8)
