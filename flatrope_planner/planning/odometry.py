"""The ego's past poses, and the pose at any time between them."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats, ns_to_seconds, require_array, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.pose import Pose, rotation_matrix, slerp, turned_about_z
from flatrope_planner.planning.stream import Stream

# Longest stretch between two samples that is bridged by interpolation, and longest stretch past the newest one that is
# bridged by its velocity: 10 Hz odometry may lose one message.
MAX_GAP_S = 0.25
# Faster than any vehicle: a jump between samples that is a new scene, not a motion.
MAX_SPEED_MPS = 100.0
MAX_JUMP_M = 1.0
# Kept: enough for the history of a late camera and for questions about poses while a plan is made.
KEPT_SPAN_S = 10.0
MAX_SAMPLES = 4096


@dataclass(frozen=True)
class OdometrySample:
    """Where the ego frame's origin was, and how it moved."""

    stamp_ns: int
    # float64 (3,), odometry frame, m.
    position_m: Floats
    # float64 (4,), body -> odometry frame; any length but zero.
    quaternion_xyzw: Floats
    # float64 (3,), body frame, m/s.
    linear_velocity_mps: Floats
    # About the body's z, counter-clockwise, rad/s.
    yaw_rate_radps: float = 0.0

    def __post_init__(self) -> None:
        require_array("odometry position", self.position_m, (3,), np.float64)
        require_array("odometry quaternion", self.quaternion_xyzw, (4,), np.float64)
        require_array("odometry velocity", self.linear_velocity_mps, (3,), np.float64)
        numbers = np.concatenate(
            [self.position_m, self.quaternion_xyzw, self.linear_velocity_mps, [self.yaw_rate_radps]]
        )
        if not np.all(np.isfinite(numbers)):
            msg = f"odometry at {self.stamp_ns} ns holds a number that is not finite: {numbers.tolist()}"
            raise InputError(msg)
        if np.linalg.norm(self.quaternion_xyzw) < 1e-3:
            msg = f"odometry at {self.stamp_ns} ns: quaternion {self.quaternion_xyzw.tolist()} is no rotation"
            raise InputError(msg)

    @property
    def pose(self) -> Pose:
        """The pose, its quaternion made a unit one."""
        x, y, z = (float(v) for v in self.position_m)
        return Pose(x, y, z, self.quaternion_xyzw / np.linalg.norm(self.quaternion_xyzw))

    @property
    def speed_mps(self) -> float:
        """Speed along the body."""
        return float(self.linear_velocity_mps[0])

    def moved_on(self, stamp_ns: int) -> "OdometrySample":
        """The sample to expect at a later time if velocity and yaw rate stay."""
        ahead_s = ns_to_seconds(stamp_ns - self.stamp_ns)
        quaternion = turned_about_z(self.pose.quaternion_xyzw, self.yaw_rate_radps * ahead_s)
        # The direction half way through the turn makes the chord of an arc.
        half_way = turned_about_z(self.pose.quaternion_xyzw, self.yaw_rate_radps * ahead_s / 2.0)
        moved = rotation_matrix(half_way) @ self.linear_velocity_mps * ahead_s
        return replace(self, stamp_ns=stamp_ns, position_m=self.position_m + moved, quaternion_xyzw=quaternion)


class OdometryTrack(Stream[OdometrySample]):
    """The odometry of the last seconds as a continuous motion."""

    def __init__(self) -> None:
        """An empty track."""
        super().__init__(KEPT_SPAN_S, MAX_SAMPLES)

    def add(self, sample: OdometrySample) -> None:
        """Take in a sample; what came before a jump that no vehicle can make is forgotten."""
        super().add(sample)
        index = bisect_left(self.stamps_ns, sample.stamp_ns)
        before = self.samples[index - 1] if index else sample
        apart_s = ns_to_seconds(sample.stamp_ns - before.stamp_ns)
        if np.linalg.norm(sample.position_m - before.position_m) > MAX_SPEED_MPS * apart_s + MAX_JUMP_M:
            self.drop_first(index)

    def poses_at(self, times_ns: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Positions (N, 3) and unit quaternions (N, 4) at ascending times (N,), linear and slerp between samples.

        Raises:
            NotReadyError: if samples are missing around one of the times.
        """
        samples = self._covering(int(times_ns[0]), int(times_ns[-1]))
        stamps_ns = np.array([sample.stamp_ns for sample in samples], dtype=np.int64)
        position_m = np.array([sample.position_m for sample in samples])
        quaternions = np.array([sample.pose.quaternion_xyzw for sample in samples])
        after = np.searchsorted(stamps_ns, times_ns)
        before = np.where(stamps_ns[after] == times_ns, after, after - 1)
        gap_ns = stamps_ns[after] - stamps_ns[before]
        if gap_ns.max() > seconds_to_ns(MAX_GAP_S):
            msg = f"odometry has a gap of {ns_to_seconds(int(gap_ns.max())):.2f} s; at most {MAX_GAP_S} s are bridged"
            raise NotReadyError(msg)
        share = (times_ns - stamps_ns[before]) / np.maximum(gap_ns, 1)
        between = position_m[before] + share[:, None] * (position_m[after] - position_m[before])
        return between, slerp(quaternions[before], quaternions[after], share)

    def _covering(self, first_ns: int, last_ns: int) -> list[OdometrySample]:
        """The samples from the last one not after `first_ns` to the first one not before `last_ns`."""
        if not self.samples:
            msg = "waiting for odometry"
            raise NotReadyError(msg)
        start = bisect_right(self.stamps_ns, first_ns) - 1
        if start < 0:
            missing_s = ns_to_seconds(self.stamps_ns[0] - first_ns)
            msg = f"waiting for odometry to reach back far enough: {missing_s:.2f} s are missing"
            raise NotReadyError(msg)
        end = bisect_left(self.stamps_ns, last_ns)
        if end < len(self.samples):
            return self.samples[start : end + 1]
        newest = self.samples[-1]
        late_s = ns_to_seconds(last_ns - newest.stamp_ns)
        if late_s > MAX_GAP_S:
            msg = f"odometry is {late_s:.2f} s behind the images; at most {MAX_GAP_S} s are bridged"
            raise NotReadyError(msg)
        return [*self.samples[start:], newest.moved_on(last_ns)]
