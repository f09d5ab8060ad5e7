"""The reference driver's plans obey their own model and the rules of the road."""

import numpy as np
import pytest

from flatrope_planner.domain import Decision
from flatrope_planner.simulation.driver import ReferenceDriver
from flatrope_planner.simulation.ego import REAR_AXLE_TO_FRONT_M, EgoState
from flatrope_planner.simulation.world import Family, World


def at_speed(world: World, s_m: float, speed_mps: float, d_m: float = 0.0, yaw_rad: float = 0.0) -> World:
    """The world with its ego placed on the lane at s."""
    x, y, yaw = world.scene.layout.line.at(s_m, d_m)
    world.s_m = s_m
    world.place_ego(EgoState(x, y, yaw + yaw_rad, speed_mps))
    return world


def test_actions_integrate_to_the_trajectory() -> None:
    plan = ReferenceDriver(World(Family.CURVE, 1)).plan()
    x = y = yaw = 0.0
    speed = World(Family.CURVE, 1).ego.speed_mps
    for i, (accel, curvature) in enumerate(plan.trajectory.action):
        following = speed + 0.1 * accel
        turned = yaw + curvature * (0.1 * speed + 0.005 * accel)
        x += 0.05 * (speed * np.cos(yaw) + following * np.cos(turned))
        y += 0.05 * (speed * np.sin(yaw) + following * np.sin(turned))
        speed, yaw = following, turned
        assert plan.trajectory.position_m[i] == pytest.approx((x, y, 0.0), abs=1e-9)
        assert plan.trajectory.speed_mps[i] == pytest.approx(speed, abs=1e-9)


@pytest.mark.parametrize("gap_m", [20.0, 30.0, 38.0])
def test_red_light_ahead_means_standing_before_the_line(gap_m: float) -> None:
    world = World(
        Family.TRAFFIC_LIGHT,
        next(s for s in range(9) if World(Family.TRAFFIC_LIGHT, s).scene.lights[0].green_from_s > 1),
    )
    line_s = world.scene.lights[0].stop_s_m
    plan = ReferenceDriver(at_speed(world, line_s - REAR_AXLE_TO_FRONT_M - gap_m, 8.0)).plan()
    assert plan.decision is Decision.STOP
    assert "red" in plan.rationale
    assert np.all(plan.trajectory.position_m[:, 0] <= gap_m - 0.7)
    assert np.all(plan.trajectory.speed_mps >= 0.0)


def test_free_road_below_cruise_accelerates_and_at_cruise_keeps() -> None:
    world = World(Family.FREE_ROAD, 2)
    world.scene.road.vehicles[:] = world.scene.road.vehicles[:1]
    assert ReferenceDriver(at_speed(world, 10.0, 4.0)).plan().decision is Decision.ACCELERATE
    assert ReferenceDriver(at_speed(world, 10.0, 10.0)).plan().decision is Decision.KEEP
    assert ReferenceDriver(at_speed(world, 10.0, 13.0)).plan().decision is Decision.SLOW


@pytest.mark.parametrize(("d_m", "yaw_rad"), [(1.2, 0.0), (-1.0, 0.0), (0.0, 0.12), (0.8, -0.1)])
def test_a_car_off_its_lane_is_brought_back(d_m: float, yaw_rad: float) -> None:
    world = World(Family.FREE_ROAD, 2)
    plan = ReferenceDriver(at_speed(world, 10.0, 9.0, d_m, yaw_rad)).plan()
    end = plan.trajectory.position_m[-1, :2]
    cos, sin = np.cos(world.ego.yaw_rad), np.sin(world.ego.yaw_rad)
    x, y = world.ego.x_m + cos * end[0] - sin * end[1], world.ego.y_m + sin * end[0] + cos * end[1]
    assert abs(world.scene.layout.line.project(x, y)[1]) < 0.15


def test_a_stopped_vehicle_is_passed_on_the_left() -> None:
    world = World(Family.STOPPED_VEHICLE, 1)
    stopped = next(v for v in world.scene.vehicles if v.parked)
    plan = ReferenceDriver(at_speed(world, float(stopped.position[0]) - 22.0, 8.0)).plan()
    assert plan.decision is Decision.LEFT
    beside = np.argmin(np.abs(plan.trajectory.position_m[:, 0] - 22.0))
    assert plan.trajectory.position_m[beside, 1] > 1.0
