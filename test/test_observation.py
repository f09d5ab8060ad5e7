"""The observation buffer: aligned by time stamps, honest about what is missing, bounded."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flatrope_planner.dimensions import HISTORY_POSES
from flatrope_planner.domain import CameraFrame, EgoHistory, Floats, Image, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.observation import ObservationBuffer, ObservationSpec, OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

SPEC = ObservationSpec(cameras=("wide", "tele"), frames_per_camera=2, frame_period_s=0.5)
SPEED_MPS, YAW_RATE_RADPS = 8.0, 0.2

Motion = Callable[[float], OdometrySample]


def picture(shade: int = 0) -> Image:
    return np.full((2, 3, 3), shade, dtype=np.uint8)


def sample(time_s: float, x_m: float, y_m: float = 0.0, yaw_rad: float = 0.0, **motion: float) -> OdometrySample:
    return OdometrySample(
        seconds_to_ns(time_s),
        np.array([x_m, y_m, 0.0]),
        yaw_quaternion(yaw_rad),
        np.array([motion.get("speed", 0.0), 0.0, 0.0]),
        motion.get("yaw_rate", 0.0),
    )


def straight(time_s: float) -> OdometrySample:
    return sample(time_s, SPEED_MPS * time_s, speed=SPEED_MPS)


def circling(time_s: float) -> OdometrySample:
    """Constant speed and yaw rate from the origin: x = v/w sin(wt), y = v/w (1 - cos(wt))."""
    radius_m, angle = SPEED_MPS / YAW_RATE_RADPS, YAW_RATE_RADPS * time_s
    return sample(
        time_s,
        radius_m * np.sin(angle),
        radius_m * (1.0 - np.cos(angle)),
        angle,
        speed=SPEED_MPS,
        yaw_rate=YAW_RATE_RADPS,
    )


def filled(motion: Motion, odometry_s: Floats, t0_s: float = 3.0) -> ObservationBuffer:
    """A buffer with images every 0.1 s up to t0 and odometry at the given times."""
    buffer = ObservationBuffer(SPEC)
    for time_s in np.arange(t0_s - 1.0, t0_s + 0.01, 0.1):
        for camera in SPEC.cameras:
            buffer.add_image(camera, CameraFrame(seconds_to_ns(time_s), picture()))
    for time_s in odometry_s:
        buffer.add_odometry(motion(float(time_s)))
    return buffer


def history_of_circle() -> EgoHistory:
    """The exact history of `circling`, in the ego frame, worked out from the circle's geometry."""
    back = np.arange(HISTORY_POSES - 1, -1, -1) * -0.1 * YAW_RATE_RADPS
    radius_m = SPEED_MPS / YAW_RATE_RADPS
    position_m = np.stack([radius_m * np.sin(back), radius_m * (1.0 - np.cos(back)), np.zeros_like(back)], axis=1)
    cos, sin, zero = np.cos(back), np.sin(back), np.zeros_like(back)
    rows = [[cos, -sin, zero], [sin, cos, zero], [zero, zero, zero + 1.0]]
    return EgoHistory(position_m, np.stack([np.stack(row, axis=-1) for row in rows], axis=-2))


@pytest.mark.parametrize("rate_hz", [20.0, 50.0])
def test_history_is_the_motion_whatever_the_rate(rate_hz: float) -> None:
    history = filled(circling, np.arange(1.0, 3.2, 1.0 / rate_hz)).observe().ego_history
    exact = history_of_circle()
    # Linear interpolation stays within v w dt^2 / 8 of a circle: 0.5 mm at 20 Hz.
    np.testing.assert_allclose(history.position_m, exact.position_m, atol=1e-3)
    np.testing.assert_allclose(history.rotation, exact.rotation, atol=1e-9)


def test_uneven_rates_and_arrival_out_of_order_change_nothing() -> None:
    random = np.random.default_rng(1)
    times_s = np.arange(1.0, 3.2, 0.05) + random.uniform(-0.02, 0.02, 44)
    ordered = filled(straight, times_s).observe().ego_history
    mixed_up = np.concatenate([random.permutation(part) for part in np.split(times_s, 4)])
    shuffled = filled(straight, mixed_up).observe().ego_history
    expected_x_m = -SPEED_MPS * np.arange(HISTORY_POSES - 1, -1, -1) * 0.1
    np.testing.assert_allclose(ordered.position_m[:, 0], expected_x_m, atol=1e-6)
    np.testing.assert_array_equal(ordered.position_m, shuffled.position_m)


def test_odometry_behind_the_images_is_carried_on_along_the_arc() -> None:
    history = filled(circling, np.arange(1.0, 2.86, 0.05)).observe().ego_history
    # v w dt^2 / 8 for the 0.15 s that are carried on.
    np.testing.assert_allclose(history.position_m, history_of_circle().position_m, atol=4.6e-3)


def test_odometry_too_far_behind_is_not_made_up() -> None:
    with pytest.raises(NotReadyError, match=r"0\.50 s behind"):
        filled(straight, np.arange(1.0, 2.51, 0.05)).observe()


def test_a_gap_in_the_history_is_named() -> None:
    times_s = np.arange(1.0, 3.2, 0.05)
    with pytest.raises(NotReadyError, match=r"gap of 0\.45 s"):
        filled(straight, times_s[(times_s < 2.02) | (times_s > 2.43)]).observe()


def test_a_gap_before_the_history_does_not_matter() -> None:
    times_s = np.arange(0.0, 3.2, 0.05)
    filled(straight, times_s[(times_s < 0.5) | (times_s > 1.4)]).observe()


def test_short_history_is_not_made_up() -> None:
    with pytest.raises(NotReadyError, match=r"0\.30 s are missing"):
        filled(straight, np.arange(1.8, 3.2, 0.05)).observe()


def test_every_silent_input_is_named() -> None:
    buffer = ObservationBuffer(SPEC)
    buffer.add_image("wide", CameraFrame(0, picture()))
    assert buffer.newest_t0_ns() is None
    with pytest.raises(NotReadyError, match="waiting for images of camera tele, odometry"):
        buffer.observe()


def test_t0_waits_for_the_late_camera() -> None:
    buffer = filled(straight, np.arange(1.0, 3.4, 0.05))
    for time_s in (3.1, 3.2):
        buffer.add_image("wide", CameraFrame(seconds_to_ns(time_s), picture(200)))
    assert buffer.newest_t0_ns() == seconds_to_ns(3.0)
    observation = buffer.observe()
    assert list(observation.frames) == ["wide", "tele"]
    for frames in observation.frames.values():
        assert [frame.stamp_ns for frame in frames] == [seconds_to_ns(2.5), seconds_to_ns(3.0)]


def test_frames_are_the_nearest_in_time() -> None:
    buffer = ObservationBuffer(ObservationSpec(("wide",), 2, 0.5))
    for stamp_s, shade in ((2.30, 1), (2.44, 2), (2.58, 3), (3.0, 4)):
        buffer.add_image("wide", CameraFrame(seconds_to_ns(stamp_s), picture(shade)))
    for time_s in np.arange(1.0, 3.2, 0.05):
        buffer.add_odometry(straight(float(time_s)))
    shades = [int(frame.image[0, 0, 0]) for frame in buffer.observe().frames["wide"]]
    assert shades == [2, 4]


def test_a_missing_earlier_frame_is_named() -> None:
    buffer = ObservationBuffer(ObservationSpec(("wide",), 2, 0.5))
    buffer.add_image("wide", CameraFrame(seconds_to_ns(3.0), picture()))
    for time_s in np.arange(1.0, 3.2, 0.05):
        buffer.add_odometry(straight(float(time_s)))
    with pytest.raises(NotReadyError, match=r"camera wide from 0\.50 s before"):
        buffer.observe()


def test_the_first_of_two_images_with_one_stamp_stays() -> None:
    buffer = filled(straight, np.arange(1.0, 3.2, 0.05))
    buffer.add_image("tele", CameraFrame(seconds_to_ns(3.0), picture(9)))
    assert int(buffer.observe().frames["tele"][-1].image[0, 0, 0]) == 0


def test_the_command_comes_along() -> None:
    buffer = filled(straight, np.arange(1.0, 3.2, 0.05))
    buffer.set_command("turn left")
    assert buffer.observe().command == "turn left"


@pytest.mark.parametrize(
    ("field", "value"),
    [("position_m", [np.nan, 0.0, 0.0]), ("quaternion_xyzw", [0.0] * 4), ("linear_velocity_mps", [np.inf, 0.0, 0.0])],
)
def test_broken_odometry_is_refused(field: str, value: list[float]) -> None:
    broken: dict[str, Any] = {field: np.array(value)}
    with pytest.raises(InputError):
        replace(straight(0.0), **broken)


def test_a_camera_nobody_wants_is_refused() -> None:
    with pytest.raises(InputError, match=r"'rear'.*wide, tele"):
        ObservationBuffer(SPEC).add_image("rear", CameraFrame(0, picture()))


@pytest.mark.parametrize("length", [0.91, 1.09])
def test_quaternions_of_about_unit_length_are_read(length: float) -> None:
    buffer = ObservationBuffer(SPEC)
    buffer.add_odometry(OdometrySample(0, np.zeros(3), length * yaw_quaternion(0.4), np.zeros(3)))
    pose = buffer.pose_at(0)
    assert pose.yaw_rad == pytest.approx(0.4)
    assert np.linalg.norm(pose.quaternion_xyzw) == pytest.approx(1.0)


def test_pose_between_samples_and_its_two_signs() -> None:
    buffer = ObservationBuffer(SPEC)
    buffer.add_odometry(sample(0.0, 0.0, yaw_rad=0.0))
    turned = sample(0.2, 2.0, yaw_rad=0.6)
    buffer.add_odometry(OdometrySample(turned.stamp_ns, turned.position_m, -turned.quaternion_xyzw, np.zeros(3)))
    pose = buffer.pose_at(seconds_to_ns(0.05))
    assert pose.x_m == pytest.approx(0.5)
    assert pose.yaw_rad == pytest.approx(0.15)


def test_a_restarted_source_begins_afresh() -> None:
    buffer = filled(straight, np.arange(1.0, 3.2, 0.05))
    buffer.add_odometry(straight(0.0))
    assert buffer.newest_t0_ns() is None
    assert buffer.pose_at(0).x_m == 0.0


def test_a_teleport_cuts_the_history() -> None:
    buffer = filled(straight, np.arange(1.0, 2.9, 0.05))
    buffer.add_odometry(sample(2.95, -500.0))
    buffer.add_odometry(sample(3.0, -500.0))
    with pytest.raises(NotReadyError, match="reach back"):
        buffer.observe()


def test_memory_is_bounded() -> None:
    buffer = ObservationBuffer(SPEC)
    for i in range(20_000):
        buffer.add_odometry(sample(i * 1e-4, 0.0))
        buffer.add_image("wide", CameraFrame(i * 10_000_000, picture()))
    assert len(buffer._odometry.samples) <= 4096
    assert len(buffer._images["wide"].samples) <= 64
