"""The planner node over the real middleware: what it publishes, what it says when it is not fed."""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from flatrope_planner.msg import PlannedTrajectory, Rationale, SpeculationStats
from nav_msgs.msg import Odometry, Path
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros import Listener, closing, ros, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image
from stand_ins import SPEC, SPEED_MPS, StraightCore, odometry
from std_msgs.msg import String

from flatrope_planner.conversion.images import to_bgra8
from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds, to_time
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.diagnostics_node import DiagnosticsNode
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.planning.core import PlanningCore

OUT = "/planner/output"
TRAJECTORY, STATS = f"{OUT}/trajectory", f"{OUT}/speculation"
OUTPUTS: list[tuple[type, str]] = [
    (PlannedTrajectory, TRAJECTORY),
    (Path, f"{OUT}/path"),
    (Rationale, f"{OUT}/rationale"),
    (String, f"{OUT}/rationale_text"),
    (SpeculationStats, STATS),
    (DiagnosticArray, "/diagnostics"),
]
PICTURE = np.full((8, 16, 3), 120, dtype=np.uint8)
DIAGNOSE = (
    *("-r", "diagnostics:~/input/speculation:=/planner/output/speculation"),
    *("-r", "diagnostics:~/input/status:=/planner/output/status"),
    *("-p", "planner:status_period_s:=0.1", "-p", "diagnostics:publish_period_s:=0.1"),
)


class Sensors:
    """Publishes a drive along x, one step of 0.05 s at a time."""

    def __init__(self, node: Node, *, cameras: bool = True, odometry: bool = True, compressed: bool = False) -> None:
        self._cameras, self._odometry, self._compressed = cameras, odometry, compressed
        kind = CompressedImage if compressed else Image
        self._images = [
            node.create_publisher(kind, f"/planner/input/camera/{camera}", qos.BRIDGE_OUTPUT)
            for camera in (SPEC.cameras if cameras else ())
        ]
        if odometry:
            self._poses = node.create_publisher(Odometry, "/planner/input/odometry", qos.BRIDGE_OUTPUT)
        self.step = 20
        self.shown, self.frame_id = PICTURE, "camera"

    def publish(self) -> None:
        time_s = self.step * 0.05
        if self._odometry:
            self._poses.publish(odometry_message(odometry(time_s), "map", "ego_vehicle"))
        if self._cameras and self.step % 2 == 0:
            for publisher in self._images:
                publisher.publish(self._picture(seconds_to_ns(time_s)))
        self.step += 1

    def _picture(self, stamp_ns: int) -> Image | CompressedImage:
        if not self._compressed:
            return to_bgra8(self.shown, stamp_ns, self.frame_id)
        _, data = cv2.imencode(".jpg", self.shown)
        header = to_header(stamp_ns, self.frame_id)
        return CompressedImage(header=header, format="jpeg", data=array("B", data.tobytes()))


@contextmanager
def running(core: StraightCore, *arguments: str) -> Iterator[tuple[SingleThreadedExecutor, Node, Listener]]:
    """Planner, diagnostics, and a node of the test's own that listens to both."""
    with ros(*DIAGNOSE, *arguments):
        test = Node("test")
        with closing(PlannerNode(lambda _: core), DiagnosticsNode(), test) as executor:
            yield executor, test, Listener(test, OUTPUTS)


def statuses(listener: Listener) -> dict[str, DiagnosticStatus]:
    """The newest status of each task."""
    return {status.name.removeprefix("planner: "): status for status in listener["/diagnostics"][-1].status}


def test_a_plan_for_the_newest_observation_in_every_form() -> None:
    core = StraightCore()
    with running(core) as (executor, test, listener):
        sensors = Sensors(test)
        spin_until(executor, lambda: len(listener[TRAJECTORY]) >= 2 and len(listener[STATS]) >= 2, sensors.publish)
        spin_until(executor, lambda: all(listener[topic] for _, topic in OUTPUTS))
    trajectory, path = listener[TRAJECTORY][0], listener[f"{OUT}/path"][0]
    t0_ns = to_nanoseconds(trajectory.header.stamp)
    assert t0_ns == core.seen[0].t0_ns
    assert trajectory.header.frame_id == "map"
    x_m = SPEED_MPS * t0_ns * 1e-9
    assert trajectory.ego_pose.position.x == pytest.approx(x_m)
    assert trajectory.points[0].pose.position.x == pytest.approx(x_m + 0.1 * SPEED_MPS)
    assert trajectory.target == "nano"
    assert len(path.poses) == 64
    assert listener[f"{OUT}/rationale_text"][0].data == "Keep going."
    statistics = listener[STATS][1]
    assert (statistics.ticks, statistics.dropped_ticks, statistics.rounds, statistics.total_ms) == (2, 0, 5, 10.0)
    later_ns = to_nanoseconds(statistics.header.stamp)
    assert later_ns - t0_ns >= seconds_to_ns(0.5)
    stamped = (path, listener[f"{OUT}/rationale"][0], listener[STATS][0])
    assert {to_nanoseconds(message.header.stamp) for message in stamped} == {t0_ns}
    # Odometry is not played faster than pictures: every picture taken in is one that was sent.
    np.testing.assert_array_equal(core.seen[0].frames["front_wide"][0].image, PICTURE)


def test_cameras_that_cannot_be_who_they_are_called_are_told_of() -> None:
    with running(StraightCore()) as (executor, test, listener):
        sensors = Sensors(test)
        # One camera, which says which it is, feeds both inputs.
        sensors.frame_id = "front_tele_optical"
        sensors.shown = np.random.default_rng(0).integers(0, 256, PICTURE.shape, dtype=np.uint8)

        def told() -> bool:
            status = statuses(listener).get("inputs") if listener["/diagnostics"] else None
            return status is not None and "show the same" in status.message

        spin_until(executor, told, sensors.publish)
    inputs = statuses(listener)["inputs"]
    assert inputs.level == DiagnosticStatus.WARN
    assert "camera front_wide has the frame_id 'front_tele_optical', which names a tele one" in inputs.message
    assert "cameras front_tele and front_wide show the same pictures" in inputs.message
    assert "camera front_tele has the frame_id" not in inputs.message


def test_a_pause_of_all_sources_is_no_loss_of_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of small ones nothing would be said.
    monkeypatch.setattr("flatrope_planner.nodes.picture_losses.LARGE_BYTES", 1)
    with running(StraightCore()) as (executor, test, listener):
        sensors = Sensors(test)

        def drive_scenes_of_two_seconds() -> None:
            sensors.publish()
            if sensors.step % 40 == 0:
                sensors.step += 160

        spin_until(executor, lambda: sensors.step > 1000, drive_scenes_of_two_seconds)
    told = [status.message for array in listener["/diagnostics"] for status in array.status]
    assert any("all inputs arrive" in words for words in told)
    assert not [words for words in told if "are lost" in words]


@pytest.mark.parametrize("reads_commands", [True, False])
def test_a_route_hint_that_the_target_is_not_told_is_told_of(reads_commands: bool) -> None:
    core = StraightCore()
    core.observation_spec = replace(SPEC, reads_commands=reads_commands)
    with running(core) as (executor, test, listener):
        sensors, hint = Sensors(test), test.create_publisher(String, "/planner/input/command", qos.REPORT)
        spin_until(executor, lambda: bool(listener[TRAJECTORY]), sensors.publish)
        hint.publish(String(data="turn left"))
        spin_until(executor, lambda: core.seen[-1].command == "turn left", sensors.publish)
        before = len(listener["/diagnostics"])
        spin_until(executor, lambda: len(listener["/diagnostics"]) > before + 2, sensors.publish)
    in_vain = "/planner/input/command: the target is told no route hints: plans are the same with this one"
    assert (in_vain in statuses(listener)["inputs"].message) is not reads_commands


def test_compressed_pictures() -> None:
    core = StraightCore()
    with running(core, "-p", "planner:compressed:=true") as (executor, test, listener):
        sensors = Sensors(test, compressed=True)
        spin_until(executor, lambda: bool(listener[TRAJECTORY]), sensors.publish)
    assert np.abs(core.seen[0].frames["front_tele"][0].image.astype(int) - 120).max() < 5


@pytest.mark.parametrize(
    ("cameras", "poses", "complaint"),
    [
        (False, False, "no publisher on /planner/input/camera/front_wide; no publisher on /planner/input/camera/front"),
        (True, False, "no publisher on /planner/input/odometry"),
        (False, True, "no publisher on /planner/input/camera/front_wide; no publisher on /planner/input/camera/front"),
    ],
)
def test_an_unfed_planner_says_so_and_plans_nothing(cameras: bool, poses: bool, complaint: str) -> None:
    with running(StraightCore()) as (executor, test, listener):
        sensors = Sensors(test, cameras=cameras, odometry=poses)

        def told() -> bool:
            if not listener["/diagnostics"] or "inputs" not in statuses(listener):
                return False
            inputs = statuses(listener)["inputs"]
            fed = (("camera front_wide.received", cameras), ("odometry.received", poses))
            counts = {item.key: int(item.value) for item in inputs.values if item.key.endswith("received")}
            return all((counts[name] > 20) is wanted for name, wanted in fed) and sensors.step > 80

        spin_until(executor, told, sensors.publish)
        inputs = statuses(listener)["inputs"]
        assert inputs.level == DiagnosticStatus.ERROR
        assert inputs.message.startswith(complaint)
        assert ("odometry" in inputs.message) is not poses
        assert statuses(listener)["latency"].level == DiagnosticStatus.STALE
        assert not listener[TRAJECTORY]


def test_a_model_that_cannot_be_loaded_is_in_the_diagnostics() -> None:
    def load(_parameters: PlannerParameters) -> PlanningCore:
        msg = "no weights in /nowhere"
        raise SetupError(msg)

    with ros(*DIAGNOSE):
        test = Node("test")
        with closing(PlannerNode(load), DiagnosticsNode(), test) as executor:
            listener = Listener(test, OUTPUTS)
            spin_until(executor, lambda: bool(listener["/diagnostics"]) and "model" in statuses(listener))
            spin_until(executor, lambda: statuses(listener)["model"].level == DiagnosticStatus.ERROR)
    assert statuses(listener)["model"].message == "model not loaded: no weights in /nowhere"
    assert statuses(listener)["model"].hardware_id == "flatrope_planner"


def test_bad_messages_are_counted_and_harm_nothing() -> None:
    with running(StraightCore()) as (executor, test, listener):
        bad_image = test.create_publisher(Image, "/planner/input/camera/front_wide", qos.BRIDGE_OUTPUT)
        bad_pose = test.create_publisher(Odometry, "/planner/input/odometry", qos.BRIDGE_OUTPUT)
        no_rotation = Odometry()
        no_rotation.pose.pose.orientation.w = 0.0

        def rejected() -> bool:
            if not listener["/diagnostics"] or "inputs" not in statuses(listener):
                return False
            values = {item.key: item.value for item in statuses(listener)["inputs"].values}
            return "0" not in (values["camera front_wide.rejected"], values["odometry.rejected"])

        def publish() -> None:
            bad_image.publish(Image(encoding="bgr8", width=4, height=4, step=3))
            bad_pose.publish(no_rotation)

        spin_until(executor, rejected, publish)
        sensors = Sensors(test)
        spin_until(executor, lambda: bool(listener[TRAJECTORY]), sensors.publish)


def test_time_that_goes_back_makes_it_begin_anew() -> None:
    core = StraightCore()
    with running(core, "-p", "use_sim_time:=true") as (executor, test, listener):
        clock = test.create_publisher(Clock, "/clock", qos.BRIDGE_OUTPUT)
        sensors = Sensors(test)

        def drive() -> None:
            clock.publish(Clock(clock=to_time(seconds_to_ns(sensors.step * 0.05))))
            sensors.publish()

        sensors.step = 2000
        spin_until(executor, lambda: bool(listener[TRAJECTORY]), drive)
        sensors.step = 20
        spin_until(executor, lambda: to_nanoseconds(listener[TRAJECTORY][-1].header.stamp) < 100e9, drive)
    t0_ns = to_nanoseconds(listener[TRAJECTORY][-1].header.stamp)
    # A history of 1.5 s had to come together again.
    assert t0_ns >= seconds_to_ns(2.5)
    assert to_nanoseconds(listener[STATS][0].header.stamp) >= seconds_to_ns(100.0)
    assert 0.0 <= listener[STATS][0].observation_age_ms < 1e4


def test_other_parameters_than_allowed_keep_it_from_starting() -> None:
    with (
        ros("-p", "period_s:=99.0"),
        pytest.raises(InputError, match=r"period_s is 99.0, expected a number of \[0.05, 10\]"),
    ):
        PlannerNode(lambda _: StraightCore())
