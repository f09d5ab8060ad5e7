"""Whether passengers would like a plan: nuPlan's bounds on a plan, NAVSIM's on how much it differs from the last."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats, Trajectory

# Slopes are taken over this many points (0.7 s): differences of two points of a learnt plan are mostly noise. nuPlan
# smooths too.
SLOPE_POINTS = 7
# Quantity -> least and greatest value that is comfortable (nuPlan; m/s^2, m/s^3, rad/s, rad/s^2).
BOUNDS: dict[str, tuple[float, float]] = {
    "longitudinal_acceleration": (-4.05, 2.40),
    "lateral_acceleration": (-4.89, 4.89),
    "jerk": (-8.37, 8.37),
    "longitudinal_jerk": (-4.13, 4.13),
    "yaw_rate": (-0.95, 0.95),
    "yaw_acceleration": (-1.93, 1.93),
}
# Quantity -> greatest root mean square of its change from one plan to the next, where both speak (NAVSIM).
CHANGE_BOUNDS = {"acceleration": 0.7, "jerk": 0.5, "yaw_rate": 0.1, "yaw_acceleration": 0.1}
# Plans further apart do not follow each other.
MOST_APART_S = 2.0
# Fewer common points say nothing.
LEAST_COMMON = 10


@dataclass(frozen=True)
class MotionProfile:
    """What a plan does to passengers; each float64 (64,)."""

    longitudinal_acceleration: Floats
    lateral_acceleration: Floats
    longitudinal_jerk: Floats
    lateral_jerk: Floats
    yaw_rate: Floats
    yaw_acceleration: Floats

    @property
    def jerk(self) -> Floats:
        """Its size, m/s^3."""
        return np.asarray(np.hypot(self.longitudinal_jerk, self.lateral_jerk))

    @property
    def acceleration(self) -> Floats:
        """Its size, m/s^2."""
        return np.asarray(np.hypot(self.longitudinal_acceleration, self.lateral_acceleration))


def profile_of(trajectory: Trajectory) -> MotionProfile:
    """The profile, from the plan's speeds and headings."""
    acceleration, yaw_rate = slopes(trajectory.speed_mps), slopes(trajectory.yaw_rad)
    lateral = trajectory.speed_mps * yaw_rate
    return MotionProfile(acceleration, lateral, slopes(acceleration), slopes(lateral), yaw_rate, slopes(yaw_rate))


def exceeded(profile: MotionProfile) -> dict[str, float]:
    """The bounds that a plan breaks, each with the value furthest outside."""
    broken = {}
    for quantity, (low, high) in BOUNDS.items():
        values: Floats = getattr(profile, quantity)
        beyond = np.maximum(values - high, low - values)
        if beyond.max() > 0.0:
            broken[quantity] = float(values[int(np.argmax(beyond))])
    return broken


def changes(last: MotionProfile, now: MotionProfile, apart_s: float) -> dict[str, float] | None:
    """Root mean square of what differs between a plan and the one `apart_s` before; None if they share too little."""
    time_s = np.arange(1, len(now.yaw_rate) + 1) * FUTURE_PERIOD_S
    in_last_s = time_s + apart_s
    common = in_last_s <= time_s[-1] + 1e-9
    if not 0.0 < apart_s <= MOST_APART_S or common.sum() < LEAST_COMMON:
        return None
    differences = {}
    for quantity in CHANGE_BOUNDS:
        before = np.interp(in_last_s[common], time_s, getattr(last, quantity))
        differences[quantity] = float(np.sqrt(np.mean((getattr(now, quantity)[common] - before) ** 2)))
    return differences


def slopes(values: Floats) -> Floats:
    """Slope per second at each of N values: of the straight line through those around it, fewer at the ends."""
    return np.asarray(_slope_weights(len(values)) @ values)


@cache
def _slope_weights(count: int) -> Floats:
    """float64 (N, N): row i gives the slope at value i."""
    half = SLOPE_POINTS // 2
    weights = np.zeros((count, count))
    for i in range(count):
        near = np.arange(max(0, i - half), min(count, i + half + 1))
        centred = near - near.mean()
        weights[i, near] = centred / (centred @ centred) / FUTURE_PERIOD_S
    return weights
