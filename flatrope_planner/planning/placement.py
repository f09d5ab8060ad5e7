"""A trajectory in the world: when and where it was made."""

from dataclasses import dataclass

from flatrope_planner.domain import Trajectory
from flatrope_planner.planning.pose import Pose


@dataclass(frozen=True)
class PlacedTrajectory:
    """A trajectory together with the time and place it was made for."""

    trajectory: Trajectory
    t0_ns: int
    # Frame the pose is in: the odometry's.
    frame_id: str
    # Ego at t0.
    pose_t0: Pose
