"""Extended comfort: how much a plan differs from the one before it, where both speak of the same time (NAVSIM)."""

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.planning.comfort import MotionProfile

# Quantity -> greatest root mean square of its change that is comfortable (m/s^2, m/s^3, rad/s, rad/s^2).
CHANGE_BOUNDS = {"acceleration": 0.7, "jerk": 0.5, "yaw_rate": 0.1, "yaw_acceleration": 0.1}
# Plans further apart do not follow each other.
MOST_APART_S = 2.0
# Fewer common points say nothing.
LEAST_COMMON = 10


def changes(last: MotionProfile, now: MotionProfile, apart_s: float) -> dict[str, float] | None:
    """Root mean square of what differs between a plan and the one `apart_s` before; None if they share too little."""
    time_s = np.arange(len(now.yaw_rate)) * FUTURE_PERIOD_S
    in_last_s = time_s + apart_s
    common = in_last_s <= time_s[-1] + 1e-9
    if not 0.0 < apart_s <= MOST_APART_S or common.sum() < LEAST_COMMON:
        return None
    differences = {}
    for quantity in CHANGE_BOUNDS:
        before = np.interp(in_last_s[common], time_s, getattr(last, quantity))
        differences[quantity] = float(np.sqrt(np.mean((getattr(now, quantity)[common] - before) ** 2)))
    return differences
