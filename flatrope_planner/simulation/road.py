"""Road geometry: a guide line with arc length, and the lanes laid beside it.

Frenet coordinates: s (m) along the guide line, d (m) to its left. The guide line is the centre of the ego lane.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats

LANE_WIDTH_M = 3.5
SPACING_M = 0.5


@dataclass(frozen=True)
class Bend:
    """A piece of road of constant curvature (1/m, positive to the left)."""

    length_m: float
    curvature: float = 0.0


class GuideLine:
    """A smooth line sampled every half metre; s = 0 lies `before_m` after its first point, at the world origin."""

    def __init__(self, bends: list[Bend], before_m: float = 80.0) -> None:
        """Join the bends; curvature changes over 10 m, as on real roads."""
        raw = np.concatenate([np.full(round(b.length_m / SPACING_M), b.curvature) for b in bends])
        window = round(10.0 / SPACING_M)
        padded = np.pad(raw, (window // 2, window - 1 - window // 2), mode="edge")
        self.curvature: Floats = np.convolve(padded, np.ones(window) / window, mode="valid")
        yaw = np.concatenate([[0.0], np.cumsum(self.curvature[:-1] * SPACING_M)])
        middle = yaw + self.curvature * SPACING_M / 2.0
        steps = np.stack([np.cos(middle), np.sin(middle)], axis=1) * SPACING_M
        points = np.concatenate([np.zeros((1, 2)), np.cumsum(steps[:-1], axis=0)])
        start = round(before_m / SPACING_M)
        rotation = np.array([[np.cos(yaw[start]), -np.sin(yaw[start])], [np.sin(yaw[start]), np.cos(yaw[start])]])
        self.points: Floats = (points - points[start]) @ rotation
        self.yaw: Floats = yaw - yaw[start]
        self.first_s_m = -start * SPACING_M
        self.last_s_m = self.first_s_m + (len(raw) - 1) * SPACING_M

    def _index(self, s_m: float) -> tuple[int, float]:
        place = (s_m - self.first_s_m) / SPACING_M
        index = min(max(int(place), 0), len(self.yaw) - 2)
        return index, place - index

    def at(self, s_m: float, d_m: float = 0.0) -> tuple[float, float, float]:
        """World x (m), y (m) and yaw (rad) of a Frenet point; beyond the ends the line goes on straight."""
        index, rest = self._index(s_m)
        clipped = min(max(rest, 0.0), 1.0)
        yaw = float(self.yaw[index] + clipped * (self.yaw[index + 1] - self.yaw[index]))
        x, y = self.points[index] + rest * (self.points[index + 1] - self.points[index])
        return float(x) - d_m * np.sin(yaw), float(y) + d_m * np.cos(yaw), yaw

    def curvature_at(self, s_m: float) -> float:
        """Curvature (1/m) at s."""
        return float(self.curvature[self._index(s_m)[0]])

    def project(self, x_m: float, y_m: float, near_s_m: float | None = None) -> tuple[float, float]:
        """Frenet s, d (m) of a world point; `near_s_m` limits the search to 25 m about it."""
        low, high = 0, len(self.yaw)
        if near_s_m is not None:
            centre, _ = self._index(near_s_m)
            low, high = max(0, centre - 50), min(len(self.yaw), centre + 51)
        delta = np.array([x_m, y_m]) - self.points[low:high]
        index = low + int(np.argmin(np.einsum("ij,ij->i", delta, delta)))
        cos, sin = np.cos(self.yaw[index]), np.sin(self.yaw[index])
        dx, dy = x_m - self.points[index, 0], y_m - self.points[index, 1]
        along, left = cos * dx + sin * dy, -sin * dx + cos * dy
        return self.first_s_m + index * SPACING_M + float(along), float(left)

    def polyline(self, from_s_m: float, to_s_m: float, d_m: float, step_m: float = 2.0) -> NDArray[np.float64]:
        """(N, 2) world points of the line beside the guide line at d."""
        count = max(2, round((to_s_m - from_s_m) / step_m) + 1)
        index = (np.linspace(from_s_m, to_s_m, count) - self.first_s_m) / SPACING_M
        index = np.clip(index, 0, len(self.yaw) - 1)
        grid = np.arange(len(self.yaw))
        yaw = np.interp(index, grid, self.yaw)
        x, y = np.interp(index, grid, self.points[:, 0]), np.interp(index, grid, self.points[:, 1])
        return np.stack([x - d_m * np.sin(yaw), y + d_m * np.cos(yaw)], axis=1)


@dataclass(frozen=True)
class RoadLayout:
    """Lanes beside the guide line: `left` more of the ego's direction, then `opposing`; `right` to the right."""

    line: GuideLine
    left: int = 0
    right: int = 0
    opposing: int = 1
    # Extra asphalt to the right of the last lane, where vehicles can stand (m).
    shoulder_m: float = 0.5

    @property
    def lane_offsets_m(self) -> tuple[float, ...]:
        """Lateral centre d (m) of each lane of the ego's direction, right to left."""
        return tuple(LANE_WIDTH_M * i for i in range(-self.right, self.left + 1))

    @property
    def opposing_offsets_m(self) -> tuple[float, ...]:
        """Lateral centre d (m) of each opposing lane."""
        return tuple(LANE_WIDTH_M * (self.left + 1 + i) for i in range(self.opposing))

    @property
    def left_edge_m(self) -> float:
        """Where the asphalt ends on the left, d (m)."""
        return LANE_WIDTH_M * (self.left + self.opposing + 0.5) + 0.5

    @property
    def right_edge_m(self) -> float:
        """Where the asphalt ends on the right, d (m), negative."""
        return -LANE_WIDTH_M * (self.right + 0.5) - self.shoulder_m
