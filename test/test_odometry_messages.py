"""Odometry there and back, and odometry that is none."""

import numpy as np
import pytest
from nav_msgs.msg import Odometry

from flatrope_planner.conversion.odometry import odometry_message, odometry_sample
from flatrope_planner.errors import InputError
from flatrope_planner.planning.observation import OdometrySample


def sample() -> OdometrySample:
    return OdometrySample(
        stamp_ns=3_000_000_001,
        position_m=np.array([1.0, -2.0, 0.5]),
        quaternion_xyzw=np.array([0.0, 0.0, 0.6, 0.8]),
        linear_velocity_mps=np.array([7.0, 0.1, 0.0]),
        yaw_rate_radps=0.3,
    )


def test_a_sample_survives_the_message() -> None:
    message = odometry_message(sample(), "map", "ego_vehicle")
    assert (message.header.frame_id, message.child_frame_id) == ("map", "ego_vehicle")
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (3, 1)
    back = odometry_sample(message)
    assert (back.stamp_ns, back.yaw_rate_radps) == (3_000_000_001, 0.3)
    np.testing.assert_array_equal(back.position_m, [1.0, -2.0, 0.5])
    np.testing.assert_array_equal(back.quaternion_xyzw, [0.0, 0.0, 0.6, 0.8])
    np.testing.assert_array_equal(back.linear_velocity_mps, [7.0, 0.1, 0.0])


def test_numbers_that_are_none_are_refused() -> None:
    message = odometry_message(sample(), "map", "ego_vehicle")
    message.pose.pose.position.x = float("nan")
    with pytest.raises(InputError, match="not finite"):
        odometry_sample(message)


def test_an_orientation_of_zeros_is_refused() -> None:
    message = Odometry()
    message.pose.pose.orientation.w = 0.0
    with pytest.raises(InputError, match=r"quaternion \[0.0, 0.0, 0.0, 0.0\] has length 0, expected 0.9 to 1.1"):
        odometry_sample(message)


@pytest.mark.parametrize(("frame_id", "child_frame_id"), [("f" * 256, "base"), ("map", "f" * 10_000_000)])
def test_frames_of_endless_names_are_refused(frame_id: str, child_frame_id: str) -> None:
    # The plan's path would repeat them in each of its 64 poses.
    with pytest.raises(InputError, match=r"frame_id 'f+\.\.\.' of \d+ characters, expected at most 255"):
        odometry_sample(odometry_message(sample(), frame_id, child_frame_id))
    odometry_sample(odometry_message(sample(), "f" * 255, "f" * 255))
