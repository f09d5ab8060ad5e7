"""How the ego moves at t0, read from where it has been: a speed and a bend, that is an arc."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import HISTORY_PERIOD_S
from flatrope_planner.domain import EgoHistory
from flatrope_planner.planning.pose import Pose

# Slower than this the ego stands.
STANDING_MPS = 0.25
# Poses that speed and bend are read from: half a second; on a shorter way the bend is noise.
FITTED_POSES = 6
SHORT_WAY_M = 0.25
# Weights of poses 0, 1 ... (oldest first) in the slope, a step, of their best parabola at the last of them.
_END_SLOPE = np.linalg.pinv(np.vander(np.arange(1.0 - FITTED_POSES, 1.0), 3, increasing=True))[1]


@dataclass(frozen=True)
class DrivenArc:
    """Speed along the body (m/s) and curvature of the way (1/m, left positive)."""

    speed_mps: float
    curvature: float = 0.0

    @property
    def stands(self) -> bool:
        """Whether the ego stands."""
        return self.speed_mps < STANDING_MPS


@dataclass(frozen=True)
class EgoMoment:
    """The ego at the time of an observation."""

    t0_ns: int
    # Where it is, in the odometry's frame of that name.
    pose: Pose
    frame_id: str
    motion: DrivenArc


def driven_arc(history: EgoHistory) -> DrivenArc:
    """The motion at t0.

    From poses, not from a twist, whose frame many drivers get wrong: the slope at t0 of the parabola that fits the last
    poses best. Noise of 1 cm in them makes 0.09 m/s of it.
    """
    along_m = history.position_m[-FITTED_POSES:, 0]
    speed = float((_END_SLOPE @ along_m) / HISTORY_PERIOD_S)
    driven_m = float(np.linalg.norm(history.position_m[-1] - history.position_m[-FITTED_POSES]))
    earlier = history.rotation[-FITTED_POSES]
    turned_rad = -float(np.arctan2(earlier[1, 0], earlier[0, 0]))
    return DrivenArc(speed, turned_rad / driven_m if driven_m > SHORT_WAY_M else 0.0)
