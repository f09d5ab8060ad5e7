"""The planner node and time, over the real middleware: clocks that start, leap, stop or are missing; false stamps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from flatrope_planner.msg import PlannedTrajectory
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from ros import Listener, closing, ros, spin_for, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from stand_ins import SPEC, StraightCore, odometry
from test_planner_node import PICTURE

from flatrope_planner.conversion.images import to_bgra8
from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.stamps import to_nanoseconds, to_time
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes.planner_node import PlannerNode

TRAJECTORY, STATUS = "/planner/output/trajectory", "/planner/output/status"
WIDE, TELE = SPEC.cameras
STEP_S = 0.05
# A history of 1.5 s, and a picture and a tick after it.
RECOVERY_S = 2.0
WALL_S = 1.8e9


class Drive:
    """A world that sends /clock, odometry at 20 Hz and pictures at 10 Hz, one step at a time, each as it is told."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._images = {c: node.create_publisher(Image, f"/planner/input/camera/{c}", 10) for c in SPEC.cameras}
        self._odometry = node.create_publisher(Odometry, "/planner/input/odometry", 10)
        self._clock = node.create_publisher(Clock, "/clock", 10)
        self.time_s = 100.0
        self.clock_runs = True
        self.silent: set[str] = set()
        # Source -> what its stamps are ahead of the clock, and the frame its messages are in.
        self.ahead_s: dict[str, float] = {}
        self.frame_ids: dict[str, str] = {}

    def close(self, camera: str) -> None:
        """Let the publisher of a camera go."""
        self._node.destroy_publisher(self._images.pop(camera))

    def step(self) -> None:
        """Let 0.05 s pass."""
        self.time_s = round(self.time_s + STEP_S, 2)
        if self.clock_runs:
            self._clock.publish(Clock(clock=to_time(seconds_to_ns(self.time_s))))
        if "odometry" not in self.silent:
            stamp_ns = seconds_to_ns(self.time_s + self.ahead_s.get("odometry", 0.0))
            sample = replace(odometry(self.time_s), stamp_ns=stamp_ns)
            frame_id = self.frame_ids.get("odometry", "map")
            self._odometry.publish(odometry_message(sample, frame_id, "ego_vehicle"))
        for camera, publisher in self._images.items():
            if camera not in self.silent and round(self.time_s / STEP_S) % 2 == 0:
                stamp_ns = seconds_to_ns(self.time_s + self.ahead_s.get(camera, 0.0))
                publisher.publish(to_bgra8(PICTURE, stamp_ns, self.frame_ids.get(camera, camera)))


class Scene:
    """A planner, a drive, and what the planner says."""

    planner: PlannerNode

    def __init__(self, executor: SingleThreadedExecutor, core: StraightCore, drive: Drive | None, test: Node) -> None:
        self.executor, self.core = executor, core
        if drive is not None:
            self.drive = drive
        self._heard = Listener(test, [(PlannedTrajectory, TRAJECTORY), (DiagnosticArray, STATUS)])

    @property
    def t0_s(self) -> list[float]:
        """Of every plan that was published."""
        return [to_nanoseconds(message.header.stamp) * 1e-9 for message in self._heard[TRAJECTORY]]

    def status(self, task: str) -> tuple[bytes, str]:
        """Level and words of a task, as told last."""
        statuses = self._heard[STATUS][-1].status if self._heard[STATUS] else []
        told = [status for status in statuses if status.name == f"planner: {task}"]
        return (told[0].level, told[0].message) if told else (DiagnosticStatus.OK, "")

    def values(self) -> dict[str, str]:
        """Figures of the inputs, as told last."""
        told = [status for status in self._heard[STATUS][-1].status if status.name == "planner: inputs"]
        return {item.key: item.value for item in told[0].values}

    def go_until(self, condition: Callable[[], bool]) -> None:
        """Drive until something is so."""
        spin_until(self.executor, condition, self.drive.step)

    def go_for(self, duration_s: float) -> None:
        """Drive for a while of the drive's time, and let everything arrive."""
        until_s = self.drive.time_s + duration_s - STEP_S / 2.0
        self.go_until(lambda: self.drive.time_s >= until_s)
        spin_for(self.executor, 0.1)

    def goes_on_within(self, limit_s: float) -> float:
        """Drive until a plan for a time from now on comes, and tell how long after now that is in the drive's time."""
        from_s, known = self.drive.time_s, len(self.t0_s)
        # With nothing of the tick that may be due at the moment.
        self.go_until(lambda: any(t0_s > from_s for t0_s in self.t0_s[known:]))
        first_s = next(t0_s for t0_s in self.t0_s[known:] if t0_s > from_s)
        assert first_s - from_s <= limit_s
        return first_s - from_s

    def told(self, task: str, level: bytes, *words: str) -> bool:
        """Whether the last status says that."""
        now_level, message = self.status(task)
        return now_level == level and all(word in message for word in words)


@contextmanager
def scene(*arguments: str, sim_time: bool = True, drives: bool = True) -> Iterator[Scene]:
    """A planner among sensors that move when they are told to; without `drives` there is only the planner."""
    core = StraightCore()
    settings = {"status_period_s": 0.1, "max_input_age_s": 1.0, "input_timeout_s": 1.0}
    given = [item for name, value in settings.items() for item in ("-p", f"planner:{name}:={value}")]
    with ros(*given, "-p", f"planner:use_sim_time:={str(sim_time).lower()}", *arguments):
        test = Node("test")
        planner = PlannerNode(lambda _: core)
        with closing(planner, test) as executor:
            run = Scene(executor, core, Drive(test) if drives else None, test)
            run.planner = planner
            yield run


def test_the_first_message_on_the_clock_is_no_loop() -> None:
    with scene() as run:
        run.go_until(lambda: len(run.t0_s) >= 2)
        assert run.told("clock", DiagnosticStatus.OK, "simulated time")
    assert run.core.resets == 0
    assert run.t0_s[1] - run.t0_s[0] >= 0.5 - 1e-6


def test_simulated_time_without_a_clock_is_told() -> None:
    with scene() as run:
        run.drive.clock_runs = False
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.ERROR, "there is no time yet", "/clock"))
        words = "use_sim_time is set and nothing comes on /clock, though test publishes it"
        assert run.status("clock") == (DiagnosticStatus.ERROR, words)
        assert not run.t0_s
        run.drive.clock_runs = True
        run.goes_on_within(RECOVERY_S)
        run.go_until(lambda: run.told("clock", DiagnosticStatus.OK))
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.OK))


@pytest.mark.parametrize("back_s", [1.0, 60.0])
def test_a_clock_that_goes_back_makes_everything_begin_anew(back_s: float) -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.core.gate.clear()
        run.core.planning.clear()
        run.go_until(run.core.planning.is_set)
        in_flight_s, planned = run.core.seen[-1].t0_ns * 1e-9, len(run.t0_s)
        again_s = run.drive.time_s = round(run.drive.time_s - back_s, 2)
        run.go_for(0.2)
        run.core.gate.set()
        run.go_until(lambda: len(run.t0_s) > planned)
        # What was in flight came too late, and the first plan is as early as one can be.
        assert in_flight_s not in run.t0_s[planned:]
        assert again_s + 1.5 <= run.t0_s[planned] <= again_s + RECOVERY_S
        assert run.core.resets == 1
        run.go_until(lambda: run.status("clock")[0] == DiagnosticStatus.OK)


def test_a_clock_that_leaps_ahead_is_followed_and_nothing_old_is_published() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.core.gate.clear()
        run.core.planning.clear()
        run.go_until(run.core.planning.is_set)
        planned = len(run.t0_s)
        run.drive.time_s += 50.0
        leapt_s = run.drive.time_s
        run.go_for(0.2)
        run.core.gate.set()
        run.go_until(lambda: len(run.t0_s) > planned)
        assert leapt_s + 1.5 <= run.t0_s[planned] <= leapt_s + RECOVERY_S


def test_a_clock_that_pauses_is_told_and_costs_nothing() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        # Nothing moves: neither time nor sensors.
        spin_until(run.executor, lambda: run.told("clock", DiagnosticStatus.WARN, "simulated time has stood still for"))
        planned = len(run.t0_s)
        run.go_for(0.6)
        assert len(run.t0_s) > planned


def test_sensors_that_loop_without_a_clock_make_everything_begin_anew() -> None:
    with scene("-p", "planner:max_input_age_s:=0.0", sim_time=False) as run:
        run.go_until(lambda: bool(run.t0_s))
        planned = len(run.t0_s)
        again_s = run.drive.time_s = 50.0
        run.go_until(lambda: len(run.t0_s) > planned)
        assert again_s + 1.5 <= run.t0_s[-1] <= again_s + RECOVERY_S
        assert run.core.resets == 1


@pytest.mark.parametrize(
    ("sim_time", "start_s", "ahead_s", "words"),
    [
        (False, 100.0, 0.0, "it is simulated time, and the planner goes by wall time (use_sim_time is false)"),
        (True, 100.0, WALL_S, "it is wall time, and the planner goes by simulated time (use_sim_time)"),
    ],
)
def test_sensors_of_another_clock_are_refused_and_told(
    sim_time: bool, start_s: float, ahead_s: float, words: str
) -> None:
    with scene(sim_time=sim_time) as run:
        run.drive.time_s = start_s
        run.drive.ahead_s = dict.fromkeys((*SPEC.cameras, "odometry"), ahead_s)
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.ERROR, "/planner/input/odometry can be used", words))
        run.go_for(2.0)
        assert not run.t0_s
        assert int(run.values()["odometry.rejected"]) > 20


def test_stamps_that_turn_to_wall_time_block_nothing_once_they_are_right_again() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.drive.ahead_s = {WIDE: WALL_S, "odometry": WALL_S}
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.STALE, f"camera {WIDE}", "odometry", "old"))
        run.drive.ahead_s = {}
        run.goes_on_within(RECOVERY_S)
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.OK))


def test_a_single_stamp_from_the_future_or_of_zero_delays_nothing() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        for wrong_s in (0.7, WALL_S, -run.drive.time_s - STEP_S):
            run.drive.ahead_s = {WIDE: wrong_s, "odometry": wrong_s}
            run.drive.step()
            run.drive.step()
            run.drive.ahead_s = {}
            assert run.goes_on_within(1.0) <= 0.7


@pytest.mark.parametrize("silent", [{TELE}, {WIDE, TELE}, {WIDE, TELE, "odometry"}])
def test_nothing_is_planned_from_stale_inputs_and_they_are_named(silent: set[str]) -> None:
    with scene("-p", "planner:input_timeout_s:=60.0") as run:
        run.go_until(lambda: bool(run.t0_s))
        run.drive.silent = silent
        stopped_s = run.drive.time_s
        names = [name if name == "odometry" else f"camera {name} is" for name in silent]
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.STALE, *names))
        if silent == {TELE}:
            assert f"s behind camera {WIDE}" in run.status("inputs")[1]
        run.go_for(2.0)
        assert max(run.t0_s) <= stopped_s + 1e-6
        run.drive.silent = set()
        run.goes_on_within(RECOVERY_S)
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.OK))


def test_a_camera_that_comes_under_another_frame_is_told_and_not_mixed() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.drive.frame_ids = {WIDE: "rear"}
        swapped_ns, seen = seconds_to_ns(run.drive.time_s), len(run.core.seen)
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.WARN, f"frame_id of /planner/input/camera/{WIDE}"))
        assert f"was '{WIDE}' and is 'rear'" in run.status("inputs")[1]
        run.goes_on_within(RECOVERY_S)
        assert run.values()[f"camera {WIDE}.frame_changes"] == "1"
    since = [[frame.stamp_ns > swapped_ns for frame in each.frames[WIDE]] for each in run.core.seen[seen:]]
    assert all(all(frames) or not any(frames) for frames in since)
    assert all(since[-1])


def test_poses_in_a_frame_without_a_name_are_planned_from_and_told() -> None:
    with scene() as run:
        run.drive.frame_ids = {"odometry": ""}
        run.go_until(lambda: bool(run.t0_s))
        words = "/planner/input/odometry: header.frame_id is empty, and so is that of the plans"
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.WARN, words))
        run.drive.frame_ids = {}
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.OK))


def test_rates_and_ages_are_told() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.go_until(lambda: float(run.values()["odometry.rate_hz"]) > 0.0)
        values = run.values()
        # Twice as many poses as pictures, in whatever wall time.
        assert float(values["odometry.rate_hz"]) > 1.3 * float(values[f"camera {WIDE}.rate_hz"]) > 0.0
        assert -0.5 <= float(values["odometry.age_s"]) <= 1.0


def test_how_old_inputs_may_be_is_changed_while_it_runs() -> None:
    with scene(sim_time=False) as run:
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.ERROR, "it is simulated time"))
        assert not run.t0_s
        (accepted,) = run.planner.set_parameters([Parameter("max_input_age_s", value=0.0)])
        assert accepted.successful
        run.goes_on_within(RECOVERY_S)
