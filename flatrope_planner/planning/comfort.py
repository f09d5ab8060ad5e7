"""Comfort bounds that a plan exceeds: reported, never a reason to refuse it."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.planning.driven_arc import DrivenArc

# Slopes are taken over this many points (0.7 s): the difference of two points of a learnt plan is mostly noise.
# nuPlan smooths too, over 0.5 to 1.5 s.
SLOPE_POINTS = 7


@dataclass(frozen=True)
class ComfortBound:
    """What passengers find comfortable."""

    quantity: str
    unit: str
    low: float
    high: float


# nuPlan's and NAVSIM's bounds, drawn from human driving.
LONGITUDINAL = ComfortBound("longitudinal acceleration", "m/s^2", -4.05, 2.40)
LATERAL = ComfortBound("lateral acceleration", "m/s^2", -4.89, 4.89)
JERK = ComfortBound("jerk", "m/s^3", 0.0, 8.37)
LONGITUDINAL_JERK = ComfortBound("longitudinal jerk", "m/s^3", -4.13, 4.13)
YAW_RATE = ComfortBound("yaw rate", "rad/s", -0.95, 0.95)
YAW_ACCELERATION = ComfortBound("yaw acceleration", "rad/s^2", -1.93, 1.93)


def discomforts(trajectory: Trajectory, ego: DrivenArc) -> tuple[str, ...]:
    """The bounds exceeded, each with the furthest value, such as "jerk 9.1 m/s^3"."""
    speed = np.concatenate([[ego.speed_mps], trajectory.speed_mps])
    accel = _slopes(speed)
    yaw_rate = _slopes(np.concatenate([[0.0], trajectory.yaw_rad]))
    lateral = speed * yaw_rate
    along, across = _slopes(accel), _slopes(lateral)
    measured = (
        (LONGITUDINAL, accel),
        (LATERAL, lateral),
        (JERK, np.hypot(along, across)),
        (LONGITUDINAL_JERK, along),
        (YAW_RATE, yaw_rate),
        (YAW_ACCELERATION, _slopes(yaw_rate)),
    )
    found = (_exceeded(bound, values) for bound, values in measured)
    return tuple(complaint for complaint in found if complaint is not None)


def _exceeded(bound: ComfortBound, values: Floats) -> str | None:
    beyond = np.maximum(values - bound.high, bound.low - values)
    worst = int(np.argmax(beyond))
    return f"{bound.quantity} {values[worst]:.2f} {bound.unit}" if beyond[worst] > 0.0 else None


def _slopes(values: Floats) -> Floats:
    """Slope per second at each of N values: of the straight line through the points around it, fewer at the ends."""
    half = SLOPE_POINTS // 2
    offset = np.arange(-half, half + 1.0)
    padded = np.pad(values, half, constant_values=np.nan)
    window = np.lib.stride_tricks.sliding_window_view(padded, SLOPE_POINTS)
    there = ~np.isnan(window)
    count = there.sum(axis=1)
    x = np.where(there, offset, 0.0)
    y = np.where(there, window, 0.0)
    mean_x, mean_y = x.sum(axis=1) / count, y.sum(axis=1) / count
    dx = np.where(there, offset - mean_x[:, None], 0.0)
    return np.asarray(np.sum(dx * (y - mean_y[:, None]), axis=1) / np.sum(dx**2, axis=1) / FUTURE_PERIOD_S)
