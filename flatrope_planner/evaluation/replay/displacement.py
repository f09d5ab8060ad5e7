"""How far a plan is from what was driven: displacement and heading errors over horizons.

Conventions of autoware_planning_data_analyzer's open-loop evaluation: errors are taken at the plan's own points from
the first one on, against the odometry at t0 + time_from_start; a horizon H counts only if the plan's last point at or
before H lies within 0.1 s of it, and here only if odometry covers every point up to there.
"""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.driven_path import DrivenPoses

FULL = "full"
HORIZONS_S: dict[str, float] = {"1s": 1.0, "2s": 2.0, "3s": 3.0, "4s": 4.0, "6s": 6.0, FULL: np.inf}
HORIZON_SLACK_S = 0.1
# Times are multiples of 0.1 s that floats do not hold exactly.
ROUNDING_S = 1e-6
# Ends further off than this miss (Argoverse, Waymo Open Motion).
MISS_M = 2.0


@dataclass(frozen=True)
class PlannedPoses:
    """A plan's points in the ego frame at t0."""

    # float64 (N,), ascending seconds after t0.
    time_s: Floats
    # float64 (N, 2), m, and (N,), rad.
    position_m: Floats
    yaw_rad: Floats


@dataclass(frozen=True)
class HorizonErrors:
    """Errors of one plan up to one horizon."""

    # Mean and last distance (m).
    ade_m: float
    fde_m: float
    # Mean and last absolute difference of heading (rad).
    ahe_rad: float
    fhe_rad: float
    # Mean absolute distance across and along the driven heading (m); at the end signed: left and ahead are positive.
    lateral_m: float
    longitudinal_m: float
    final_lateral_m: float
    final_longitudinal_m: float
    # Whether the end is further off than 2 m.
    missed: bool


def errors_by_horizon(planned: PlannedPoses, driven: DrivenPoses) -> dict[str, HorizonErrors | str]:
    """The errors up to each horizon, or why there are none."""
    offset_m = planned.position_m - driven.position_m
    along = np.stack([np.cos(driven.yaw_rad), np.sin(driven.yaw_rad)], axis=1)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    columns = _Columns(
        distance_m=np.linalg.norm(offset_m, axis=1),
        heading_rad=np.abs(_wrapped(planned.yaw_rad - driven.yaw_rad)),
        lateral_m=np.sum(offset_m * across, axis=1),
        longitudinal_m=np.sum(offset_m * along, axis=1),
    )
    return {
        name: missing or columns.until(_points_until(planned, horizon_s))
        for name, horizon_s in HORIZONS_S.items()
        for missing in [_missing(planned, driven, horizon_s)]
    }


@dataclass(frozen=True)
class _Columns:
    """Errors at every point, float64 (N,)."""

    distance_m: Floats
    heading_rad: Floats
    lateral_m: Floats
    longitudinal_m: Floats

    def until(self, count: int) -> HorizonErrors:
        """The errors of the first `count` points."""
        last = count - 1
        return HorizonErrors(
            ade_m=float(np.mean(self.distance_m[:count])),
            fde_m=float(self.distance_m[last]),
            ahe_rad=float(np.mean(self.heading_rad[:count])),
            fhe_rad=float(self.heading_rad[last]),
            lateral_m=float(np.mean(np.abs(self.lateral_m[:count]))),
            longitudinal_m=float(np.mean(np.abs(self.longitudinal_m[:count]))),
            final_lateral_m=float(self.lateral_m[last]),
            final_longitudinal_m=float(self.longitudinal_m[last]),
            missed=bool(self.distance_m[last] > MISS_M),
        )


def _missing(planned: PlannedPoses, driven: DrivenPoses, horizon_s: float) -> str:
    """Why the horizon does not count; empty if it does."""
    count = _points_until(planned, horizon_s)
    if count == 0:
        return "the plan has no point so soon"
    if np.isfinite(horizon_s) and horizon_s - planned.time_s[count - 1] > HORIZON_SLACK_S + ROUNDING_S:
        return "the plan ends before"
    if not driven.covered[:count].all():
        return "the odometry does not cover it"
    return ""


def _points_until(planned: PlannedPoses, horizon_s: float) -> int:
    return int(np.count_nonzero(planned.time_s <= horizon_s + ROUNDING_S))


def _wrapped(angle_rad: Floats) -> Floats:
    return np.asarray((angle_rad + np.pi) % (2.0 * np.pi) - np.pi)
