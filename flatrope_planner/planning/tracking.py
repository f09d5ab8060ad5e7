"""Follows a planned trajectory: pure pursuit for the steering, the plan's own speed for the speed."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import DriveCommand, Floats, Trajectory
from flatrope_planner.planning.pose import Pose2D

__all__ = ["DriveCommand", "Pose2D", "track"]

# The speed asked for is the one the plan wants this much later: a vehicle answers with about this lag.
SPEED_PREVIEW_S = 0.3
# Part of the distance ahead of or behind the plan that is made up for in each second, and its bound.
CATCH_UP_PER_S = 0.5
MAX_CATCH_UP_MPS = 0.6
# A plan that stays below this speed for the coming second is a plan to stand still: a learnt one never says quite zero.
STANDING_MPS = 0.6
STANDING_SPAN_S = 1.0
# Pure pursuit looks this far ahead in time, within these bounds.
LOOKAHEAD_S = 0.8
MIN_LOOKAHEAD_M = 3.5
MAX_LOOKAHEAD_M = 15.0


@dataclass(frozen=True)
class _Path:
    """The plan as seen from the rear axle now, its start at t0 included."""

    # float64 (65,), s since t0.
    time_s: Floats
    # float64 (65, 2), m.
    position_m: Floats
    # float64 (65,), rad.
    yaw_rad: Floats
    # float64 (65,), m/s.
    speed_mps: Floats
    # float64 (65,), m along the path.
    distance_m: Floats

    def speed_at(self, time_s: float) -> float:
        return float(np.interp(time_s, self.time_s, self.speed_mps))

    def distance_at(self, time_s: float) -> float:
        return float(np.interp(time_s, self.time_s, self.distance_m))


def track(
    trajectory: Trajectory, pose_t0: Pose2D, pose_now: Pose2D, speed_now_mps: float, age_s: float
) -> DriveCommand:
    """The command that keeps a vehicle on a plan made for `pose_t0` `age_s` ago; a plan that has run out stops it."""
    path = _seen_from(trajectory, pose_t0, pose_now, speed_now_mps)
    along_m = _distance_of_nearest(path)
    curvature = _pursuit_curvature(path, along_m, speed_now_mps)
    # A yaw rate of a vehicle that stands would be no motion of a car.
    return DriveCommand(_wanted_speed(path, along_m, age_s), curvature * max(speed_now_mps, 0.0))


def _seen_from(trajectory: Trajectory, pose_t0: Pose2D, pose_now: Pose2D, speed_now_mps: float) -> _Path:
    planned = np.vstack([np.zeros((1, 2)), trajectory.position_m[:, :2]])
    position_m = pose_now.to_local(pose_t0.to_outer(planned))
    yaw_rad = np.concatenate([[0.0], trajectory.yaw_rad]) + pose_t0.yaw_rad - pose_now.yaw_rad
    step_m = np.linalg.norm(np.diff(position_m, axis=0), axis=1)
    return _Path(
        np.concatenate([[0.0], trajectory.time_from_start_s]),
        position_m,
        yaw_rad,
        np.concatenate([[speed_now_mps], trajectory.speed_mps]),
        np.concatenate([[0.0], np.cumsum(step_m)]),
    )


def _distance_of_nearest(path: _Path) -> float:
    """Distance along the path (m) of its point nearest to the vehicle."""
    start, step = path.position_m[:-1], np.diff(path.position_m, axis=0)
    length_sq = np.maximum(np.sum(step**2, axis=1), 1e-12)
    share = np.clip(-np.sum(start * step, axis=1) / length_sq, 0.0, 1.0)
    off_m = np.linalg.norm(start + share[:, None] * step, axis=1)
    i = int(np.argmin(off_m))
    return float(path.distance_m[i] + share[i] * (path.distance_m[i + 1] - path.distance_m[i]))


def _pursuit_curvature(path: _Path, along_m: float, speed_mps: float) -> float:
    """Curvature (1/m) of the arc from the vehicle to the point of the path one lookahead further on."""
    lookahead_m = float(np.clip(LOOKAHEAD_S * speed_mps, MIN_LOOKAHEAD_M, MAX_LOOKAHEAD_M))
    wanted_m = along_m + lookahead_m
    beyond_m = max(wanted_m - float(path.distance_m[-1]), 0.0)
    # A path that ends before goes on straight.
    end = np.array([np.cos(path.yaw_rad[-1]), np.sin(path.yaw_rad[-1])]) * beyond_m
    x = float(np.interp(wanted_m, path.distance_m, path.position_m[:, 0])) + end[0]
    y = float(np.interp(wanted_m, path.distance_m, path.position_m[:, 1])) + end[1]
    return float(2.0 * y / max(x * x + y * y, 1e-6))


def _wanted_speed(path: _Path, along_m: float, age_s: float) -> float:
    if age_s >= path.time_s[-1] or _stands(path, age_s):
        return 0.0
    behind_m = path.distance_at(age_s) - along_m
    catch_up = float(np.clip(CATCH_UP_PER_S * behind_m, -MAX_CATCH_UP_MPS, MAX_CATCH_UP_MPS))
    return max(0.0, path.speed_at(age_s + SPEED_PREVIEW_S) + catch_up)


def _stands(path: _Path, age_s: float) -> bool:
    coming = (path.time_s > age_s) & (path.time_s <= age_s + STANDING_SPAN_S)
    return bool(np.max(path.speed_mps[coming]) < STANDING_MPS)
