"""In which frame odometry's twist is, and whether it fits the motion at all.

nav_msgs/Odometry wants it in the body's frame. Many publishers send it in the odometry frame, some with another sign,
in degrees, or not at all. The poses tell: over a stretch of time their difference is the mean of the right twist.
"""

from collections import deque
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from flatrope_planner.domain import Floats, ns_to_seconds, seconds_to_ns
from flatrope_planner.planning.odometry import MAX_SPEED_MPS, OdometrySample
from flatrope_planner.planning.pose import rotation_matrix

# Long enough for poses that are exact to some centimetres; past the upper bound there was a gap.
STRETCH_S, MAX_STRETCH_S = 0.2, 1.0
MIN_SPEED_MPS = 2.0
# Poses and twist of good odometry agree within this; a twist is wrong from twice as much on.
TOLERANCE_MPS, TOLERANCE_SHARE = 0.5, 0.1
MIN_YAW_RATE_RADPS = 0.1
TOLERANCE_RADPS, TOLERANCE_RATE_SHARE = 0.05, 0.2
# Of so many stretches of late, this share has to say the same.
REMEMBERED, NEEDED, SHARE = 10, 5, 0.8

T = TypeVar("T")


class TwistFit(Enum):
    """What the motion says about a twist's velocity."""

    CHILD = "child"
    PARENT = "parent"
    NEITHER = "neither"


class MeasuredMotion(NamedTuple):
    """How the poses moved over the last stretch."""

    # float64 (3,), odometry frame and body frame at mid-stretch, m/s.
    parent_mps: Floats
    body_mps: Floats
    yaw_rate_radps: float


class TwistJudge:
    """Compares the twist with the difference of poses as samples come in."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._fit: _Votes[TwistFit] = _Votes()
        self._yaw_rate: _Votes[bool] = _Votes()
        self._recent: deque[OdometrySample] = deque()
        # From when on the next stretch ends that votes: stretches do not overlap by much.
        self._next_ns = 0
        self.motion: MeasuredMotion | None = None

    @property
    def fit(self) -> TwistFit | None:
        """In which frame the velocity is; None until the vehicle has moved in a direction that tells."""
        return self._fit.verdict

    @property
    def yaw_rate_fits(self) -> bool | None:
        """Whether the yaw rate is that of the poses; None until the vehicle has turned."""
        return self._yaw_rate.verdict

    def take(self, sample: OdometrySample) -> None:
        """Go on to this sample."""
        if self._recent and sample.frames != self._recent[-1].frames:
            self._fit, self._yaw_rate = _Votes(), _Votes()
            self._begin()
        ahead_s = _apart_s(self._recent[-1], sample) if self._recent else MAX_STRETCH_S
        if -MAX_STRETCH_S <= ahead_s <= 0.0:
            # A late or doubled one tells nothing new.
            return
        if abs(ahead_s) > MAX_STRETCH_S:
            self._begin()
        self._recent.append(sample)
        while len(self._recent) > 2 and _apart_s(self._recent[1], sample) >= STRETCH_S:
            self._recent.popleft()
        if _apart_s(self._recent[0], sample) < STRETCH_S:
            return
        self.motion = _motion(self._recent[0], sample)
        if np.linalg.norm(self.motion.parent_mps) > MAX_SPEED_MPS:
            self._begin()
        elif sample.stamp_ns >= self._next_ns:
            self._next_ns = sample.stamp_ns + seconds_to_ns(STRETCH_S)
            self._fit.take(_fit(self._recent[0], sample, self.motion))
            self._yaw_rate.take(_yaw_rate_fits(self._recent[0], sample, self.motion))

    def _begin(self) -> None:
        """Compare nothing with what came before."""
        self._recent.clear()
        self._next_ns = 0
        self.motion = None


class _Votes(Generic[T]):
    """What most of the last stretches say; the verdict stays until others outvote it."""

    def __init__(self) -> None:
        self._votes: deque[T] = deque(maxlen=REMEMBERED)
        self.verdict: T | None = None

    def take(self, vote: T | None) -> None:
        if vote is None:
            return
        self._votes.append(vote)
        if len(self._votes) >= NEEDED and self._votes.count(vote) >= SHARE * len(self._votes):
            self.verdict = vote


def _apart_s(first: OdometrySample, last: OdometrySample) -> float:
    return ns_to_seconds(last.stamp_ns - first.stamp_ns)


def _motion(first: OdometrySample, last: OdometrySample) -> MeasuredMotion:
    apart_s = _apart_s(first, last)
    parent_mps = (last.position_m - first.position_m) / apart_s
    q_first, q_last = first.pose.quaternion_xyzw, last.pose.quaternion_xyzw
    between = q_first + (q_last if q_first @ q_last >= 0.0 else -q_last)
    turned_rad = np.arctan2(
        np.sin(last.pose.yaw_rad - first.pose.yaw_rad), np.cos(last.pose.yaw_rad - first.pose.yaw_rad)
    )
    body_mps = rotation_matrix(between / np.linalg.norm(between)).T @ parent_mps
    return MeasuredMotion(parent_mps, body_mps, float(turned_rad / apart_s))


def _fit(first: OdometrySample, last: OdometrySample, motion: MeasuredMotion) -> TwistFit | None:
    """What this stretch says; None if it does not tell. Heights are left out: flat odometry is common."""
    speed_mps = float(np.linalg.norm(motion.parent_mps))
    if speed_mps < MIN_SPEED_MPS:
        return None
    as_parent = (first.linear_velocity_mps + last.linear_velocity_mps) / 2.0
    as_child = (
        sum((rotation_matrix(s.pose.quaternion_xyzw) @ s.linear_velocity_mps for s in (first, last)), np.zeros(3)) / 2.0
    )
    child, parent = (float(np.linalg.norm((mean - motion.parent_mps)[:2])) for mean in (as_child, as_parent))
    tolerance = TOLERANCE_MPS + TOLERANCE_SHARE * speed_mps
    if min(child, parent) > 2.0 * tolerance:
        return TwistFit.NEITHER
    if child <= tolerance and parent > 2.0 * tolerance:
        return TwistFit.CHILD
    if parent <= tolerance and child > 2.0 * tolerance:
        return TwistFit.PARENT
    return None


def _yaw_rate_fits(first: OdometrySample, last: OdometrySample, motion: MeasuredMotion) -> bool | None:
    """What this stretch says; None if it does not tell."""
    said = (first.yaw_rate_radps + last.yaw_rate_radps) / 2.0
    if max(abs(said), abs(motion.yaw_rate_radps)) < MIN_YAW_RATE_RADPS:
        return None
    off, tolerance = (
        abs(said - motion.yaw_rate_radps),
        TOLERANCE_RADPS + TOLERANCE_RATE_SHARE * abs(motion.yaw_rate_radps),
    )
    if off <= tolerance:
        return True
    return False if off > 2.0 * tolerance else None
