"""The calibration message against the pinhole formula."""

import numpy as np
import pytest

from flatrope_planner.conversion.cameras import camera_info
from flatrope_planner.simulation.camera import FRONT_TELE, FRONT_WIDE


def test_a_field_of_view_of_90_degrees_has_a_focal_length_of_half_the_width() -> None:
    message = camera_info(FRONT_WIDE.intrinsics(), (896, 320), 2_000_000_000, "ego_vehicle/front_wide")
    np.testing.assert_allclose(message.k, [448.0, 0.0, 448.0, 0.0, 448.0, 160.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(message.p, [448.0, 0.0, 448.0, 0.0, 0.0, 448.0, 160.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(message.r, np.eye(3).ravel())
    assert (message.width, message.height, message.distortion_model) == (896, 320, "plumb_bob")
    assert list(message.d) == [0.0] * 5
    assert (message.header.stamp.sec, message.header.frame_id) == (2, "ego_vehicle/front_wide")


def test_a_field_of_view_of_30_degrees() -> None:
    message = camera_info(FRONT_TELE.intrinsics(), (896, 320), 0, "camera")
    assert message.k[0] == pytest.approx(448.0 / np.tan(np.radians(15.0)))
