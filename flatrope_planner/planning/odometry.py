"""The ego's past poses, and the pose at any time between them."""

import math
from bisect import bisect_left
from collections.abc import Sequence
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
# What a pose may be off the place to which velocity or the step before leads: noise, stamps that come late, a velocity
# that is not quite right, and brakes or throttle. More is a correction of the localisation, or another vehicle.
OFF_WAY_M, OFF_WAY_S, OFF_WAY_SHARE, OFF_WAY_MPS2 = 0.3, 0.03, 0.2, 10.0
# Kept: enough for the history of a late camera and for questions about poses while a plan is made; at 1 kHz the number
# is the narrower bound, and its 4 s still are.
KEPT_SPAN_S = 10.0
MAX_SAMPLES = 4096
# Further from the origin than any map reaches, UTM's northings included.
MAX_POSITION_M = 1e7
# Beyond any vehicle in rad/s and in deg/s, which some simulators send in their place.
MAX_YAW_RATE_RADPS = 100.0
# Rounding in a message's numbers, or in another's arithmetic, stays far within.
UNIT_LENGTHS = (0.9, 1.1)


@dataclass(frozen=True)
class OdometrySample:
    """Where the ego frame's origin was, and how it moved."""

    stamp_ns: int
    # float64 (3,), odometry frame, m.
    position_m: Floats
    # float64 (4,), body -> odometry frame; of about unit length.
    quaternion_xyzw: Floats
    # float64 (3,), body frame, m/s.
    linear_velocity_mps: Floats
    # About the body's z, counter-clockwise, rad/s.
    yaw_rate_radps: float = 0.0
    # The odometry frame and the body's; samples of other frames are of another motion.
    frame_id: str = ""
    child_frame_id: str = ""

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
        self._require_length("quaternion", self.quaternion_xyzw, UNIT_LENGTHS)
        self._require_length("position", self.position_m, (0.0, MAX_POSITION_M))
        self._require_length("velocity", self.linear_velocity_mps, (0.0, MAX_SPEED_MPS))
        self._require_length("yaw rate", np.array([self.yaw_rate_radps]), (0.0, MAX_YAW_RATE_RADPS))

    def _require_length(self, name: str, vector: Floats, limits: tuple[float, float]) -> None:
        # Unlike a root of squares, this neither overflows nor loses the smallest numbers.
        length = math.hypot(*vector)
        if not limits[0] <= length <= limits[1]:
            msg = (
                f"odometry at {self.stamp_ns} ns: {name} {vector.tolist()} has length {length:g}, "
                f"expected {limits[0]:g} to {limits[1]:g}"
            )
            raise InputError(msg)

    @property
    def frames(self) -> tuple[str, str]:
        """Odometry frame and body frame."""
        return self.frame_id, self.child_frame_id

    @property
    def pose(self) -> Pose:
        """The pose, its quaternion made a unit one."""
        x, y, z = self.position_m.tolist()
        return Pose(x, y, z, self.quaternion_xyzw / math.hypot(*self.quaternion_xyzw))

    @property
    def speed_mps(self) -> float:
        """Speed along the body."""
        return float(self.linear_velocity_mps[0])

    def pose_ahead(self, stamp_ns: int) -> Pose:
        """The pose to expect at a later time if velocity and yaw rate stay."""
        ahead_s = ns_to_seconds(stamp_ns - self.stamp_ns)
        quaternion = turned_about_z(self.pose.quaternion_xyzw, self.yaw_rate_radps * ahead_s)
        # The direction half way through the turn makes the chord of an arc.
        half_way = turned_about_z(self.pose.quaternion_xyzw, self.yaw_rate_radps * ahead_s / 2.0)
        moved = rotation_matrix(half_way) @ self.linear_velocity_mps * ahead_s
        x, y, z = (self.position_m + moved).tolist()
        return Pose(x, y, z, quaternion)

    def at_rear_axle(self, offset_m: float) -> "OdometrySample":
        """The motion of the rear axle's middle, where this is that of a point so far ahead of it (m).

        Raises:
            InputError: if the axle is out of reach where the point was not.
        """
        if offset_m == 0.0:
            return self
        behind_m = np.array([-offset_m, 0.0, 0.0])
        # The cross product of the turn about z and the way from point to axle.
        sideways_mps = np.array([0.0, -offset_m * self.yaw_rate_radps, 0.0])
        return replace(
            self,
            position_m=self.position_m + rotation_matrix(self.pose.quaternion_xyzw) @ behind_m,
            linear_velocity_mps=self.linear_velocity_mps + sideways_mps,
        )


class OdometryTrack(Stream[OdometrySample]):
    """The odometry of the last seconds as a continuous motion."""

    def __init__(self) -> None:
        """An empty track."""
        super().__init__(KEPT_SPAN_S, MAX_SAMPLES)
        # Why it reaches back no further, in words; empty where nothing was forgotten.
        self._began = ""
        # How often the motion went on elsewhere.
        self.breaks = 0

    def add(self, sample: OdometrySample) -> None:
        """Take in a sample; what came before a jump that no vehicle can make, or in other frames, is forgotten."""
        if not self.samples:
            self._began = ""
        elif sample.frames != self.samples[-1].frames:
            if sample.stamp_ns <= self.stamps_ns[-1]:
                # A late one of the localisation that was left.
                return
            (was_in, was), (now_in, now) = self.samples[-1].frames, sample.frames
            self._break_off(len(self.samples), f"it was of {was!r} in {was_in!r} and is of {now!r} in {now_in!r}")
        super().add(sample)
        index = bisect_left(self.stamps_ns, sample.stamp_ns)
        jump_m = _jump_m(self.samples[max(index - 2, 0) : index + 1])
        if jump_m > 0.0:
            self._break_off(index, f"its pose jumped by {jump_m:.2f} m")

    def _break_off(self, count: int, why: str) -> None:
        self.drop_first(count)
        self._began = f", as {why}"
        self.breaks += 1

    def poses_at(self, times_ns: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Positions (N, 3) and unit quaternions (N, 4) at ascending times (N,), linear and slerp between samples.

        Raises:
            NotReadyError: if samples are missing around one of the times.
        """
        stamps_ns = self._covering(int(times_ns[0]), int(times_ns[-1]))
        after = np.searchsorted(stamps_ns, times_ns)
        before = np.where(stamps_ns[after] == times_ns, after, after - 1)
        gap_ns = stamps_ns[after] - stamps_ns[before]
        if gap_ns.max() > seconds_to_ns(MAX_GAP_S):
            msg = f"odometry has a gap of {ns_to_seconds(int(gap_ns.max())):.2f} s; at most {MAX_GAP_S} s are bridged"
            raise NotReadyError(msg)
        share = (times_ns - stamps_ns[before]) / np.maximum(gap_ns, 1)
        first_m, first = self._poses(before, stamps_ns)
        last_m, last = self._poses(after, stamps_ns)
        return first_m + share[:, None] * (last_m - first_m), slerp(first, last, share)

    def _covering(self, first_ns: int, last_ns: int) -> NDArray[np.int64]:
        """(M,) stamps of all samples, and `last_ns` behind them if it has to be expected.

        Raises:
            NotReadyError: if the samples do not reach from `first_ns` to near `last_ns`.
        """
        if not self.samples:
            msg = "waiting for odometry"
            raise NotReadyError(msg)
        if self.stamps_ns[0] > first_ns:
            missing_s = ns_to_seconds(self.stamps_ns[0] - first_ns)
            msg = f"waiting for odometry to reach back far enough: {missing_s:.2f} s are missing{self._began}"
            raise NotReadyError(msg)
        late_s = ns_to_seconds(last_ns - self.stamps_ns[-1])
        if late_s > MAX_GAP_S:
            msg = f"odometry is {late_s:.2f} s behind the images; at most {MAX_GAP_S} s are bridged"
            raise NotReadyError(msg)
        return np.array(self.stamps_ns + [last_ns] * (late_s > 0.0), dtype=np.int64)

    def _poses(self, indices: NDArray[np.int64], stamps_ns: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Positions (N, 3) and unit quaternions (N, 4) of samples (N,), and of the one expected behind the last."""
        known = [
            self.samples[i].pose if i < len(self.samples) else self.samples[-1].pose_ahead(int(stamps_ns[i]))
            for i in indices
        ]
        return np.array([pose.position_m for pose in known]), np.array([pose.quaternion_xyzw for pose in known])


def _jump_m(samples: Sequence[OdometrySample]) -> float:
    """How far the last of up to three samples is from where a vehicle can have got since the one before; 0 for not."""
    if len(samples) < 2:
        return 0.0
    before, after = samples[-2:]
    apart_s = ns_to_seconds(after.stamp_ns - before.stamp_ns)
    moved_m = float(np.linalg.norm(after.position_m - before.position_m))
    if moved_m > MAX_SPEED_MPS * apart_s + MAX_JUMP_M:
        return moved_m
    if len(samples) < 3:
        # Velocity alone would not do: many publishers leave it out, or send it in another frame than they should.
        return 0.0
    step_s = ns_to_seconds(before.stamp_ns - samples[0].stamp_ns)
    carried_on = before.position_m + (before.position_m - samples[0].position_m) * apart_s / step_s
    # Heights are left out: they are rarely as good.
    ways_m = [(place - before.position_m)[:2] for place in (before.pose_ahead(after.stamp_ns).position_m, carried_on)]
    gone_m = (after.position_m - before.position_m)[:2]
    off_m, way_m = min((float(np.linalg.norm(gone_m - way)), float(np.linalg.norm(way))) for way in ways_m)
    way_m = min(way_m, MAX_SPEED_MPS * apart_s)
    late_m = OFF_WAY_S * way_m / apart_s
    return off_m if off_m > OFF_WAY_M + late_m + OFF_WAY_SHARE * way_m + OFF_WAY_MPS2 * apart_s**2 else 0.0
