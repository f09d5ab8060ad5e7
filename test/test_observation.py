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
    with pytest.raises(InputError, match=r"stamp 3\.000 s has come before"):
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


# Seconds of the new drive that a plan can be made from: the history, and a picture at its end.
SOONEST_S = 1.5


class Drives:
    """Feeds a buffer with what several sources send, each in its own time, and notes what follows from it."""

    def __init__(self) -> None:
        self.buffer = ObservationBuffer(SPEC)
        self.restarts = self.refused = 0

    def send(self, source: str, time_s: float, shade: int = 0) -> None:
        try:
            if source == "odometry":
                self.restarts += self.buffer.add_odometry(straight(time_s))
            else:
                self.restarts += self.buffer.add_image(source, CameraFrame(seconds_to_ns(time_s), picture(shade)))
        except InputError:
            self.refused += 1

    def drive(self, from_s: float, until_s: float, shade: int = 0, **begin_s: float) -> None:
        """Pictures at 10 Hz and odometry at 20 Hz; sources named begin so much later."""
        for step in range(round((until_s - from_s) / 0.05) + 1):
            for source in ("odometry", *SPEC.cameras):
                if 0.05 * step >= begin_s.get(source, 0.0) and (source == "odometry" or step % 2 == 0):
                    self.send(source, from_s + 0.05 * step, shade)

    def first_t0_s(self, from_s: float) -> float:
        """When, driving on from there, a plan could first be made, of which nothing is from before."""
        before_ns = self.buffer.newest_t0_ns()
        for step in range(60):
            self.drive(from_s + 0.1 * step, from_s + 0.1 * step + 0.05, shade=1)
            try:
                observation = self.buffer.observe()
            except NotReadyError:
                continue
            if observation.t0_ns == before_ns:
                # It is not yet known that the sources began anew; a plan for this t0 has been made.
                continue
            assert {int(f.image[0, 0, 0]) for frames in observation.frames.values() for f in frames} == {1}
            return observation.t0_ns * 1e-9
        pytest.fail("never ready again")


@pytest.mark.parametrize("back_s", [1.0, 1.9, 3.0, 1000.0])
def test_sources_that_begin_anew_are_planned_from_as_soon_as_a_fresh_start_is(back_s: float) -> None:
    drives = Drives()
    drives.drive(2000.0, 2004.0)
    again_s = 2004.0 - back_s
    assert drives.first_t0_s(again_s) == pytest.approx(again_s + SOONEST_S)
    assert 1 <= drives.restarts <= len(SPEC.cameras) + 1


def test_pictures_of_the_new_drive_are_not_put_together_with_poses_of_the_old_one() -> None:
    drives = Drives()
    drives.drive(2000.0, 2004.0)
    for step in range(9):
        for camera in SPEC.cameras:
            drives.send(camera, 2003.0 + 0.1 * step)
    # Old poses would cover all that the new pictures need.
    with pytest.raises(NotReadyError, match="waiting for odometry"):
        drives.buffer.observe()


def test_a_fresh_start_is_planned_from_after_one_and_a_half_seconds() -> None:
    assert Drives().first_t0_s(5.0) == pytest.approx(5.0 + SOONEST_S)


def test_pictures_of_the_old_drive_that_come_after_odometry_of_the_new_one_cost_no_history() -> None:
    drives = Drives()
    drives.drive(2000.0, 2004.0)
    for step in range(4):
        drives.send("odometry", 100.0 + 0.05 * step)
    assert drives.restarts == 1
    for camera in SPEC.cameras:
        drives.send(camera, 2004.1)
    # Odometry up to 100.15 s is there already and is refused as coming a second time.
    assert drives.first_t0_s(100.0) == pytest.approx(100.0 + SOONEST_S)


def test_a_camera_that_alone_begins_anew_is_named_and_nothing_is_planned_from_a_mixture() -> None:
    drives = Drives()
    drives.drive(2000.0, 2004.0)
    for step in range(40):
        drives.send("tele", 1.0 + 0.05 * step)
        drives.send("wide", 2004.0 + 0.05 * step)
        drives.send("odometry", 2004.0 + 0.05 * step)
        if step >= 2:
            with pytest.raises(NotReadyError):
                drives.buffer.observe()
    with pytest.raises(
        NotReadyError, match=r"camera tele is 2003\.00 s behind camera wide; at most 1\.0 s are bridged"
    ):
        drives.buffer.observe()
    assert drives.restarts == 1


def test_a_single_stamp_from_the_past_harms_nothing() -> None:
    drives = Drives()
    drives.drive(2000.0, 2004.0)
    for source in ("odometry", *SPEC.cameras):
        drives.send(source, 1.0)
    assert drives.refused == 3
    assert drives.buffer.observe().t0_ns == seconds_to_ns(2004.0)


@pytest.mark.parametrize("apart_s", [0.0, 0.2, 0.25, 0.26, 0.9])
def test_frames_at_t0_are_at_most_half_a_frame_period_apart(apart_s: float) -> None:
    buffer = ObservationBuffer(SPEC)
    for back_s in (1.5, 1.0, 0.5, 0.0):
        buffer.add_image("wide", CameraFrame(seconds_to_ns(10.0 - back_s), picture()))
        buffer.add_image("tele", CameraFrame(seconds_to_ns(10.0 + apart_s - back_s), picture()))
    for time_s in np.arange(8.0, 11.0, 0.05):
        buffer.add_odometry(straight(float(time_s)))
    lag = buffer.lag()
    assert lag is not None
    assert lag.behind_s == pytest.approx(apart_s)
    # Pictures come every 0.5 s, so that 0.26 s one way are 0.24 s the other way.
    frames = buffer.observe().frames
    newest_ns = [frames[camera][-1].stamp_ns for camera in SPEC.cameras]
    assert abs(newest_ns[0] - newest_ns[1]) <= seconds_to_ns(0.25)


def test_two_slow_cameras_out_of_step_are_not_put_together() -> None:
    buffer = ObservationBuffer(SPEC)
    for step in range(4):
        buffer.add_image("wide", CameraFrame(seconds_to_ns(10.0 + 0.8 * step), picture()))
        buffer.add_image("tele", CameraFrame(seconds_to_ns(10.4 + 0.8 * step), picture()))
    for time_s in np.arange(8.0, 13.0, 0.05):
        buffer.add_odometry(straight(float(time_s)))
    with pytest.raises(NotReadyError, match=r"an image of camera (wide|tele) from 0\.[05]0 s before t0"):
        buffer.observe()


def test_odometry_at_1_khz_keeps_its_history_in_bounded_memory() -> None:
    history = filled(circling, np.arange(0.0, 3.001, 0.001)).observe().ego_history
    np.testing.assert_allclose(history.position_m, history_of_circle().position_m, atol=1e-4)


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
