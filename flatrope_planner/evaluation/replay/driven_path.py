"""Where the ego really went: odometry as a path that can be asked at any time, and that says where it is not known."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.dimensions import FUTURE_SPAN_S
from flatrope_planner.domain import Floats, seconds_to_ns
from flatrope_planner.planning.odometry import MAX_GAP_S, MAX_JUMP_M, MAX_SPEED_MPS, OdometrySample
from flatrope_planner.planning.pose import Pose, rotation_matrix, slerp
from flatrope_planner.planning.stream import Stream

# Kept: the future of a plan whose odometry comes late.
KEPT_S = 4.0 * FUTURE_SPAN_S
MOST_SAMPLES = 100_000


@dataclass(frozen=True)
class DrivenPoses:
    """The path at several times, in the ego frame at t0."""

    # float64 (N, 2), m, and (N,), rad; anything where not covered.
    position_m: Floats
    yaw_rad: Floats
    # bool (N,): whether odometry tells.
    covered: NDArray[np.bool_]


class DrivenPath:
    """The odometry of one drive; a jump that no vehicle can make, and other frames, end what is known from before."""

    def __init__(self) -> None:
        """Nowhere yet."""
        self._stream = Stream[OdometrySample](KEPT_S, MOST_SAMPLES)

    @property
    def newest_ns(self) -> int | None:
        """The latest time that is known."""
        return self._stream.stamps_ns[-1] if self._stream.stamps_ns else None

    def add(self, sample: OdometrySample) -> None:
        """Take in a sample; of two with the same stamp the first one counts."""
        self._stream.add(sample)

    def seen_from(self, pose_t0: Pose, t0_ns: int, time_from_start_s: Floats) -> DrivenPoses:
        """The path at ascending times (N,) after t0, from the ego's place at t0."""
        times_ns = t0_ns + np.round(time_from_start_s * 1e9).astype(np.int64)
        first = bisect_right(self._stream.stamps_ns, t0_ns) - 1
        last = bisect_left(self._stream.stamps_ns, int(times_ns[-1])) + 1
        samples = self._stream.samples[max(first, 0) : last]
        if len(samples) < 2:
            nowhere = np.zeros(len(times_ns))
            return DrivenPoses(np.zeros((len(times_ns), 2)), nowhere, np.zeros(len(times_ns), np.bool_))
        return _interpolated(samples, times_ns, pose_t0)


def _interpolated(samples: list[OdometrySample], times_ns: NDArray[np.int64], pose_t0: Pose) -> DrivenPoses:
    """Linear and slerp between samples."""
    stamps_ns = np.array([sample.stamp_ns for sample in samples], dtype=np.int64)
    position_m = np.array([sample.position_m for sample in samples])
    quaternions = np.array([sample.pose.quaternion_xyzw for sample in samples])
    after = np.clip(np.searchsorted(stamps_ns, times_ns), 1, len(samples) - 1)
    before = after - 1
    gap_ns = stamps_ns[after] - stamps_ns[before]
    share = np.clip((times_ns - stamps_ns[before]) / gap_ns, 0.0, 1.0)
    between_m = position_m[before] + share[:, None] * (position_m[after] - position_m[before])
    to_ego = rotation_matrix(pose_t0.quaternion_xyzw)
    turned = to_ego.T @ rotation_matrix(slerp(quaternions[before], quaternions[after], share))
    known = (gap_ns <= seconds_to_ns(MAX_GAP_S)) | (times_ns == stamps_ns[before]) | (times_ns == stamps_ns[after])
    within = (times_ns >= stamps_ns[0]) & (times_ns <= _end_ns(samples, stamps_ns, position_m))
    return DrivenPoses(
        ((between_m - pose_t0.position_m) @ to_ego)[:, :2],
        np.arctan2(turned[:, 1, 0], turned[:, 0, 0]),
        known & within,
    )


def _end_ns(samples: Sequence[OdometrySample], stamps_ns: NDArray[np.int64], position_m: Floats) -> int:
    """The last sample before the first jump, or before the first one in other frames."""
    apart_s = np.diff(stamps_ns) * 1e-9
    moved_m = np.linalg.norm(np.diff(position_m, axis=0), axis=1)
    other_frames = np.array([now.frames != last.frames for last, now in pairwise(samples)])
    breaks = np.flatnonzero(other_frames | (moved_m > MAX_SPEED_MPS * apart_s + MAX_JUMP_M))
    return int(stamps_ns[breaks[0]] if len(breaks) else stamps_ns[-1])
