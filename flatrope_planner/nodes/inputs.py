"""What the planner takes in: an ObservationBuffer behind a lock, and a record of who delivers and who does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.planning.observation import ObservationBuffer, ObservationSpec, OdometrySample
from flatrope_planner.planning.pose import Pose

# What is kept until the target is loaded and says what it wants to see.
FRAMES_UNTIL_LOADED = 2
FRAME_PERIOD_UNTIL_LOADED_S = 1.0


class PlannerInputs:
    """Filled by callbacks, read by the planning thread."""

    def __init__(self, cameras: tuple[str, ...]) -> None:
        """Take in pictures of these cameras."""
        self._lock = Lock()
        self._buffer = ObservationBuffer(ObservationSpec(cameras, FRAMES_UNTIL_LOADED, FRAME_PERIOD_UNTIL_LOADED_S))
        self.odometry_frame = ""

    def adopt(self, spec: ObservationSpec) -> None:
        """Cut observations as the target wants them from now on.

        Raises:
            InputError: if the target looks at other cameras than the ones that are taken in.
        """
        with self._lock:
            if set(spec.cameras) != set(self._buffer.spec.cameras):
                msg = f"cameras are {', '.join(self._buffer.spec.cameras)}, the target needs {', '.join(spec.cameras)}"
                raise InputError(msg)
            self._buffer.spec = spec

    def add_image(self, camera: str, frame: CameraFrame) -> None:
        """Take in a picture."""
        with self._lock:
            self._buffer.add_image(camera, frame)

    def add_odometry(self, sample: OdometrySample, frame_id: str) -> None:
        """Take in a pose in the frame of that name."""
        with self._lock:
            self._buffer.add_odometry(sample)
            self.odometry_frame = frame_id

    def set_command(self, command: str) -> None:
        """Set the route hint; an empty one ends it."""
        with self._lock:
            self._buffer.set_command(command or None)

    def clear(self) -> None:
        """Forget everything measured."""
        with self._lock:
            self._buffer.clear()

    def newest_t0_ns(self) -> int | None:
        """The newest time that an observation could be of."""
        with self._lock:
            return self._buffer.newest_t0_ns()

    def observe(self) -> tuple[Observation, Pose, str]:
        """The newest observation, the pose at its t0, and the name of the frame the pose is in.

        Raises:
            NotReadyError: saying what is missing.
        """
        with self._lock:
            observation = self._buffer.observe()
            return observation, self._buffer.pose_at(observation.t0_ns), self.odometry_frame

    def pose_at(self, t_ns: int) -> Pose:
        """The pose at a time.

        Raises:
            NotReadyError: if odometry does not cover that time.
        """
        with self._lock:
            return self._buffer.pose_at(t_ns)

    def missing(self) -> str | None:
        """What keeps an observation from being complete, in words; None if nothing does."""
        try:
            self.observe()
        except NotReadyError as err:
            return str(err)
        return None


@dataclass
class InputRecord:
    """What has come on one topic. Times are of the steady clock (s)."""

    topic: str
    received: int = 0
    rejected: int = 0
    rejection: str = ""
    last_s: float | None = None

    def arrived(self, now_s: float) -> None:
        """Note a message."""
        self.received += 1
        self.last_s = now_s

    def reject(self, reason: str) -> None:
        """Note that the message was of no use."""
        self.rejected += 1
        self.rejection = reason

    def complaint(self, now_s: float, timeout_s: float, publishers: int) -> str | None:
        """What is wrong with the topic, in words; None if it delivers."""
        if self.last_s is not None and now_s - self.last_s <= timeout_s:
            return None
        if publishers == 0:
            return f"no publisher on {self.topic}"
        if self.last_s is None:
            return f"nothing has come on {self.topic}"
        return f"nothing on {self.topic} for {now_s - self.last_s:.1f} s"


@dataclass
class InputRecords:
    """The records of all inputs by name."""

    timeout_s: float
    records: dict[str, InputRecord] = field(default_factory=dict)

    def report(self, now_s: float, publishers: Mapping[str, int], missing: str | None) -> TaskReport:
        """The state of the inputs: error if one is silent, warning if they do not make an observation yet."""
        complaints = {
            name: record.complaint(now_s, self.timeout_s, publishers[name]) for name, record in self.records.items()
        }
        silent = [complaint for complaint in complaints.values() if complaint is not None]
        values: dict[str, str] = {}
        for name, record in self.records.items():
            values[f"{name}.topic"] = record.topic
            values[f"{name}.publishers"] = str(publishers[name])
            values[f"{name}.received"] = str(record.received)
            values[f"{name}.rejected"] = str(record.rejected)
            if record.rejection:
                values[f"{name}.rejection"] = record.rejection
        if silent:
            return TaskReport("inputs", Level.ERROR, "; ".join(silent), values)
        if missing is not None:
            return TaskReport("inputs", Level.WARN, missing, values)
        return TaskReport("inputs", Level.OK, "all inputs arrive", values)
