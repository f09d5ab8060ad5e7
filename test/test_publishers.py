"""No publisher, a silent one, one that offers too little, one of another type: told apart over the real middleware."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from ros import spin_until
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String
from test_planner_clock import RECOVERY_S, WIDE, scene

from flatrope_planner.nodes.publishers import mismatch

BEST_EFFORT, RELIABLE = QoSReliabilityPolicy.BEST_EFFORT, QoSReliabilityPolicy.RELIABLE
VOLATILE, LATCHED = QoSDurabilityPolicy.VOLATILE, QoSDurabilityPolicy.TRANSIENT_LOCAL
IMAGE, ODOMETRY, COMMAND = f"/planner/input/camera/{WIDE}", "/planner/input/odometry", "/planner/input/command"

DEAF, TYPE = "cannot be heard: /car/driver", "sensor_msgs/msg"


def profile(reliability: QoSReliabilityPolicy, durability: QoSDurabilityPolicy = VOLATILE) -> QoSProfile:
    return QoSProfile(depth=5, reliability=reliability, durability=durability)


@contextmanager
def driver(kind: type, topic: str, offered: QoSProfile) -> Iterator[Node]:
    """A node of another process's kind: in one context a topic has one type."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = Node("driver", namespace="/car", context=context, use_global_arguments=False)
    node.create_publisher(kind, topic, offered)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


@pytest.mark.parametrize(
    ("offered", "asked", "words"),
    [
        (profile(RELIABLE, LATCHED), profile(RELIABLE, LATCHED), None),
        (profile(RELIABLE, LATCHED), profile(BEST_EFFORT, VOLATILE), None),
        (profile(BEST_EFFORT), profile(BEST_EFFORT), None),
        (profile(BEST_EFFORT), profile(RELIABLE), "offers best_effort, asked for is reliable"),
        (profile(RELIABLE), profile(RELIABLE, LATCHED), "offers volatile, asked for is transient_local"),
        (
            profile(BEST_EFFORT),
            profile(RELIABLE, LATCHED),
            "offers best_effort, asked for is reliable, offers volatile, asked for is transient_local",
        ),
    ],
)
def test_who_asks_for_more_than_is_offered_hears_nothing(
    offered: QoSProfile, asked: QoSProfile, words: str | None
) -> None:
    assert mismatch(offered, asked) == (None if words is None else f"QoS mismatch: {words}")


@pytest.mark.parametrize(
    ("driven", "argument", "offered", "words"),
    [
        (
            (Odometry, ODOMETRY),
            "odometry_reliability:=reliable",
            profile(BEST_EFFORT),
            f"{ODOMETRY} {DEAF} (QoS mismatch: offers best_effort, asked for is reliable)",
        ),
        (
            (Image, IMAGE),
            "image_durability:=transient_local",
            profile(BEST_EFFORT),
            f"{IMAGE} {DEAF} (QoS mismatch: offers volatile, asked for is transient_local)",
        ),
        (
            (CompressedImage, IMAGE),
            "compressed:=false",
            profile(RELIABLE),
            f"{IMAGE} {DEAF} (type mismatch: publishes {TYPE}/CompressedImage, asked for is {TYPE}/Image)",
        ),
        (
            (Image, IMAGE),
            "compressed:=true",
            profile(RELIABLE),
            f"{IMAGE} {DEAF} (type mismatch: publishes {TYPE}/Image, asked for is {TYPE}/CompressedImage)",
        ),
        (
            (Image, IMAGE),
            "image_depth:=1",
            profile(RELIABLE),
            f"nothing has come on {IMAGE}, though /car/driver publishes there, perhaps as they do not fit",
        ),
    ],
)
def test_each_reason_not_to_be_heard_is_told(
    driven: tuple[type, str], argument: str, offered: QoSProfile, words: str
) -> None:
    with scene("-p", f"planner:{argument}", drives=False) as run, driver(*driven, offered):
        spin_until(run.executor, lambda: run.told("inputs", DiagnosticStatus.ERROR, words))
        # Of the others nobody has been started.
        assert run.told("inputs", DiagnosticStatus.ERROR, "no publisher on /planner/input/camera/front_tele")


@pytest.mark.parametrize(
    ("driven", "compressed", "words"),
    [
        ((CompressedImage, f"{IMAGE}/compressed"), False, f"but {IMAGE}/compressed has one: set compressed: true, and"),
        ((CompressedImage, f"{IMAGE}/compressed"), True, f"but {IMAGE}/compressed has one: set camera_topic or"),
        ((Image, f"{IMAGE}/raw"), True, ""),
    ],
)
def test_pictures_that_come_in_the_other_form_are_found(driven: tuple[type, str], compressed: bool, words: str) -> None:
    argument = f"planner:compressed:={str(compressed).lower()}"
    with scene("-p", argument, drives=False) as run, driver(*driven, profile(RELIABLE)):
        tele = "no publisher on /planner/input/camera/front_tele; "
        spin_until(
            run.executor,
            lambda: run.told("inputs", DiagnosticStatus.ERROR, f"no publisher on {IMAGE}{words and ', '}{words}", tele),
        )


def test_raw_pictures_are_found_where_compressed_ones_are_asked_for() -> None:
    remapped = ("-r", f"planner:~/input/camera/{WIDE}:=/roof/image/compressed", "-p", "planner:compressed:=true")
    with scene(*remapped, drives=False) as run, driver(Image, "/roof/image", profile(RELIABLE)):
        words = "no publisher on /roof/image/compressed, but /roof/image has one: set compressed: false, and"
        spin_until(run.executor, lambda: run.told("inputs", DiagnosticStatus.ERROR, words))


def test_a_publisher_that_falls_silent_and_one_that_goes_are_told_apart() -> None:
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.drive.silent = {WIDE}
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.ERROR, f"nothing on {IMAGE} for ", "though /test"))
        run.drive.close(WIDE)
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.ERROR, f"no publisher on {IMAGE}"))


def test_a_second_publisher_on_one_topic_is_told() -> None:
    with scene() as run, driver(Odometry, ODOMETRY, profile(RELIABLE)):
        # The name of a publisher's node may come after the publisher.
        told = (f"{ODOMETRY} has several publishers: ", "/car/driver", "/test")
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.WARN, *told))


def test_a_reliable_subscription_hears_a_reliable_publisher() -> None:
    reliable = [f"planner:{kind}_reliability:=reliable" for kind in ("image", "odometry", "command")]
    with scene(*(item for argument in reliable for item in ("-p", argument))) as run:
        run.go_until(lambda: len(run.t0_s) >= 2)


def test_a_command_that_was_latched_before_the_planner_came_is_heard() -> None:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = Node("route", context=context, use_global_arguments=False)
    publisher = node.create_publisher(String, COMMAND, profile(RELIABLE, LATCHED))
    publisher.publish(String(data="turn left"))
    try:
        with scene("-p", "planner:command_durability:=transient_local") as run:
            run.go_until(lambda: bool(run.core.seen) and run.core.seen[-1].command == "turn left")
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def test_a_command_that_cannot_be_heard_is_told_and_planning_goes_on() -> None:
    with scene() as run, driver(String, COMMAND, profile(BEST_EFFORT)):
        run.go_until(lambda: run.told("inputs", DiagnosticStatus.WARN, COMMAND, "/car/driver (QoS mismatch: offers"))
        run.goes_on_within(RECOVERY_S)
