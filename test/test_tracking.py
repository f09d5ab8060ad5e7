"""Tracking brings a vehicle onto its plan and holds it there."""

from dataclasses import dataclass

import numpy as np
import pytest

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.planning.pose import Pose2D
from flatrope_planner.planning.tracking import track

STEP_S = 0.05


@dataclass
class Bicycle:
    """A kinematic vehicle whose speed follows with a lag of 0.3 s."""

    x_m: float = 0.0
    y_m: float = 0.0
    yaw_rad: float = 0.0
    speed_mps: float = 8.0

    @property
    def pose(self) -> Pose2D:
        return Pose2D(self.x_m, self.y_m, self.yaw_rad)

    def move(self, speed_mps: float, yaw_rate_radps: float) -> None:
        self.speed_mps += (speed_mps - self.speed_mps) * STEP_S / 0.3
        self.yaw_rad += yaw_rate_radps * STEP_S
        self.x_m += self.speed_mps * STEP_S * np.cos(self.yaw_rad)
        self.y_m += self.speed_mps * STEP_S * np.sin(self.yaw_rad)


def plan_along(speed_mps: Floats, curvature: float = 0.0) -> Trajectory:
    """A plan with the given speeds (64,) on an arc from the origin."""
    distance_m = np.cumsum(speed_mps) * 0.1
    yaw = curvature * distance_m
    x = distance_m if curvature == 0.0 else np.sin(yaw) / curvature
    y = np.zeros(FUTURE_POINTS) if curvature == 0.0 else (1.0 - np.cos(yaw)) / curvature
    return Trajectory(np.stack([x, y, 0.0 * x], axis=1), yaw, speed_mps, np.zeros((FUTURE_POINTS, 2)))


def follow(car: Bicycle, plan: Trajectory, until_s: float) -> None:
    """Drive on one plan made for the origin at time 0."""
    for step in range(round(until_s / STEP_S)):
        command = track(plan, Pose2D(0.0, 0.0, 0.0), car.pose, car.speed_mps, step * STEP_S)
        car.move(command.speed_mps, command.yaw_rate_radps)


def test_converges_from_beside_the_plan() -> None:
    car = Bicycle(y_m=0.8, yaw_rad=0.1)
    follow(car, plan_along(np.full(FUTURE_POINTS, 8.0)), 5.0)
    assert abs(car.y_m) < 0.05
    assert abs(car.yaw_rad) < 0.02
    assert car.x_m == pytest.approx(40.0, abs=1.0)


@pytest.mark.parametrize("curvature", [0.04, -0.04])
def test_follows_an_arc(curvature: float) -> None:
    car = Bicycle(speed_mps=6.0)
    follow(car, plan_along(np.full(FUTURE_POINTS, 6.0), curvature), 5.0)
    # Distance from the centre of the arc at (0, 1 / curvature).
    assert np.hypot(car.x_m, car.y_m - 1.0 / curvature) == pytest.approx(25.0, abs=0.25)
    assert car.yaw_rad == pytest.approx(6.0 * 5.0 * curvature, abs=0.08)


def test_the_pose_at_t0_places_the_plan() -> None:
    plan = plan_along(np.full(FUTURE_POINTS, 8.0))
    north = Pose2D(100.0, -50.0, np.pi / 2.0)
    command = track(plan, north, Pose2D(100.5, -46.0, np.pi / 2.0), 8.0, 0.5)
    # The vehicle is to the right of a plan that leads north: it must turn left.
    assert command.yaw_rate_radps > 0.0
    assert command.speed_mps == pytest.approx(8.0)


def test_stops_where_the_plan_stops_and_stays() -> None:
    speeds = np.clip(8.0 - 2.0 * (np.arange(FUTURE_POINTS) + 1) * 0.1, 0.0, None)
    car = Bicycle()
    follow(car, plan_along(speeds), 6.3)
    assert car.x_m == pytest.approx(16.0, abs=0.8)
    assert car.speed_mps < 0.02


def test_a_plan_to_stand_with_a_little_noise_stands() -> None:
    noisy = np.abs(np.random.default_rng(0).normal(0.0, 0.05, FUTURE_POINTS))
    command = track(plan_along(noisy), Pose2D(0, 0, 0), Pose2D(0, 0, 0), 0.0, 0.2)
    assert (command.speed_mps, command.yaw_rate_radps) == (0.0, 0.0)


def test_pulls_away_from_standing() -> None:
    speeds = np.minimum(1.5 * (np.arange(FUTURE_POINTS) + 1) * 0.1, 8.0)
    car = Bicycle(speed_mps=0.0)
    follow(car, plan_along(speeds), 4.0)
    assert car.speed_mps == pytest.approx(6.0, abs=0.6)
    assert car.x_m == pytest.approx(12.0, abs=1.0)


def test_a_plan_that_has_run_out_stops() -> None:
    plan = plan_along(np.full(FUTURE_POINTS, 8.0))
    assert track(plan, Pose2D(0, 0, 0), Pose2D(51.0, 0, 0), 8.0, 6.4).speed_mps == 0.0


def test_a_late_plan_is_followed_at_its_own_time() -> None:
    speeds = np.linspace(8.0, 4.0, FUTURE_POINTS)
    behind = track(plan_along(speeds), Pose2D(0, 0, 0), Pose2D(7.7, 0, 0), 8.0, 1.0)
    assert behind.speed_mps == pytest.approx(np.interp(1.3, np.arange(1, 65) * 0.1, speeds), abs=0.1)
