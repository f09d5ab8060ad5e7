"""A drive straight along x, and plans for it as a witness would have seen them."""

from dataclasses import replace

import numpy as np

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.evaluation.drive import STEP_S, Drive
from flatrope_planner.evaluation.witness_events import PlanSeen

SPEED_MPS = 5.0
LAP_STEPS = 40


def straight_drive() -> Drive:
    """Laps of 2 s at 5 m/s; pictures of 16x8 whose value is their number."""
    time_s = np.arange(LAP_STEPS + 1) * STEP_S
    still = np.zeros_like(time_s)
    motion = np.stack([SPEED_MPS * time_s, still, still, still + SPEED_MPS, still], axis=1)
    numbers = np.arange(LAP_STEPS // 2, dtype=np.uint8)
    return Drive(motion, np.broadcast_to(numbers[:, None, None, None, None], (LAP_STEPS // 2, 2, 8, 16, 3)))


def good_plan(t0_s: float, age_s: float = 0.2, wall_s: float = 0.0) -> PlanSeen:
    """On along x from where the ego is, seen at a moment of the steady clock."""
    x_m = SPEED_MPS * t0_s
    points = tuple((0.1 * i, x_m + SPEED_MPS * 0.1 * i, 0.0, 0.0, SPEED_MPS) for i in range(1, 65))
    return PlanSeen(wall_s, seconds_to_ns(t0_s + age_s), seconds_to_ns(t0_s), 0, "", (x_m, 0.0, 0.0), points)


def with_point(plan: PlanSeen, index: int, **changed: float) -> PlanSeen:
    """The plan with one point changed."""
    names = ("time_s", "x_m", "y_m", "yaw_rad", "speed_mps")
    points = list(plan.points)
    t, x, y, yaw, v = (changed.get(name, value) for name, value in zip(names, points[index], strict=True))
    points[index] = (t, x, y, yaw, v)
    return replace(plan, points=tuple(points))
