"""Cuts the observations out of a recorded drive that a planner would have planned from, always the same ones.

The planner node's own buffer and its own rule of when a tick is due. Only what arrives is different: a picture waits
until odometry has reached its stamp, so that nothing depends on which of two messages was faster.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from flatrope_planner.domain import CameraFrame, Observation, ObservationSpec, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.evaluation.replay.picture_store import Decode, PictureStore, RawPicture
from flatrope_planner.evaluation.replay.reasons import Reasons
from flatrope_planner.evaluation.replay.schedule import Schedule
from flatrope_planner.planning.observation import ODOMETRY, ObservationBuffer
from flatrope_planner.planning.odometry import MAX_SAMPLES, OdometrySample
from flatrope_planner.planning.pose import Pose
from flatrope_planner.planning.stream import RESTART_SAMPLES

# Recorded time that a picture waits for odometry: what comes later than that is missing.
LONGEST_WAIT_S = 0.5
# Stands for a picture that nobody has asked for yet.
UNSEEN = np.zeros((1, 1, 3), np.uint8)


@dataclass(frozen=True)
class DueTick:
    """An observation, and the ego's pose at its t0."""

    observation: Observation
    pose_t0: Pose
    # Why there was no observation since the last one most often; empty if nothing kept from it.
    refused: str


class Stepper:
    """Takes in what was recorded, hands out the ticks that are due."""

    def __init__(
        self, spec: ObservationSpec, schedule: Schedule, decode: Decode, begun_anew: Callable[[], None]
    ) -> None:
        """Hand out observations as `spec` wants them, when the schedule says so.

        Args:
            spec: what the target wants to see.
            schedule: when.
            decode: reads a picture.
            begun_anew: called when stamps show that the recording began anew, before anything new counts.
        """
        self._buffer, self._store = ObservationBuffer(spec), PictureStore(spec, decode)
        self._schedule, self._begun_anew = schedule, begun_anew
        # Taken in since the recording began anew, as they came; and refused for stamps far behind the newest one.
        self._odometry = deque[OdometrySample](maxlen=MAX_SAMPLES)
        self._held = deque[OdometrySample](maxlen=RESTART_SAMPLES)
        # When each picture was recorded (ns), and the picture.
        self._waiting = deque[tuple[int, RawPicture]]()
        self._last_t0_ns: int | None = None
        # Why there was no observation when one was due; the same since the last one.
        self.not_ready, self.refused = Reasons(), Reasons()
        # Topic and complaint of pictures that cannot be used, and of pictures and poses whose stamps lead nowhere.
        self.broken: list[tuple[str, str]] = []
        self._strays: list[tuple[str, str]] = []

    def add_odometry(self, sample: OdometrySample, topic: str) -> list[OdometrySample]:
        """Take in a pose; the poses that count now: this one, none, or with it those held until time began anew."""
        try:
            restarted = self._buffer.add_odometry(sample)
        except InputError as err:
            self._held.append(sample)
            self._strays.append((topic, str(err)))
            return []
        if restarted:
            self._restart()
        counted = [*self._held, sample] if restarted else [sample]
        self._held.clear()
        self._odometry.extend(counted)
        return counted

    def add_picture(self, picture: RawPicture, log_ns: int) -> None:
        """Take in a picture that was recorded at a time."""
        self._waiting.append((log_ns, picture))

    def set_command(self, command: str) -> None:
        """Set the route hint; an empty one ends it."""
        self._buffer.set_command(command or None)

    def due(self, now_ns: int | None) -> Iterator[DueTick]:
        """The ticks that have fallen due at this time of the recording; None: at its end."""
        while self._waiting and self._is_ready(*self._waiting[0], now_ns):
            _, picture = self._waiting.popleft()
            if self._take_in(picture):
                tick = self._tick()
                if tick is not None:
                    yield tick

    @property
    def looked_at(self) -> Counter[str]:
        """Topic -> pictures that were asked for, and so decoded if they could be."""
        return self._store.looked_at

    def strays(self) -> list[tuple[str, str]]:
        """Topic and complaint of what was refused for its stamp, and was no sign that time began anew."""
        return self._strays

    def _is_ready(self, log_ns: int, picture: RawPicture, now_ns: int | None) -> bool:
        # What is held may be the beginning of another time: what belongs to this one cannot wait any longer.
        if now_ns is None or self._held or now_ns - log_ns >= seconds_to_ns(LONGEST_WAIT_S):
            return True
        return self._buffer.newest_stamps_ns().get(ODOMETRY, 0) >= picture.stamp_ns

    def _take_in(self, picture: RawPicture) -> bool:
        """Whether the buffer has taken the picture."""
        try:
            restarted = self._buffer.add_image(picture.camera, CameraFrame(picture.stamp_ns, UNSEEN))
        except InputError as err:
            self._store.hold(picture)
            self._strays.append((picture.message.topic, str(err)))
            return False
        if restarted:
            self._restart()
        self._store.keep(picture)
        return True

    def _restart(self) -> None:
        self._begun_anew()
        self._store.begin_anew()
        self._odometry.clear()
        self._strays.clear()
        self._last_t0_ns = None

    def _tick(self) -> DueTick | None:
        """The newest observation, if it is due and complete."""
        while self._is_due(self._buffer.newest_t0_ns()):
            try:
                observation = self._buffer.observe()
                pose_t0 = self._buffer.pose_at(observation.t0_ns)
            except NotReadyError as err:
                self.not_ready.add(str(err))
                self.refused.add(str(err))
                return None
            seen = self._seen(observation)
            if seen is not None:
                self._last_t0_ns = observation.t0_ns
                refused, self.refused = self.refused, Reasons()
                return DueTick(seen, pose_t0, refused.commonest)
        return None

    def _is_due(self, newest_ns: int | None) -> bool:
        """Whether to look for an observation; while a camera is silent, to hear which one."""
        return newest_ns is None or self._schedule.is_due(newest_ns, self._last_t0_ns)

    def _seen(self, observation: Observation) -> Observation | None:
        """The observation with its pictures; None if one of them is broken, which is then forgotten."""
        frames = {}
        for camera, unseen in observation.frames.items():
            pictures = [self._store.find(camera, frame.stamp_ns) for frame in unseen]
            for picture in pictures:
                try:
                    self._store.decoded([picture])
                except InputError as err:
                    self.broken.append((picture.message.topic, str(err)))
                    self._forget(picture)
                    return None
            frames[camera] = self._store.decoded(pictures)
        return replace(observation, frames=frames)

    def _forget(self, broken: RawPicture) -> None:
        """Fill the buffer again, as if this picture had never come."""
        self._store.remove(broken)
        self._buffer.clear()
        for sample in self._odometry:
            self._buffer.add_odometry(sample)
        for picture in self._store.pictures():
            self._buffer.add_image(picture.camera, CameraFrame(picture.stamp_ns, UNSEEN))
