"""When the controller commands, brakes, or keeps silent."""

from dataclasses import replace

import numpy as np
import pytest

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import DriveCommand, Trajectory, seconds_to_ns
from flatrope_planner.nodes.following import Follower, Following
from flatrope_planner.planning.observation import OdometrySample
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.pose import Pose, yaw_quaternion

SPEED_MPS = 5.0
VEHICLE = Following(max_plan_age_s=1.2, braking_mps2=2.0, simulator_waits=False)
SIMULATOR = replace(VEHICLE, simulator_waits=True)


def plan(t0_s: float, x_m: float = 0.0) -> PlacedTrajectory:
    """Straight ahead at constant speed from (x, 0)."""
    time_s = np.arange(1, FUTURE_POINTS + 1) * 0.1
    position = np.stack([SPEED_MPS * time_s, np.zeros_like(time_s), np.zeros_like(time_s)], axis=1)
    speed, zeros = np.full(FUTURE_POINTS, SPEED_MPS), np.zeros(FUTURE_POINTS)
    trajectory = Trajectory(position, zeros, speed, np.zeros((FUTURE_POINTS, 2)))
    return PlacedTrajectory(trajectory, seconds_to_ns(t0_s), "map", Pose(x_m, 0.0, 0.0, yaw_quaternion(0.0)))


def at(time_s: float, x_m: float, y_m: float = 0.0) -> OdometrySample:
    velocity = np.array([SPEED_MPS, 0.0, 0.0])
    position_m = np.array([x_m, y_m, 0.0])
    return OdometrySample(seconds_to_ns(time_s), position_m, yaw_quaternion(0.0), velocity, frame_id="map")


def following(settings: Following, t0_s: float = 10.0) -> Follower:
    follower = Follower(settings)
    follower.take_plan(plan(t0_s))
    return follower


def test_silent_until_there_is_a_plan_and_odometry() -> None:
    follower = Follower(VEHICLE)
    follower.take_odometry(at(10.0, 0.0))
    assert follower.follow() is None
    assert follower.brake(0.1) is None
    assert following(VEHICLE).follow() is None


def test_on_the_plan_the_plan_is_driven() -> None:
    follower = following(VEHICLE)
    follower.take_odometry(at(10.5, 2.5))
    command = follower.follow()
    assert command is not None
    assert command.speed_mps == pytest.approx(SPEED_MPS)
    assert command.yaw_rate_radps == pytest.approx(0.0)


def test_beside_the_plan_it_steers_back() -> None:
    follower = following(VEHICLE)
    follower.take_odometry(at(10.5, 2.5, y_m=-0.5))
    command = follower.follow()
    assert command is not None
    assert command.yaw_rate_radps > 0.05


@pytest.mark.parametrize(("time_s", "x_m"), [(11.3, 6.5), (8.0, -10.0)])
def test_a_plan_too_old_or_of_a_time_to_come_is_not_followed(time_s: float, x_m: float) -> None:
    follower = following(VEHICLE)
    follower.take_odometry(at(time_s, x_m))
    assert follower.follow() is None


def test_a_plan_made_elsewhere_is_not_followed() -> None:
    follower = following(VEHICLE)
    # Half a second later 200 m away: another scene.
    follower.take_odometry(at(10.5, 200.0))
    assert follower.follow() is None


def test_a_plan_from_before_the_localisation_was_corrected_is_not_followed() -> None:
    follower = following(VEHICLE)
    for step in range(5):
        follower.take_odometry(at(10.0 + 0.05 * step, 0.25 * step))
    assert follower.follow() is not None
    # 1.5 m to the side of a way that is driven straight on: steering for it would be a swerve.
    for step in range(5, 10):
        follower.take_odometry(at(10.0 + 0.05 * step, 0.25 * step, 1.5))
        assert follower.follow() is None
    follower.take_plan(plan(10.4, 2.0))
    assert follower.follow() is not None


def test_after_time_went_back_a_correction_is_forgotten() -> None:
    follower = Follower(VEHICLE)
    for step in range(10):
        follower.take_odometry(at(10.0 + 0.05 * step, 0.25 * step, 1.5 * (step // 5)))
    for step in range(5):
        follower.take_odometry(at(3.0 + 0.05 * step, 0.25 * step))
    follower.take_plan(plan(3.1, 0.5))
    assert follower.follow() is not None


def test_a_plan_in_another_frame_is_not_followed() -> None:
    follower = following(VEHICLE)
    follower.take_odometry(replace(at(10.5, 2.5), frame_id="odom"))
    assert follower.follow() is None


def test_without_a_plan_the_vehicle_brakes_to_a_standstill_on_its_bend() -> None:
    follower = following(VEHICLE)
    follower.take_odometry(at(10.5, 2.5, y_m=-0.5))
    driven = follower.follow()
    assert driven is not None
    first = follower.brake(0.1)
    assert first is not None
    assert first.speed_mps == pytest.approx(driven.speed_mps - 0.2)
    assert first.yaw_rate_radps / first.speed_mps == pytest.approx(driven.yaw_rate_radps / driven.speed_mps)
    commands = [follower.brake(0.1) for _ in range(30)]
    assert commands[-1] == DriveCommand(0.0, 0.0)


def test_where_the_simulator_waits_silence_is_the_brake() -> None:
    follower = following(SIMULATOR)
    follower.take_odometry(at(12.0, 10.0))
    assert follower.follow() is None
    assert follower.brake(0.1) is None
    # The plan that was waited for sets it going without new odometry.
    follower.take_plan(plan(11.9, 9.5))
    assert follower.follow() is not None


def test_a_fallback_stops_a_vehicle_that_is_driven_but_does_not_take_the_wheel() -> None:
    follower = Follower(VEHICLE)
    follower.take_odometry(at(10.5, 2.5))
    follower.take_plan(plan(10.0), is_fallback=True)
    assert not follower.engaged
    assert follower.follow() is None
    follower.take_plan(plan(10.0))
    stop = plan(10.4, 2.0)
    braking = replace(stop.trajectory, speed_mps=np.full(FUTURE_POINTS, 3.0))
    follower.take_plan(replace(stop, trajectory=braking), is_fallback=True)
    command = follower.follow()
    assert command is not None
    assert command.speed_mps < 4.0


def test_a_fallback_does_not_take_the_place_of_a_newer_plan_that_is_good() -> None:
    follower = following(VEHICLE)
    follower.take_odometry(at(10.5, 2.5))
    stop = plan(9.9, -0.5)
    standing = replace(stop.trajectory, speed_mps=np.zeros(FUTURE_POINTS))
    follower.take_plan(replace(stop, trajectory=standing), is_fallback=True)
    command = follower.follow()
    assert command is not None
    assert command.speed_mps == pytest.approx(SPEED_MPS)
    # After the clock was set back the newer plan is of another drive.
    follower.take_odometry(at(5.5, 2.5))
    follower.take_plan(plan(5.0), is_fallback=True)
    assert follower.follow() is not None


def test_a_simulator_that_waits_is_not_set_going_while_the_plan_is_pending() -> None:
    for settings, goes_on in ((SIMULATOR, False), (VEHICLE, True)):
        follower = following(settings)
        follower.take_odometry(at(11.3, 6.5))
        # The good plan is too old, the next one is still being made.
        follower.take_plan(plan(11.2, 6.0), is_fallback=True, is_pending=True)
        assert (follower.follow() is not None) is goes_on
        # A refused plan is an answer: it is not waited for any longer.
        follower.take_plan(plan(11.2, 6.0), is_fallback=True)
        assert follower.follow() is not None
