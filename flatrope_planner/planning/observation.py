"""Collects images and odometry as they come and cuts an Observation out of them, aligned by time stamp.

Not thread-safe: whoever shares a buffer between threads holds a lock around it.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from flatrope_planner.dimensions import HISTORY_PERIOD_S, HISTORY_POSES
from flatrope_planner.domain import CameraFrame, EgoHistory, Observation, ObservationSpec, ns_to_seconds, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.odometry import OdometrySample, OdometryTrack
from flatrope_planner.planning.pose import Pose, rotation_matrix
from flatrope_planner.planning.stream import Stamped, Stream

__all__ = ["NotReadyError", "ObservationBuffer", "ObservationSpec", "OdometrySample"]

# Images kept beyond the span of an observation, for cameras that run apart.
IMAGE_SLACK_S = 1.0
MAX_FRAMES_PER_CAMERA = 64
# What the input with the ego's poses is called in words and statuses.
ODOMETRY = "odometry"

T = TypeVar("T", bound=Stamped)


@dataclass(frozen=True)
class CameraLag:
    """How far the newest stamps of two cameras are apart."""

    last: str
    first: str
    behind_s: float

    def __str__(self) -> str:
        return f"{camera_input(self.last)} is {self.behind_s:.2f} s behind {camera_input(self.first)}"


def camera_input(camera: str) -> str:
    """What the input with this camera's images is called in words and statuses."""
    return f"camera {camera}"


class ObservationBuffer:
    """The latest of every input, bounded in memory."""

    def __init__(self, spec: ObservationSpec) -> None:
        """An empty buffer for observations as `spec` wants them."""
        self.spec = spec
        self._command: str | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all images and poses; the command stays."""
        span_s = self.spec.frames_per_camera * self.spec.frame_period_s + IMAGE_SLACK_S
        self._images: dict[str, Stream[CameraFrame]] = {
            camera: Stream(span_s, MAX_FRAMES_PER_CAMERA) for camera in self.spec.cameras
        }
        self._odometry = OdometryTrack()

    def forget(self, camera: str) -> None:
        """Forget the images of one camera."""
        self._images[camera].drop_first(len(self._images[camera].samples))

    def add_image(self, camera: str, frame: CameraFrame) -> bool:
        """Take in a picture; whether it shows that its source began anew, as `Stream.take` tells.

        Raises:
            InputError: if the camera is not one of the spec's, or the stamp is of no use.
        """
        if camera not in self._images:
            msg = f"camera {camera!r} is not one the planner uses: {', '.join(self.spec.cameras)}"
            raise InputError(msg)
        return self._take(self._images[camera], frame)

    def add_odometry(self, sample: OdometrySample) -> bool:
        """Take in a pose; whether it shows that its source began anew.

        Raises:
            InputError: if the stamp is of no use.
        """
        return self._take(self._odometry, sample)

    def _take(self, stream: Stream[T], sample: T) -> bool:
        before_ns = stream.stamps_ns[-1] if stream.stamps_ns else sample.stamp_ns
        if not stream.take(sample):
            return False
        # Sources begin anew one after the other: those whose newest sample is of the time before still have to.
        others: list[Stream[CameraFrame] | OdometryTrack] = [*self._images.values(), self._odometry]
        for other in others:
            newest_ns = other.stamps_ns[-1] if other.stamps_ns else sample.stamp_ns
            if abs(newest_ns - before_ns) < abs(newest_ns - sample.stamp_ns):
                other.begin_anew()
        return True

    @property
    def odometry_breaks(self) -> int:
        """How often the odometry has gone on at a place, or in a frame, that no motion leads to."""
        return self._odometry.breaks

    def set_command(self, command: str | None) -> None:
        """Set the route hint of the observations to come."""
        self._command = command

    def newest_t0_ns(self) -> int | None:
        """The newest time that every camera has reached, or None while one of them has sent nothing."""
        newest = [stream.stamps_ns[-1] for stream in self._images.values() if stream.stamps_ns]
        return min(newest) if len(newest) == len(self._images) else None

    def newest_stamps_ns(self) -> dict[str, int]:
        """Input -> stamp of its newest sample; inputs that have sent nothing are left out."""
        streams: dict[str, Stream[CameraFrame] | OdometryTrack] = {
            camera_input(camera): stream for camera, stream in self._images.items()
        }
        streams[ODOMETRY] = self._odometry
        return {name: stream.stamps_ns[-1] for name, stream in streams.items() if stream.stamps_ns}

    def latest_odometry(self) -> OdometrySample | None:
        """The odometry sample with the newest stamp."""
        return self._odometry.samples[-1] if self._odometry.samples else None

    def pose_at(self, t_ns: int) -> Pose:
        """The pose at a time, interpolated.

        Raises:
            NotReadyError: if odometry does not cover that time.
        """
        position_m, quaternions = self._odometry.poses_at(np.array([t_ns], dtype=np.int64))
        x, y, z = (float(v) for v in position_m[0])
        return Pose(x, y, z, quaternions[0])

    def lag(self) -> "CameraLag | None":
        """The camera that t0 waits for and how far it is behind the foremost one; None while one has sent nothing."""
        newest_ns = {camera: stream.stamps_ns[-1] for camera, stream in self._images.items() if stream.stamps_ns}
        if len(newest_ns) < len(self._images):
            return None
        last, first = min(newest_ns, key=newest_ns.__getitem__), max(newest_ns, key=newest_ns.__getitem__)
        return CameraLag(last, first, ns_to_seconds(newest_ns[first] - newest_ns[last]))

    def observe(self) -> Observation:
        """The observation at the newest t0.

        Raises:
            NotReadyError: saying what is missing.
        """
        t0_ns = self.newest_t0_ns()
        silent = [f"images of camera {camera}" for camera, stream in self._images.items() if not stream.samples]
        silent += [] if self._odometry.samples else ["odometry"]
        if silent or t0_ns is None:
            msg = f"waiting for {', '.join(silent)}"
            raise NotReadyError(msg)
        if (lag := self.lag()) is not None and lag.behind_s > IMAGE_SLACK_S:
            msg = f"{lag}; at most {IMAGE_SLACK_S:.1f} s are bridged"
            raise NotReadyError(msg)
        frames = {camera: self._frames_at(camera, t0_ns) for camera in self.spec.cameras}
        return Observation(t0_ns, frames, self._history_at(t0_ns), self._command)

    def _frames_at(self, camera: str, t0_ns: int) -> tuple[CameraFrame, ...]:
        period_s = self.spec.frame_period_s
        frames = []
        for back in reversed(range(self.spec.frames_per_camera)):
            wanted_ns = t0_ns - seconds_to_ns(back * period_s)
            frame = self._images[camera].nearest(wanted_ns)
            if frame is None or abs(frame.stamp_ns - wanted_ns) > seconds_to_ns(period_s / 2.0):
                msg = f"waiting for an image of camera {camera} from {back * period_s:.2f} s before t0"
                raise NotReadyError(msg)
            frames.append(frame)
        return tuple(frames)

    def _history_at(self, t0_ns: int) -> EgoHistory:
        steps_back = np.arange(HISTORY_POSES - 1, -1, -1, dtype=np.int64)
        position_m, quaternions = self._odometry.poses_at(t0_ns - steps_back * seconds_to_ns(HISTORY_PERIOD_S))
        rotation = rotation_matrix(quaternions)
        # (16, 3) rows times R0: R0^T (p - p0) of each.
        return EgoHistory((position_m - position_m[-1]) @ rotation[-1], rotation[-1].T @ rotation)
