"""Bad, late and stale plans of the planner node over the real middleware, in simulated time."""

import re
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from flatrope_planner.msg import PlannedTrajectory, SpeculationStats
from nav_msgs.msg import Path
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros import Listener, closing, ros, spin_for, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import PointCloud2, PointField
from stand_ins import SPEED_MPS, StraightCore
from test_planner_node import Sensors
from test_worker import wait_for

from flatrope_planner.conversion.plans import placed_trajectory
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds, to_time
from flatrope_planner.domain import Observation, Plan, Rationale, Trajectory, seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.planning.driven_arc import DrivenArc
from flatrope_planner.planning.plan_validator import refusal

TRAJECTORY, PATH = "/planner/output/trajectory", "/planner/output/path"
STATS, STATUS = "/planner/output/speculation", "/planner/output/status"
OUTPUTS: list[tuple[type, str]] = [
    (PlannedTrajectory, TRAJECTORY),
    (Path, PATH),
    (SpeculationStats, STATS),
    (DiagnosticArray, STATUS),
]


BOUNDS = (
    *("-p", "planner:status_period_s:=0.1", "-p", "planner:max_plan_age_s:=1.2"),
    *("-p", "planner:deadline_s:=1.0"),
)


class SpoiltCore(StraightCore):
    """Plans straight ahead until it is told how to spoil that."""

    def __init__(self) -> None:
        super().__init__()
        self.spoil: Callable[[Trajectory], Trajectory] = lambda trajectory: trajectory
        self.text = "Keep the speed."

    def plan(self, observation: Observation) -> Plan:
        plan = super().plan(observation)
        return replace(plan, trajectory=self.spoil(plan.trajectory), rationale=Rationale(self.text))


class Drive:
    """Clock and sensors of a simulator, one step of 0.05 s at a time; steps only while it is told to."""

    def __init__(self, node: Node) -> None:
        self._clock = node.create_publisher(Clock, "/clock", qos.BRIDGE_OUTPUT)
        self._sensors = Sensors(node)
        # How far the clock is ahead of the stamps.
        self.ahead_s = 0.0

    @property
    def time_s(self) -> float:
        return self._sensors.step * 0.05

    def step(self) -> None:
        self._clock.publish(Clock(clock=to_time(seconds_to_ns(self.time_s + self.ahead_s))))
        self._sensors.publish()


@contextmanager
def driving(core: StraightCore, *arguments: str) -> Iterator[tuple[SingleThreadedExecutor, Node, Listener, Drive]]:
    with ros("-p", "use_sim_time:=true", *BOUNDS, *arguments):
        test = Node("test")
        with closing(PlannerNode(lambda _: core), test) as executor:
            yield executor, test, Listener(test, OUTPUTS), Drive(test)


def plans(listener: Listener, status: int) -> list[PlannedTrajectory]:
    return [message for message in listener[TRAJECTORY] if message.status == status]


def good(listener: Listener) -> list[PlannedTrajectory]:
    return plans(listener, PlannedTrajectory.OK)


def fallbacks(listener: Listener) -> list[PlannedTrajectory]:
    return plans(listener, PlannedTrajectory.FALLBACK)


def status_of(listener: Listener, task: str) -> DiagnosticStatus:
    return next(status for status in listener[STATUS][-1].status if status.name == f"planner: {task}")


def values_of(listener: Listener, task: str) -> dict[str, str]:
    return {item.key: item.value for item in status_of(listener, task).values}


def test_a_good_plan_says_that_it_does_what_its_rationale_says() -> None:
    with driving(SpoiltCore()) as (executor, _, listener, drive):
        spin_until(executor, lambda: bool(good(listener)), drive.step)
    message = good(listener)[0]
    assert (message.consistency, message.status_reason) == (PlannedTrajectory.CONSISTENT, "")
    assert message.consistency_reason == "does what 'keep the speed' says"
    assert not message.comfort_exceeded


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda t: replace(t, position_m=t.position_m * np.nan), "a number of the plan is not finite"),
        (lambda t: replace(t, position_m=-t.position_m, speed_mps=-t.speed_mps), "it begins with -5.0 m/s, the ego"),
        (
            lambda t: replace(t, position_m=t.position_m + np.array([20.0, 0.0, 0.0])),
            "its first point is 20.50 m from the ego",
        ),
    ],
)
def test_a_bad_plan_is_replaced_by_a_stop_in_every_form(spoil: Callable[[Trajectory], Trajectory], reason: str) -> None:
    core = SpoiltCore()
    with driving(core) as (executor, _, listener, drive):
        spin_until(executor, lambda: bool(good(listener)), drive.step)
        core.spoil = spoil
        spin_until(executor, lambda: len(fallbacks(listener)) >= 2 and len(listener[STATS]) >= 3, drive.step)
        spin_until(executor, lambda: "stopped" in status_of(listener, "plans").message, drive.step)
        assert status_of(listener, "plans").level == DiagnosticStatus.ERROR
        core.spoil = lambda trajectory: trajectory
        before = len(good(listener))
        spin_until(executor, lambda: len(good(listener)) > before, drive.step)
    message = fallbacks(listener)[0]
    assert message.status_reason.startswith(reason)
    assert not message.pending
    placed = placed_trajectory(message)
    assert refusal(placed.trajectory, DrivenArc(SPEED_MPS)) == ""
    np.testing.assert_allclose(placed.trajectory.speed_mps[:3], [4.96, 4.88, 4.76], atol=1e-3)
    # t0 and place are the refused plan's.
    t0_ns = to_nanoseconds(message.header.stamp)
    assert t0_ns in [observation.t0_ns for observation in core.seen]
    assert message.ego_pose.position.x == pytest.approx(SPEED_MPS * t0_ns * 1e-9)
    path = next(one for one in listener[PATH] if to_nanoseconds(one.header.stamp) == t0_ns)
    assert [pose.pose for pose in path.poses] == [point.pose for point in message.points]
    assert listener[STATS][1].fallbacks == 1
    assert all(np.isfinite(point.pose.position.x) for one in listener[TRAJECTORY] for point in one.points)


def test_a_late_plan_is_replaced_while_the_model_still_plans() -> None:
    core = SpoiltCore()
    with driving(core) as (executor, _, listener, drive):
        spin_until(executor, lambda: bool(good(listener)), drive.step)
        core.gate.clear()
        core.planning.clear()
        spin_until(executor, core.planning.is_set, drive.step)
        late_t0_ns = core.seen[-1].t0_ns
        before = len(good(listener))
        # The model does not answer; the car drives on, and half a second later the stop is made anew.
        spin_until(executor, lambda: len(fallbacks(listener)) == 2, drive.step)
        assert len(good(listener)) == before
        core.gate.set()
        spin_until(executor, lambda: len(good(listener)) > before, drive.step)
        # What came too late is not published, what is planned next is.
        assert late_t0_ns not in [to_nanoseconds(message.header.stamp) for message in listener[TRAJECTORY]]
        spin_until(executor, lambda: listener[STATS][-1].deadline_misses == 1)
        assert listener[STATS][-1].fallbacks == 2
        spin_until(executor, lambda: values_of(listener, "plans")["stale"] == "1")
    first, second = fallbacks(listener)
    assert first.pending
    assert first.status_reason == "the plan is late: not done 1.00 s after its observation"
    first_ns, second_ns = (to_nanoseconds(message.header.stamp) for message in (first, second))
    assert seconds_to_ns(0.75) <= first_ns - late_t0_ns <= seconds_to_ns(1.3)
    assert second_ns - first_ns >= seconds_to_ns(0.5)
    assert first.points[0].acceleration == pytest.approx(-0.4)
    assert second.points[0].acceleration == pytest.approx(-2.4, abs=0.11)


def test_plans_that_are_late_again_and_again_are_told_on_the_console_once(capfd: pytest.CaptureFixture[str]) -> None:
    core = SpoiltCore()
    with ros("-p", "use_sim_time:=true", *BOUNDS):
        planner, test = PlannerNode(lambda _: core), Node("test")
        with closing(planner, test) as executor:
            listener, drive = Listener(test, OUTPUTS), Drive(test)
            spin_until(executor, lambda: bool(good(listener)), drive.step)
            core.gate.clear()
            core.planning.clear()
            spin_until(executor, core.planning.is_set, drive.step)
            for late in range(1, 4):
                begun_s = drive.time_s
                spin_until(executor, lambda: drive.time_s > begun_s + 1.5, drive.step)  # noqa: B023
                core.gate.set()
                # Nothing begins another tick meanwhile.
                wait_for(lambda: planner._guard.counts.stale == late)  # noqa: B023
                core.gate.clear()
                spin_until(executor, lambda: values_of(listener, "plans")["stale"] == str(late))  # noqa: B023
            core.gate.set()
    said = [line for line in capfd.readouterr().err.splitlines() if "plans: " in line]
    assert len(said) == 1
    assert "not published: its observation was " in said[0]
    assert "set deadline_s, max_plan_age_s and period_s to more than a tick takes" in said[0]


def test_time_that_stands_still_makes_nothing_late() -> None:
    core = SpoiltCore()
    with driving(core, "-p", "planner:deadline_s:=0.2", "-p", "planner:period_s:=0.1") as (
        executor,
        _,
        listener,
        drive,
    ):
        spin_until(executor, lambda: bool(good(listener)), drive.step)
        core.gate.clear()
        core.planning.clear()
        spin_until(executor, core.planning.is_set, drive.step)
        late_t0_ns = core.seen[-1].t0_ns
        spin_for(executor, 0.5)
        core.gate.set()
        spin_until(executor, lambda: to_nanoseconds(listener[TRAJECTORY][-1].header.stamp) == late_t0_ns)
    assert listener[TRAJECTORY][-1].status == PlannedTrajectory.OK
    assert not fallbacks(listener)


def test_a_plan_of_an_old_observation_is_not_published() -> None:
    core = SpoiltCore()
    with driving(core) as (executor, _, listener, drive):
        drive.ahead_s = 3.0
        spin_until(executor, lambda: len(core.seen) >= 3 and bool(listener[STATUS]), drive.step)
        spin_until(executor, lambda: "not published" in status_of(listener, "plans").message, drive.step)
    assert not listener[TRAJECTORY]


def cloud(time_s: float, x_m: float) -> PointCloud2:
    """A wall of 3 by 3 points."""
    y, z = np.meshgrid([-0.5, 0.0, 0.5], [0.5, 1.0, 1.5])
    points = np.stack([np.full(9, x_m), y.ravel(), z.ravel()], axis=1).astype("<f4")
    fields = [PointField(name=n, offset=4 * i, datatype=PointField.FLOAT32, count=1) for i, n in enumerate("xyz")]
    return PointCloud2(
        header=to_header(seconds_to_ns(time_s), "ego_vehicle"),
        height=1,
        width=9,
        fields=fields,
        point_step=12,
        row_step=108,
        data=array("B", points.tobytes()),
    )


def test_a_plan_that_drives_through_measured_points_is_refused() -> None:
    with driving(SpoiltCore(), "-p", "planner:corridor_check:=true") as (executor, test, listener, drive):
        points = test.create_publisher(PointCloud2, "/planner/input/points", qos.BRIDGE_OUTPUT)
        wall_m = 30.0

        def step() -> None:
            points.publish(cloud(drive.time_s, wall_m))
            drive.step()

        # 7.5 m and 3.7 m is what is looked at; the wall is further.
        spin_until(executor, lambda: bool(good(listener)) and bool(listener[STATUS]), step)
        spin_until(executor, lambda: status_of(listener, "corridor").level == DiagnosticStatus.OK, step)
        assert not fallbacks(listener)
        wall_m = 9.0
        spin_until(executor, lambda: bool(fallbacks(listener)), step)
    # 9 m less 3.7 m to the bumper, in steps of 0.5 m; the cloud may be of the moment before or after t0.
    reason = fallbacks(listener)[0].status_reason
    assert re.fullmatch(r"it drives into what the point cloud shows after (4.5|5.0|5.5) m", reason)
    assert fallbacks(listener)[0].points[-1].speed == 0.0


def test_without_a_usable_cloud_plans_are_published_and_the_status_says_so() -> None:
    with driving(SpoiltCore(), "-p", "planner:corridor_check:=true") as (executor, test, listener, drive):
        points = test.create_publisher(PointCloud2, "/planner/input/points", qos.BRIDGE_OUTPUT)

        def step() -> None:
            message = cloud(drive.time_s, 6.0)
            message.header.frame_id = "lidar_top"
            points.publish(message)
            drive.step()

        spin_until(executor, lambda: bool(good(listener)) and bool(listener[STATUS]), step)
        spin_until(executor, lambda: "lidar_top" in status_of(listener, "corridor").message, step)
        assert status_of(listener, "corridor").level == DiagnosticStatus.WARN
    assert not fallbacks(listener)


def test_a_plan_cannot_be_stale_before_it_is_late() -> None:
    with (
        ros(*BOUNDS, "-p", "planner:deadline_s:=2.0"),
        pytest.raises(InputError, match=r"max_plan_age_s is 1.2, expected at least deadline_s, 2.0"),
    ):
        PlannerNode(lambda _: StraightCore())
