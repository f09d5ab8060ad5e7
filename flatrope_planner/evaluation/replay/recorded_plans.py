"""Plans that a planner published while the bag was recorded: measured as the replay's own are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S, PlannedPoses, errors_by_horizon
from flatrope_planner.evaluation.replay.driven_path import DrivenPath
from flatrope_planner.evaluation.replay.horizon_totals import HorizonTotals, mean
from flatrope_planner.evaluation.replay.messages import nanoseconds, placed
from flatrope_planner.evaluation.replay.rows import rounded
from flatrope_planner.planning.odometry import MAX_POSITION_M, UNIT_LENGTHS
from flatrope_planner.planning.pose import Pose, rotation_matrix


@dataclass(frozen=True)
class _Recorded:
    t0_ns: int
    pose_t0: Pose
    poses: PlannedPoses

    @property
    def end_ns(self) -> int:
        return self.t0_ns + round(float(self.poses.time_s[-1]) * NANOSECONDS_PER_SECOND)


class RecordedPlans:
    """Takes in PlannedTrajectory messages; each is measured once its future was driven."""

    def __init__(self) -> None:
        """None yet."""
        # By when their last point is due, then as they came: one of a time that never comes keeps no other waiting.
        self._open: list[tuple[int, int, _Recorded]] = []
        self._numbers = count()
        self._totals = HorizonTotals()
        # t0 (ns) -> horizon -> ADE (m), of those plans that have it.
        self._ade_m: dict[int, dict[str, float]] = {}
        self.count = 0

    def take(self, message: Any) -> None:
        """Take in one message; an empty trajectory is none.

        Raises:
            InputError: if it holds numbers that no plan has.
        """
        if len(message.points) > 0:
            plan = _recorded(message)
            heappush(self._open, (plan.end_ns, next(self._numbers), plan))

    def measure(self, path: DrivenPath, until_ns: int | None) -> None:
        """Measure what has been driven until a time; None: everything."""
        while self._open and (until_ns is None or self._open[0][0] <= until_ns):
            *_, plan = heappop(self._open)
            driven = path.seen_from(plan.pose_t0, plan.t0_ns, plan.poses.time_s)
            found = errors_by_horizon(plan.poses, driven)
            self._totals.add(
                {name: {"unavailable": e} if isinstance(e, str) else asdict(e) for name, e in found.items()}
            )
            self._ade_m[plan.t0_ns] = {name: e.ade_m for name, e in found.items() if not isinstance(e, str)}
            self.count += 1

    def summary(self, replayed_ade_m: Mapping[int, Mapping[str, float]]) -> dict[str, Any]:
        """Their number and errors, and how those planned for the same t0 in the replay compare.

        Args:
            replayed_ade_m: t0 (ns) -> horizon -> ADE (m) of the replay's plans.
        """
        if not self.count:
            return {"unavailable": "no planner was at work when the bag was recorded"}
        common = sorted(set(self._ade_m) & set(replayed_ade_m))
        same_t0 = {
            "plans": len(common),
            "recorded_ade_m": _means([self._ade_m[t0_ns] for t0_ns in common]),
            "replayed_ade_m": _means([replayed_ade_m[t0_ns] for t0_ns in common]),
        }
        return {"plans": self.count, "errors": rounded(self._totals.summary()), "same_t0": rounded(same_t0)}


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    columns = {horizon: [row[horizon] for row in rows if horizon in row] for horizon in HORIZONS_S}
    return {horizon: mean(column) if column else None for horizon, column in columns.items()}


def _recorded(message: Any) -> _Recorded:
    pose_t0 = placed(message.ego_pose.position, message.ego_pose.orientation)
    poses = [placed(point.pose.position, point.pose.orientation) for point in message.points]
    _require_poses([pose_t0, *poses])
    to_ego = rotation_matrix(pose_t0.quaternion_xyzw)
    offset_m = np.array([pose.position_m for pose in poses]) - pose_t0.position_m
    turned = to_ego.T @ rotation_matrix(np.array([pose.quaternion_xyzw for pose in poses]))
    time_s = np.array([nanoseconds(point.time_from_start) / NANOSECONDS_PER_SECOND for point in message.points])
    if time_s[0] <= 0.0 or np.any(np.diff(time_s) <= 0.0):
        msg = f"a plan of {len(time_s)} points whose times do not rise from its t0 on"
        raise InputError(msg)
    planned = PlannedPoses(time_s, (offset_m @ to_ego)[:, :2], np.arctan2(turned[:, 1, 0], turned[:, 0, 0]))
    return _Recorded(nanoseconds(message.header.stamp), pose_t0, planned)


def _require_poses(poses: Sequence[Pose]) -> None:
    position_m = np.array([pose.position_m for pose in poses])
    # Unlike a root of squares, this does not overflow; comparisons with NaN are false.
    lengths = np.array([math.hypot(*pose.quaternion_xyzw) for pose in poses])
    is_near, is_unit = np.abs(position_m) <= MAX_POSITION_M, np.abs(lengths - 1.0) <= UNIT_LENGTHS[1] - 1.0
    if not (np.all(is_near) and np.all(is_unit)):
        msg = f"a plan with a pose beyond {MAX_POSITION_M:g} m, or with a quaternion that is no unit one"
        raise InputError(msg)
