"""Whether a plan drives through points that a sensor measured.

Where traffic moves, measured points move on: only what the plan reaches within `horizon_s` counts, or following a car
would never pass. Not covered: what the sensor does not see, and the way of the points.
"""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats, Trajectory

# A single return may be rain or dust.
MIN_POINTS = 3
# Heights over the ground (m) between which a point is in the way: no road surface, no bridge.
LOW_M, HIGH_M = 0.3, 2.5


@dataclass(frozen=True)
class Corridor:
    """What the vehicle sweeps: from its rear axle, m."""

    width_m: float
    front_m: float
    rear_m: float
    # Kept free on either side.
    margin_m: float
    # How far ahead in time the plan is swept (s).
    horizon_s: float


def free_way_m(trajectory: Trajectory, points_m: Floats, corridor: Corridor) -> float | None:
    """What the front of the vehicle drives before it meets points, or None if it meets none within the horizon.

    Args:
        trajectory: the plan.
        points_m: (N, 3) in the ego frame at t0.
    """
    upright = points_m[(points_m[:, 2] > LOW_M) & (points_m[:, 2] < HIGH_M), :2]
    upright = upright[np.linalg.norm(upright, axis=1) < _reach_m(trajectory, corridor)]
    # What lies within the vehicle itself is its own bonnet or roof rack.
    standing = _inside(upright, (0.0, 0.0, 0.0), corridor, corridor.width_m / 2.0)
    upright = upright[~standing]
    way_m, last = 0.0, np.zeros(3)
    for here in _swept(trajectory, corridor):
        step_m = float(np.linalg.norm(here[:2] - last[:2]))
        pose = (float(here[0]), float(here[1]), float(here[2]))
        if step_m > 0.0 and np.count_nonzero(_inside(upright, pose, corridor)) >= MIN_POINTS:
            return way_m
        way_m, last = way_m + step_m, here
    return None


def _swept(trajectory: Trajectory, corridor: Corridor) -> Floats:
    """Poses (N, 3) x, y, yaw of the plan within the horizon, so close that no place between them is left out."""
    count = min(round(corridor.horizon_s / FUTURE_PERIOD_S), len(trajectory.yaw_rad))
    planned = np.vstack([np.zeros((1, 3)), np.column_stack([trajectory.position_m[:, :2], trajectory.yaw_rad])[:count]])
    longest_m = float(np.max(np.linalg.norm(np.diff(planned[:, :2], axis=0), axis=1)))
    # Half a vehicle at the most: one that turns covers less of the way on its outer side.
    parts = max(1, int(np.ceil(2.0 * longest_m / (corridor.front_m + corridor.rear_m))))
    times = np.arange(1, parts * count + 1) / parts
    return np.column_stack([np.interp(times, np.arange(count + 1), column) for column in planned.T])


def _reach_m(trajectory: Trajectory, corridor: Corridor) -> float:
    furthest_m = float(np.max(np.linalg.norm(trajectory.position_m[:, :2], axis=1)))
    return furthest_m + corridor.front_m + corridor.rear_m + corridor.width_m + corridor.margin_m


def _inside(
    points_m: Floats, pose: tuple[float, float, float], corridor: Corridor, half_width_m: float | None = None
) -> np.ndarray:
    """Which of the points (N, 2) lie under the vehicle at x, y, yaw; its margin counts unless a width is given."""
    x, y, yaw = pose
    half_m = corridor.width_m / 2.0 + corridor.margin_m if half_width_m is None else half_width_m
    offset = points_m - [x, y]
    along_m = offset @ np.array([np.cos(yaw), np.sin(yaw)])
    across_m = offset @ np.array([-np.sin(yaw), np.cos(yaw)])
    return np.asarray((along_m > -corridor.rear_m) & (along_m < corridor.front_m) & (np.abs(across_m) < half_m))
