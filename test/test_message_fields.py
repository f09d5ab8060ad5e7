"""Every field of an outgoing message is of its type: rclpy checks that only if it is asked to."""

from typing import Any

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.cameras import camera_info
from flatrope_planner.conversion.compression import to_jpeg
from flatrope_planner.conversion.images import camera_frame, to_bgra8
from flatrope_planner.conversion.odometry import odometry_message, odometry_sample
from flatrope_planner.conversion.plans import twist_message
from flatrope_planner.domain import DriveCommand
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

# As they come out of NumPy, whose scalars are no numbers to rclpy.
STAMP_NS: Any = np.int64(1_500_000_000)
SINGLE: Any = np.float32(0.5)


def checked(message: Any) -> None:
    """Make the message and its parts once more, with the check."""
    fields = {name: getattr(message, name) for name in message.get_fields_and_field_types()}
    for part in fields.values():
        if hasattr(part, "get_fields_and_field_types"):
            checked(part)
    type(message)(check_fields=True, **fields)


def sample() -> OdometrySample:
    return OdometrySample(STAMP_NS, np.zeros(3), yaw_quaternion(0.3), np.ones(3), SINGLE)


MESSAGES = {
    "odometry": lambda: odometry_message(sample(), "map", "base_link"),
    "picture": lambda: to_bgra8(np.zeros((4, 6, 3), np.uint8), STAMP_NS, "camera"),
    "JPEG": lambda: to_jpeg(to_bgra8(np.zeros((4, 6, 3), np.uint8), STAMP_NS, "camera"), 90),
    "calibration": lambda: camera_info(np.eye(3), (np.int64(6), np.int64(4)), STAMP_NS, "camera"),  # type: ignore[arg-type]
    "command": lambda: twist_message(DriveCommand(SINGLE, SINGLE)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_fields_are_of_their_types(name: str) -> None:
    checked(MESSAGES[name]())


def test_the_check_is_one() -> None:
    with pytest.raises(AssertionError):
        checked(ImageMessage(height=np.int64(3)))


def test_numbers_of_another_type_come_in_as_numbers() -> None:
    message = Odometry()
    message.pose.pose.position.x, message.twist.twist.angular.z = 3, np.float32(0.5)
    seen = odometry_sample(message)
    assert seen.position_m.tolist() == [3.0, 0.0, 0.0]
    assert type(seen.yaw_rate_radps) is float
    picture = ImageMessage(height=np.int64(1), width=True, encoding="mono8", step=np.uint8(1), data=[7])
    assert camera_frame(picture).image.tolist() == [[[7, 7, 7]]]
