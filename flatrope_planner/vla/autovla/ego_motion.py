"""How fast the ego moves at t0, for the words of a prompt: AutoVLA's data sets say it, here the history does."""

from dataclasses import dataclass

import numpy as np
import torch

from flatrope_planner.dimensions import HISTORY_PERIOD_S
from flatrope_planner.domain import EgoHistory
from flatrope_planner.vla.unicycle import estimate_speed

# Poses back from t0 to the one that changes are measured against, half a second.
SPAN_POSES = 5
SPAN_S = SPAN_POSES * HISTORY_PERIOD_S


@dataclass(frozen=True)
class EgoMotion:
    """Speed along the heading at t0, negative in reverse (m/s), and size of the acceleration in the plane (m/s^2)."""

    speed_mps: float
    acceleration_mps2: float


def ego_motion(history: EgoHistory) -> EgoMotion:
    """Speeds by a smooth fit; the acceleration along the way and across it is that of the last half second."""
    position, rotation = (torch.from_numpy(part) for part in (history.position_m, history.rotation))
    speed = float(estimate_speed(position, rotation, HISTORY_PERIOD_S))
    before = float(estimate_speed(position[:-SPAN_POSES], rotation[:-SPAN_POSES], HISTORY_PERIOD_S))
    turn = history.rotation[-1 - SPAN_POSES].T @ history.rotation[-1]
    yaw_rate = np.arctan2(turn[1, 0], turn[0, 0]) / SPAN_S
    return EgoMotion(speed, float(np.hypot((speed - before) / SPAN_S, speed * yaw_rate)))
