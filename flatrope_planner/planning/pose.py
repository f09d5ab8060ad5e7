"""Positions and attitudes of a rigid body, and what lies between two of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flatrope_planner.domain import Floats


@dataclass(frozen=True)
class Pose2D:
    """Position (m) and yaw (rad, counter-clockwise) on the ground."""

    x_m: float
    y_m: float
    yaw_rad: float

    def to_local(self, points_m: Floats) -> Floats:
        """(N, 2) points of the outer frame, seen from this pose."""
        return (points_m - [self.x_m, self.y_m]) @ self._axes()

    def to_outer(self, points_m: Floats) -> Floats:
        """(N, 2) points seen from this pose, in the outer frame."""
        return points_m @ self._axes().T + [self.x_m, self.y_m]

    def _axes(self) -> Floats:
        cos, sin = np.cos(self.yaw_rad), np.sin(self.yaw_rad)
        return np.array([[cos, -sin], [sin, cos]])


class Pose(NamedTuple):
    """Position (m) and unit quaternion (4,), x y z w, body -> outer frame."""

    x_m: float
    y_m: float
    z_m: float
    quaternion_xyzw: Floats

    @property
    def position_m(self) -> Floats:
        """float64 (3,)."""
        return np.array([self.x_m, self.y_m, self.z_m])

    @property
    def yaw_rad(self) -> float:
        """Heading of the body's x axis on the ground."""
        x, y, z, w = self.quaternion_xyzw
        return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    @property
    def on_ground(self) -> Pose2D:
        """The pose without height, roll and pitch."""
        return Pose2D(self.x_m, self.y_m, self.yaw_rad)


def rotation_matrix(quaternion_xyzw: Floats) -> Floats:
    """float64 (..., 3, 3) rotation of unit quaternions (..., 4)."""
    x, y, z, w = np.moveaxis(quaternion_xyzw, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def yaw_quaternion(yaw_rad: float) -> Floats:
    """Unit quaternion (4,), x y z w, of a turn about z."""
    return np.array([0.0, 0.0, np.sin(yaw_rad / 2.0), np.cos(yaw_rad / 2.0)])


def turned_about_z(quaternion_xyzw: Floats, angle_rad: float) -> Floats:
    """The attitude (4,) after a turn about the body's own z."""
    x, y, z, w = quaternion_xyzw
    _, _, sin, cos = yaw_quaternion(angle_rad)
    return np.array([x * cos + y * sin, y * cos - x * sin, z * cos + w * sin, w * cos - z * sin])


def slerp(first: Floats, last: Floats, share: Floats) -> Floats:
    """Unit quaternions (N, 4) the given share (N,) of the short way from `first` (N, 4) to `last` (N, 4)."""
    cosine = np.sum(first * last, axis=-1, keepdims=True)
    last = np.where(cosine < 0.0, -last, last)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    share = share[:, None]
    # sinc keeps the weights finite where both ends coincide: sin(s a) / sin(a) -> s as a -> 0.
    scale = np.sinc(angle / np.pi)
    mixed = first * (1.0 - share) * np.sinc((1.0 - share) * angle / np.pi) / scale
    mixed = mixed + last * share * np.sinc(share * angle / np.pi) / scale
    return np.asarray(mixed / np.linalg.norm(mixed, axis=-1, keepdims=True))
