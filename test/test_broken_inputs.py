"""What the planner node says about inputs that are odd or broken, over the real middleware."""

from array import array
from collections.abc import Callable

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node
from ros import Listener, closing, ros, spin_until
from sensor_msgs.msg import CompressedImage, Image
from stand_ins import StraightCore

from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

STATUS = "/planner/output/status"
PARAMETERS = ("-p", "planner:status_period_s:=0.1")
CAMERA = "/planner/input/camera/front_wide"


def inputs_of(listener: Listener) -> tuple[DiagnosticStatus, dict[str, str]]:
    """The newest status of the inputs and its values."""
    found = [each for array in listener[STATUS] for each in array.status if each.name.endswith("inputs")]
    status = found[-1] if found else DiagnosticStatus()
    return status, {item.key: item.value for item in status.values}


def northward(step: int) -> Odometry:
    """North at 8 m/s, 20 times a second, with a twist in the frame of the map."""
    time_s = 1.0 + 0.05 * step
    position, velocity = np.array([0.0, 8.0 * time_s, 0.0]), np.array([0.0, 8.0, 0.0])
    sample = OdometrySample(seconds_to_ns(time_s), position, yaw_quaternion(np.pi / 2.0), velocity)
    return odometry_message(sample, "map", "base_link")


@pytest.mark.parametrize(
    ("wanted", "read_as", "complaint"),
    [
        ("auto", "parent", "in the parent frame map instead of the child frame base_link, and read so"),
        ("parent", "parent", ""),
        ("child", "child", "in the parent frame, twist_frame is child (child base_link, parent map)"),
    ],
)
def test_the_frame_of_the_twist_is_told(wanted: str, read_as: str, complaint: str) -> None:
    with ros(*PARAMETERS, "-p", f"planner:twist_frame:={wanted}"):
        test = Node("test")
        with closing(PlannerNode(lambda _: StraightCore()), test) as executor:
            listener = Listener(test, [(DiagnosticArray, STATUS)])
            poses = test.create_publisher(Odometry, "/planner/input/odometry", qos.BRIDGE_OUTPUT)
            steps = iter(range(10_000))

            def told() -> bool:
                return inputs_of(listener)[1].get("odometry.twist_fits") == "parent"

            spin_until(executor, told, lambda: poses.publish(northward(next(steps))))
    status, values = inputs_of(listener)
    assert (values["odometry.twist_frame"], values["odometry.twist_read_as"]) == (wanted, read_as)
    assert (complaint in status.message) if complaint else ("twist" not in status.message)


def cut_short() -> CompressedImage:
    picture = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    data = cv2.imencode(".jpg", picture)[1].tobytes()
    return CompressedImage(header=to_header(0, "camera"), format="jpeg", data=array("B", data[:-50]))


@pytest.mark.parametrize(
    ("compressed", "make", "rejection"),
    [
        (False, lambda: Image(encoding="32FC1", width=2, height=2, step=8), "encoding '32FC1' is not supported"),
        (False, lambda: Image(encoding="bgr8", width=2, height=2, step=5), "expected a step of at least 6"),
        (True, cut_short, "JPEG is cut short"),
    ],
)
def test_pictures_that_are_none_are_counted_and_named(
    compressed: bool, make: Callable[[], Image | CompressedImage], rejection: str
) -> None:
    with ros(*PARAMETERS, "-p", f"planner:compressed:={str(compressed).lower()}"):
        test = Node("test")
        with closing(PlannerNode(lambda _: StraightCore()), test) as executor:
            listener = Listener(test, [(DiagnosticArray, STATUS)])
            kind = CompressedImage if compressed else Image
            camera = test.create_publisher(kind, CAMERA, qos.BRIDGE_OUTPUT)

            def told() -> bool:
                return int(inputs_of(listener)[1].get("camera front_wide.rejected", "0")) > 1

            spin_until(executor, told, lambda: camera.publish(make()))
    assert rejection in inputs_of(listener)[1]["camera front_wide.rejection"]
