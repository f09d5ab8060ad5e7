"""The doctor looks at a planner that runs: what feeds it, and what does not, is told apart over real middleware."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from ros import closing, ros
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.planner_inputs import check_planner, start_planner_probe
from flatrope_planner.nodes import qos

BEST_EFFORT = QoSProfile(depth=5, reliability=QoSReliabilityPolicy.BEST_EFFORT)
SPACE = "~/input"


@contextmanager
def spinning(*nodes: Node) -> Iterator[None]:
    """The nodes live in a thread while the probe asks from its own process."""
    with closing(*nodes) as executor:
        over = threading.Event()
        thread = threading.Thread(target=spin, args=(executor, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def ignore(_message: object) -> None:
    """What the inputs do with what comes."""


def spin(executor: SingleThreadedExecutor, over: threading.Event) -> None:
    while not over.is_set():
        executor.spin_once(timeout_sec=0.05)


@contextmanager
def elsewhere() -> Iterator[Node]:
    """A node that is as good as in another process: one participant may not use a topic with two types."""
    context = Context()
    context.init()
    node = Node("camera", context=context)
    try:
        yield node
    finally:
        node.destroy_node()
        context.shutdown()


def asked(name: str) -> list[Finding]:
    with start_planner_probe(name) as probe:
        return list(check_planner(probe, name))


def test_inputs_are_told_apart() -> None:
    with ros():
        planner, sensors = Node("pilot", namespace="/car"), Node("sensors")
        for topic in ("arrives", "silent", "mismatch", "unfed", "as_jpeg"):
            wanted = qos.REPORT if topic == "mismatch" else qos.IMAGE_INPUT
            planner.create_subscription(Image, f"{SPACE}/{topic}", ignore, wanted)
        planner.create_subscription(CompressedImage, f"{SPACE}/other_type", ignore, qos.IMAGE_INPUT)
        planner.create_subscription(Odometry, f"{SPACE}/odometry", ignore, qos.ODOMETRY_INPUT)
        planner.create_subscription(String, f"{SPACE}/command", ignore, qos.REPORT)
        inputs = "/car/pilot/input"
        arriving = sensors.create_publisher(Image, f"{inputs}/arrives", BEST_EFFORT)
        sensors.create_timer(0.1, lambda: arriving.publish(Image()))
        sensors.create_publisher(Image, f"{inputs}/silent", qos.BRIDGE_OUTPUT)
        sensors.create_publisher(Image, f"{inputs}/mismatch", BEST_EFFORT)
        sensors.create_publisher(Odometry, "/elsewhere/odometry", qos.BRIDGE_OUTPUT)
        with spinning(planner, sensors), elsewhere() as other:
            other.create_publisher(Image, f"{inputs}/other_type", BEST_EFFORT)
            other.create_publisher(CompressedImage, f"{inputs}/as_jpeg/compressed", BEST_EFFORT)
            found = asked("/car/pilot")
    words = {each.facts["topic"].rpartition("/")[2]: each for each in found if each.check == "input"}
    assert {name: each.mark for name, each in words.items()} == {
        "arrives": Mark.OK,
        "silent": Mark.FAIL,
        "mismatch": Mark.FAIL,
        "unfed": Mark.FAIL,
        "as_jpeg": Mark.FAIL,
        "other_type": Mark.FAIL,
        "odometry": Mark.FAIL,
        "command": Mark.OK,
    }
    assert words["silent"].found == f"publisher but no data on {inputs}/silent (of /sensors)"
    assert words["silent"].remedy.endswith(f"with the profile {config_file('fastdds.xml')}")
    assert words["as_jpeg"].found == f"no publisher on {inputs}/as_jpeg, but {inputs}/as_jpeg/compressed has one"
    assert words["as_jpeg"].remedy.startswith("set compressed: true")
    assert words["mismatch"].found.startswith(f"QoS mismatch on {inputs}/mismatch: /sensors: Best effort publisher and")
    assert words["unfed"].found.startswith(f"no publisher on {inputs}/unfed; sensor_msgs/msg/Image comes on ")
    assert words["other_type"].found.startswith(f"type mismatch on {inputs}/other_type: sensor_msgs/msg/Image is")
    assert words["odometry"].found.endswith("nav_msgs/msg/Odometry comes on /elsewhere/odometry")
    assert next(each for each in found if each.check == "time").found == "wall time"


def test_a_planner_that_is_not_there_is_said_with_those_who_are() -> None:
    with ros():
        other = Node("somebody")
        with spinning(other):
            (finding,) = asked("/car/somebody")
    assert finding.mark is Mark.FAIL
    # Nodes of the tests before may still be known of.
    prefix, _, others = finding.found.partition("there are ")
    assert prefix == "no node '/car/somebody' in this domain; "
    assert "/somebody" in others.split(", ")
