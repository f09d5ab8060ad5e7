"""Collects images and odometry as they come and cuts an Observation out of them, aligned by time stamp.

Not thread-safe: whoever shares a buffer between threads holds a lock around it.
"""

import numpy as np

from flatrope_planner.dimensions import HISTORY_PERIOD_S, HISTORY_POSES
from flatrope_planner.domain import CameraFrame, EgoHistory, Observation, ObservationSpec, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.odometry import OdometrySample, OdometryTrack
from flatrope_planner.planning.pose import Pose, rotation_matrix
from flatrope_planner.planning.stream import Stream

__all__ = ["NotReadyError", "ObservationBuffer", "ObservationSpec", "OdometrySample"]

# Images kept beyond the span of an observation, for cameras that run apart.
IMAGE_SLACK_S = 1.0
MAX_FRAMES_PER_CAMERA = 64


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

    def add_image(self, camera: str, frame: CameraFrame) -> None:
        """Take in a picture.

        Raises:
            InputError: if the camera is not one of the spec's.
        """
        if camera not in self._images:
            msg = f"camera {camera!r} is not one the planner uses: {', '.join(self.spec.cameras)}"
            raise InputError(msg)
        if self._images[camera].began_anew(frame.stamp_ns):
            self.clear()
        self._images[camera].add(frame)

    def add_odometry(self, sample: OdometrySample) -> None:
        """Take in a pose."""
        if self._odometry.began_anew(sample.stamp_ns):
            self.clear()
        self._odometry.add(sample)

    def set_command(self, command: str | None) -> None:
        """Set the route hint of the observations to come."""
        self._command = command

    def newest_t0_ns(self) -> int | None:
        """The newest time that every camera has reached, or None while one of them has sent nothing."""
        newest = [stream.stamps_ns[-1] for stream in self._images.values() if stream.stamps_ns]
        return min(newest) if len(newest) == len(self._images) else None

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
