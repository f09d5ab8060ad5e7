"""The simulator node over the real middleware: CARLA's topics, and the loop closed by the controller node."""

import json
from itertools import pairwise

import pytest
from flatrope_planner.msg import PlannedTrajectory, Rationale
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from ros import Listener, closing, ros, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.controller_node import ControllerNode
from flatrope_planner.nodes.driving import Driving
from flatrope_planner.nodes.idleness import GRACE_S
from flatrope_planner.nodes.simulator_node import SimulatorNode

EGO = "/carla/hero"
FOR_EVER = Duration(seconds=-1)
SMALL = ("-p", "role:=hero", "-p", "image_width_px:=64", "-p", "image_height_px:=32", "-p", "real_time_factor:=0.0")
LOOP = (
    *("-r", f"controller:~/input/odometry:={EGO}/odometry", "-r", f"controller:~/output/twist:={EGO}/twist"),
    *("-r", "controller:~/input/trajectory:=/simulator/reference/trajectory"),
    *("-p", "controller:simulator_waits:=true", "-p", "controller:use_sim_time:=true"),
)
SENSORS: list[tuple[type, str]] = [
    (Clock, "/clock"),
    (Odometry, f"{EGO}/odometry"),
    (Image, f"{EGO}/front_wide/image"),
    (Image, f"{EGO}/front_tele/image"),
    (CameraInfo, f"{EGO}/front_wide/camera_info"),
    (PlannedTrajectory, "/simulator/reference/trajectory"),
    (Rationale, "/simulator/reference/rationale"),
]


def stamps_ns(messages: list[Image]) -> list[int]:
    return [to_nanoseconds(message.header.stamp) for message in messages]


def test_a_whole_episode_with_the_controller_in_the_loop() -> None:
    outcomes: list[String] = []
    with ros(*SMALL, *LOOP, "-p", "simulator:family:=free_road"):
        test = Node("test")
        listener = Listener(test, SENSORS)
        simulator = SimulatorNode()
        with closing(simulator, ControllerNode(), test) as executor:
            spin_until(executor, lambda: simulator.finished)
            # Latched: who asks after the end still learns how it went.
            test.create_subscription(String, "/simulator/outcome", outcomes.append, qos.LATCHED)
            spin_until(executor, lambda: bool(outcomes))
    outcome = json.loads(outcomes[0].data)
    assert (outcome["family"], outcome["seed"], outcome["success"], outcome["failures"]) == ("free_road", 1, True, [])
    # How many depends on how fast this machine is.
    assert outcome["control_timeouts"] >= 0
    # The clock begins at 1 s.
    assert outcome["end_s"] == pytest.approx(1.0 + outcome["duration_s"])
    clock_ns = [to_nanoseconds(message.clock) for message in listener["/clock"]]
    assert clock_ns == sorted(clock_ns)
    picture, info = listener[f"{EGO}/front_wide/image"][0], listener[f"{EGO}/front_wide/camera_info"][0]
    assert (picture.encoding, picture.width, picture.height, picture.step) == ("bgra8", 64, 32, 256)
    assert picture.header.frame_id == info.header.frame_id == "hero/front_wide"
    assert (info.width, info.height, info.k[0], info.k[2]) == (64, 32, pytest.approx(32.0), 32.0)
    wide_ns = stamps_ns(listener[f"{EGO}/front_wide/image"])
    assert {later - earlier for earlier, later in pairwise(wide_ns)} == {seconds_to_ns(0.1)}
    poses = listener[f"{EGO}/odometry"]
    assert (poses[0].header.frame_id, poses[0].child_frame_id) == ("map", "hero")
    first, last = poses[0].pose.pose.position, poses[-1].pose.pose.position
    assert last.x - first.x == pytest.approx(outcome["distance_m"], rel=0.2)
    plans, reasons = listener["/simulator/reference/trajectory"], listener["/simulator/reference/rationale"]
    assert stamps_ns(plans)[1] - stamps_ns(plans)[0] == seconds_to_ns(0.5)
    assert plans[0].target == "reference"
    assert len(reasons[0].text) > 10


def test_a_fault_in_the_drive_is_no_finished_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        msg = "broken lens"
        raise ValueError(msg)

    monkeypatch.setattr("flatrope_planner.nodes.simulator_node.render", broken)
    with ros(*SMALL, "-p", "start_timeout_s:=0.0"):
        simulator = SimulatorNode()
        with closing(simulator) as executor, pytest.raises(ValueError, match="broken lens"):
            spin_until(executor, lambda: simulator.finished)


def test_it_waits_no_longer_than_others_do_for_its_last_outcome_to_be_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits_s: list[float] = []

    def wait(_: Publisher, timeout: Duration = FOR_EVER) -> bool:
        waits_s.append(timeout.nanoseconds * 1e-9)
        return False

    monkeypatch.setattr(Publisher, "wait_for_all_acked", wait)
    monkeypatch.setattr(Driving, "run", lambda _: None)
    with ros(*SMALL, "-p", "start_timeout_s:=0.0"):
        simulator = SimulatorNode()
        with closing(simulator) as executor:
            spin_until(executor, lambda: simulator.finished)
    # A planner says that time stands still after `input_timeout_s` and a second of grace.
    silence_s = default_parameters("planner.param.yaml")["input_timeout_s"] + GRACE_S
    assert [0.0 <= wait_s < 0.6 * silence_s for wait_s in waits_s] == [True]


def test_it_ends_while_it_waits_for_company() -> None:
    with ros(*SMALL):
        simulator = SimulatorNode()
        assert not simulator.finished
        simulator.close()
        assert simulator.finished


def test_pictures_reach_both_strict_and_lenient_subscribers() -> None:
    for profile in (qos.IMAGE_INPUT, QoSProfile(depth=1)):
        heard: list[Image] = []
        with ros(*SMALL, "-p", "start_timeout_s:=0.0", "-p", "control_timeout_s:=600.0"):
            test = Node("test")
            test.create_subscription(Image, f"{EGO}/front_tele/image", heard.append, profile)
            with closing(SimulatorNode(), test) as executor:
                spin_until(executor, lambda: bool(heard))  # noqa: B023


def test_an_unknown_family_keeps_it_from_starting() -> None:
    with ros("-p", "family:=boat"), pytest.raises(InputError, match="family is 'boat'"):
        SimulatorNode()
