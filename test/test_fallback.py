"""The stop in place of a plan: its numbers by hand, and that any of it passes the validator."""

import numpy as np
import pytest
from test_plan_validator import driven

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.planning.comfort import discomforts
from flatrope_planner.planning.driven_arc import DrivenArc, EgoMoment
from flatrope_planner.planning.fallback import Fallback
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.plan_validator import refusal
from flatrope_planner.planning.pose import Pose, yaw_quaternion

START = Pose(100.0, 50.0, 0.0, yaw_quaternion(0.0))


def ego(t0_s: float, speed_mps: float, curvature: float = 0.0, pose: Pose = START) -> EgoMoment:
    return EgoMoment(seconds_to_ns(t0_s), pose, "map", DrivenArc(speed_mps, curvature))


def knowing(speed_mps: float, curvature: float, accel_mps2: float = 0.0) -> Fallback:
    """One that has seen a good plan at 10 s, at the start."""
    fallback = Fallback()
    trajectory = driven(np.maximum(accel_mps2, -speed_mps / 6.4), curvature, speed_mps)
    fallback.accept(PlacedTrajectory(trajectory, seconds_to_ns(10.0), "map", START))
    return fallback


def test_without_a_plan_it_brakes_on_the_bend_it_drives() -> None:
    stop = Fallback().stop(ego(10.0, 10.0, 0.02))
    # The brake is pressed at 4 m/s^3 to 2.5 m/s^2: steps of 0.4, 0.8, ... 2.4, then 2.5 m/s^2.
    np.testing.assert_allclose(stop.speed_mps[:8], [9.96, 9.88, 9.76, 9.6, 9.4, 9.16, 8.91, 8.66])
    np.testing.assert_allclose(stop.action[:8, 0], [-0.4, -0.8, -1.2, -1.6, -2.0, -2.4, -2.5, -2.5])
    # From 9.16 m/s after 0.6 s on, 2.5 m/s^2 last until sqrt(8 v) is less: v = 0.78 m/s; the rest is let go gently.
    assert stop.speed_mps[5 + 33] == pytest.approx(9.16 - 33 * 0.25)
    assert np.all(stop.speed_mps[45:] == 0.0)
    assert np.all(np.diff(stop.speed_mps) <= 0.0)
    np.testing.assert_allclose(stop.action[:40, 1], 0.02)
    assert refusal(stop, DrivenArc(10.0)) == ""
    assert discomforts(stop, DrivenArc(10.0)) == ()


def test_an_ego_that_stands_keeps_standing() -> None:
    for speed_mps in (0.0, 0.1, -0.05):
        stop = Fallback().stop(ego(10.0, speed_mps, 0.3))
        assert not np.any(stop.position_m)
        assert not np.any(stop.speed_mps)
        assert not np.any(stop.action)


def test_it_keeps_to_the_last_good_plans_path_from_where_the_ego_is_now() -> None:
    # A circle of 50 m to the left, the centre 50 m to the left of the start. After 0.5 s at 10 m/s: 0.1 rad along it.
    fallback, angle = knowing(10.0, 0.02), 0.1
    here = Pose(100.0 + 50.0 * np.sin(angle), 100.0 - 50.0 * np.cos(angle), 0.0, yaw_quaternion(angle))
    stop = fallback.stop(ego(10.5, 10.0, 0.0, here))
    on_ground = here.on_ground.to_outer(stop.position_m[:, :2])
    off_m = np.abs(np.linalg.norm(on_ground - [100.0, 100.0], axis=1) - 50.0)
    assert off_m.max() < 0.1
    np.testing.assert_allclose(stop.speed_mps[:3], [9.96, 9.88, 9.76])
    assert stop.speed_mps[-1] == 0.0


def test_beside_the_path_it_is_led_back_to_it() -> None:
    here = Pose(105.0, 50.8, 0.0, yaw_quaternion(0.0))
    stop = knowing(10.0, 0.0).stop(ego(10.5, 10.0, 0.0, here))
    assert stop.position_m[0, 1] < 0.0
    assert stop.position_m[-1, 1] == pytest.approx(-0.8, abs=0.1)
    assert refusal(stop, DrivenArc(10.0)) == ""


@pytest.mark.parametrize(
    ("t0_s", "pose", "frame_id"),
    [
        # Made 3.1 s ago; of a time to come; elsewhere; heading elsewhere; in another frame.
        (13.1, START, "map"),
        (9.9, START, "map"),
        (10.5, Pose(105.0, 53.0, 0.0, yaw_quaternion(0.0)), "map"),
        (10.5, Pose(105.0, 50.0, 0.0, yaw_quaternion(1.0)), "map"),
        (10.0, START, "odom"),
    ],
)
def test_a_plan_that_is_not_the_egos_any_more_leads_nowhere(t0_s: float, pose: Pose, frame_id: str) -> None:
    moment = EgoMoment(seconds_to_ns(t0_s), pose, frame_id, DrivenArc(10.0))
    stop = knowing(10.0, 0.02).stop(moment)
    assert not np.any(stop.position_m[:, 1])


def test_the_next_stop_brakes_on_where_the_first_one_is() -> None:
    fallback = knowing(10.0, 0.0)
    first = fallback.stop(ego(10.0, 10.0))
    # Half a second later the ego is where the first one wants it: there the next one goes on as the first one does.
    here = Pose(100.0 + float(first.position_m[4, 0]), 50.0, 0.0, yaw_quaternion(0.0))
    following = fallback.stop(ego(10.5, float(first.speed_mps[4]), 0.0, here))
    np.testing.assert_allclose(following.speed_mps[:59], first.speed_mps[5:], atol=1e-9)
    # After a good plan the brake is pressed anew.
    fallback.accept(PlacedTrajectory(driven(0.0, 0.0, 10.0), seconds_to_ns(11.0), "map", START))
    assert fallback.stop(ego(11.0, 10.0)).action[0, 0] == pytest.approx(-0.4)


def test_the_path_is_kept_for_as_long_as_a_stop_takes() -> None:
    fallback = knowing(20.0, 0.01)
    fallback.stop(ego(10.0, 20.0))
    # 4 s later, 60 m along the circle of 100 m, at another heading.
    here = Pose(100.0 + 100.0 * np.sin(0.6), 150.0 - 100.0 * np.cos(0.6), 0.0, yaw_quaternion(0.6))
    stop = fallback.stop(ego(14.0, 10.0, 0.0, here))
    assert stop.position_m[-1, 1] > 1.0


def test_where_the_last_good_plan_stops_earlier_so_does_it() -> None:
    # 4 m/s^2 from 10 m/s: 12.5 m, where 2.5 m/s^2 take 20 m and more.
    fallback = Fallback()
    braking = driven(np.where(np.arange(64) < 25, -4.0, 0.0), 0.0, 10.0)
    fallback.accept(PlacedTrajectory(braking, seconds_to_ns(10.0), "map", START))
    stop = fallback.stop(ego(10.0, 10.0))
    assert stop.position_m[-1, 0] == pytest.approx(12.5, abs=0.3)
    assert -6.0 - 1e-9 <= stop.action[:, 0].min() < -3.0
    assert refusal(stop, DrivenArc(10.0)) == ""


@pytest.mark.parametrize(("free_m", "stops_within_m"), [(40.0, 23.0), (15.0, 14.0), (11.0, 10.0), (3.0, 10.0)])
def test_something_in_the_way_is_braked_for_as_hard_as_need_be(free_m: float, stops_within_m: float) -> None:
    stop = Fallback().stop(ego(10.0, 10.0), free_m)
    assert stop.position_m[-1, 0] < stops_within_m
    assert stop.action[:, 0].min() >= -6.0 - 1e-9
    assert refusal(stop, DrivenArc(10.0)) == ""
    if free_m == 40.0:
        # Far enough for a gentle stop.
        assert stop.action[:, 0].min() == pytest.approx(-2.5)


def test_any_stop_passes_the_validator() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        speed = float(rng.uniform(0.0, 40.0))
        bend = float(rng.uniform(-1.0, 1.0)) * min(0.2, 6.0 / max(speed, 0.5) ** 2)
        fallback = knowing(speed, bend, float(rng.uniform(-2.0, 1.0)))
        shift, turn = rng.normal(0.0, 0.7), rng.normal(0.0, 0.2)
        here = Pose(100.0 + float(rng.uniform(0.0, 5.0)), 50.0 + float(shift), 0.0, yaw_quaternion(float(turn)))
        now = ego(10.0 + float(rng.uniform(0.0, 2.0)), abs(speed + float(rng.normal(0.0, 1.0))), bend, here)
        for free_m in (float("inf"), float(rng.uniform(0.0, 40.0))):
            assert refusal(fallback.stop(now, free_m), now.motion) == ""
