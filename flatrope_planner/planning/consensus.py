"""One of several trajectories that were drawn behind one rationale."""

from collections.abc import Sequence

import numpy as np

from flatrope_planner.domain import Trajectory


def most_central(drawn: Sequence[Trajectory]) -> Trajectory:
    """The one that the others lie nearest to, by the mean distance of points of one time; of two alike, the first."""
    ways = np.stack([trajectory.position_m for trajectory in drawn])
    apart = [np.linalg.norm(ways - way, axis=-1).mean() for way in ways]
    return drawn[int(np.argmin(apart))]
