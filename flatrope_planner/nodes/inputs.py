"""What the planner takes in: an ObservationBuffer behind a lock, with stamps checked by the clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.observation import CameraLag, ObservationBuffer, ObservationSpec, OdometrySample
from flatrope_planner.planning.plausibility import StampCheck
from flatrope_planner.planning.pose import Pose

# What is kept until the target is loaded and says what it wants to see.
FRAMES_UNTIL_LOADED = 2
FRAME_PERIOD_UNTIL_LOADED_S = 1.0


@dataclass(frozen=True)
class InputState:
    """How the inputs stand beside each other and beside the clock."""

    # What keeps an observation from being complete, in words; None if nothing does.
    missing: str | None = None
    # Which inputs are too old to plan from, in words; None if none is.
    stale: str | None = None
    # The camera that is furthest behind; None if it is no further than the target bears.
    lag: CameraLag | None = None
    # Input -> age of its newest sample (s of ROS time); inputs that have sent nothing are left out.
    ages_s: dict[str, float] = field(default_factory=dict)


class PlannerInputs:
    """Filled by callbacks, read by the planning thread.

    The lock is only ever held inside a method of this class, never while something else is called that could wait.
    """

    def __init__(self, cameras: tuple[str, ...], stamps: StampCheck | None = None) -> None:
        """Take in pictures of these cameras; without a check, stamps are taken as they are."""
        self._lock = Lock()
        self._stamps = stamps
        # Called without the lock when the stamps of a source tell that it began anew, or when the odometry goes on
        # elsewhere: what was planned until then is of another place.
        self.on_restart: Callable[[], None] = lambda: None
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

    def judge_by(self, stamps: StampCheck) -> None:
        """Check stamps by this from now on."""
        self._stamps = stamps

    def add_image(self, camera: str, frame: CameraFrame) -> None:
        """Take in a picture.

        Raises:
            InputError: saying why it is of no use.
        """
        self.check(frame.stamp_ns)
        with self._lock:
            restarted = self._buffer.add_image(camera, frame)
        if restarted:
            self.on_restart()

    def add_odometry(self, sample: OdometrySample, frame_id: str) -> None:
        """Take in a pose in the frame of that name.

        Raises:
            InputError: saying why it is of no use.
        """
        self.check(sample.stamp_ns)
        with self._lock:
            breaks = self._buffer.odometry_breaks
            restarted = self._buffer.add_odometry(sample) or self._buffer.odometry_breaks > breaks
            if self._buffer.latest_odometry() is sample:
                self.odometry_frame = frame_id
        if restarted:
            self.on_restart()

    def check(self, stamp_ns: int) -> None:
        """Let a stamp pass that can be true.

        Raises:
            InputError: saying why it cannot.
        """
        if self._stamps is not None:
            self._stamps.check(stamp_ns)

    def forget_camera(self, camera: str) -> None:
        """Forget the pictures of one camera: those to come are of another one under its name."""
        with self._lock:
            self._buffer.forget(camera)

    @property
    def reads_commands(self) -> bool:
        """Whether the target is told route hints; true until it is loaded."""
        with self._lock:
            return self._buffer.spec.reads_commands

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
            NotReadyError: saying what is missing, or too old.
        """
        with self._lock:
            newest_ns = self._buffer.newest_stamps_ns()
            if self._stamps is not None and (stale := self._stamps.stale(newest_ns)):
                raise NotReadyError(stale)
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

    def state(self) -> InputState:
        """How the inputs stand beside each other and beside the clock."""
        missing = self.missing()
        with self._lock:
            newest_ns, lag = self._buffer.newest_stamps_ns(), self._buffer.lag()
            bearable_s = self._buffer.spec.frame_period_s / 2.0
        if lag is not None and lag.behind_s <= bearable_s:
            lag = None
        if self._stamps is None:
            return InputState(missing, None, lag)
        return InputState(missing, self._stamps.stale(newest_ns), lag, self._stamps.ages_s(newest_ns))
