"""What is drawn of a plan and of the drive after it: as far as both are known, and where the measured part ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S


@dataclass(frozen=True)
class ComparedPath:
    """A path on the ground in the ego frame at t0, from the ego on."""

    # float64 (N, 2), m.
    points_m: Floats
    # Index of the point in which the measured part ends.
    end: int

    @property
    def measured_m(self) -> Floats:
        """What errors are measured of, (end + 1, 2)."""
        return self.points_m[: self.end + 1]

    @property
    def beyond_m(self) -> Floats:
        """What follows, from the same point on."""
        return self.points_m[self.end :]


def compared_paths(row: Mapping[str, Any], horizon: str) -> tuple[ComparedPath, ComparedPath]:
    """Planned and driven path of a row of plans.jsonl or of a moment, of equal length, with the end of a horizon."""
    known = known_points(row)
    planned_m = np.array(row["position_m"], dtype=np.float64)[:known, :2].reshape(-1, 2)
    driven_m = np.array(row["driven_m"][:known], dtype=np.float64).reshape(-1, 2)
    end = min(known, round(HORIZONS_S[horizon] / FUTURE_PERIOD_S))
    start_m = np.zeros((1, 2))
    return ComparedPath(np.vstack([start_m, planned_m]), end), ComparedPath(np.vstack([start_m, driven_m]), end)


def known_points(row: Mapping[str, Any]) -> int:
    """How many of the plan's points the odometry reaches without a gap or a jump."""
    driven_m = row["driven_m"]
    return next((index for index, point in enumerate(driven_m) if point is None), len(driven_m))
