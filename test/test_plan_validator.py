"""The validator: plans that break one rule each, and the values in the complaint worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.planning.comfort import discomforts
from flatrope_planner.planning.driven_arc import DrivenArc
from flatrope_planner.planning.plan_validator import refusal

DT = 0.1


def driven(accel: Floats | float, curvature: Floats | float, speed_mps: float) -> Trajectory:
    """What a unicycle does under these actions, integrated here once more."""
    accel = np.broadcast_to(np.asarray(accel, dtype=np.float64), FUTURE_POINTS)
    curvature = np.broadcast_to(np.asarray(curvature, dtype=np.float64), FUTURE_POINTS)
    speed = np.concatenate([[speed_mps], speed_mps + np.cumsum(accel) * DT])
    yaw = np.concatenate([[0.0], np.cumsum(curvature * (speed[:-1] + speed[1:]) / 2.0 * DT)])
    velocity = speed[:, None] * np.stack([np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)], axis=1)
    position = np.cumsum((velocity[:-1] + velocity[1:]) / 2.0 * DT, axis=0)
    return Trajectory(position, yaw[1:], speed[1:], np.stack([accel, curvature], axis=1))


def moved(trajectory: Trajectory, index: int, by_m: tuple[float, float, float]) -> Trajectory:
    """The same with one point elsewhere."""
    position = trajectory.position_m.copy()
    position[index] += by_m
    return replace(trajectory, position_m=position)


def creeping(speed_mps: float) -> Trajectory:
    """Backwards or forwards without end at a speed that the first step takes from 0."""
    return driven(np.array([speed_mps / DT, *np.zeros(FUTURE_POINTS - 1)]), 0.0, 0.0)


CRUISE = driven(0.0, 0.0, 10.0)


@pytest.mark.parametrize(
    ("trajectory", "ego"),
    [
        (CRUISE, DrivenArc(10.0)),
        # As measured, a little off.
        (CRUISE, DrivenArc(11.9)),
        (driven(-2.5, 0.02, 16.0), DrivenArc(16.0)),
        # Right round at a junction, and a narrow U-turn.
        (driven(0.0, -0.15, 3.0), DrivenArc(3.0)),
        # Standing, and creeping as a learnt plan does: 0.02 m/s back is 0.13 m in 6.4 s.
        (driven(0.0, 0.0, 0.0), DrivenArc(0.0)),
        (creeping(-0.02), DrivenArc(0.0)),
        (creeping(0.08), DrivenArc(0.1)),
        # Up a slope of 15 %.
        (replace(CRUISE, position_m=CRUISE.position_m + np.outer(np.arange(1, 65), [0.0, 0.0, 0.15])), DrivenArc(10.0)),
    ],
)
def test_what_a_car_can_drive_is_good(trajectory: Trajectory, ego: DrivenArc) -> None:
    assert refusal(trajectory, ego) == ""


def first_steps(*accel_mps2: float) -> Floats:
    """These accelerations, then none."""
    return np.array([*accel_mps2, *np.zeros(FUTURE_POINTS - len(accel_mps2))])


@pytest.mark.parametrize(
    ("trajectory", "complaint"),
    [
        (moved(CRUISE, 5, (np.nan, 0.0, 0.0)), "a number of the plan is not finite"),
        (replace(CRUISE, speed_mps=CRUISE.speed_mps * np.inf), "a number of the plan is not finite"),
        (replace(CRUISE, yaw_rad=np.full(FUTURE_POINTS, np.nan)), "a number of the plan is not finite"),
        (replace(CRUISE, action=CRUISE.action * np.nan), "a number of the plan is not finite"),
        (driven(0.0, 0.0, 14.0), "it begins with 14.0 m/s, the ego drives 10.0 m/s"),
        # All of it 3 m ahead of where the ego leads.
        (
            replace(CRUISE, position_m=CRUISE.position_m + np.array([3.0, 0.0, 0.0])),
            "its first point is 4.00 m from the ego, expected 1.00 m",
        ),
        # 10 m/s and -2 m/s^2 cross zero after 5 s and end at -2.8 m/s.
        (driven(-2.0, 0.0, 10.0), "it reverses with 2.80 m/s 6.4 s after t0"),
        (moved(CRUISE, 30, (-1.5, 0.0, 0.0)), "its path goes back by 0.50 m 3.1 s after t0"),
        # A point 0.5 m too far: 1.5 m where 10 m/s say 1 m.
        (moved(CRUISE, 20, (0.5, 0.0, 0.0)), "it moves 1.50 m where its speed says 1.00 m, 2.1 s after t0"),
        (moved(CRUISE, 20, (0.0, 0.4, 0.0)), "it moves 0.40 m sideways 2.1 s after t0"),
        (moved(CRUISE, 20, (0.0, 0.0, 1.0)), "it rises or falls by 1.00 m 2.1 s after t0"),
        (
            replace(CRUISE, action=CRUISE.action + np.array([0.8, 0.0])),
            "its speed changes by 0.0 m/s^2, its acceleration is 0.8 m/s^2, 0.2 s after t0",
        ),
        (
            replace(CRUISE, action=CRUISE.action + np.array([0.0, 0.06])),
            "its heading and its curvature differ by 0.06 rad 0.1 s after t0",
        ),
        # 8.5 m/s^2 for 6.4 s add 54.4 m/s.
        (driven(8.5, 0.0, 10.0), "it drives 64.4 m/s, more than 60 m/s"),
        (driven(first_steps(7.0), 0.0, 10.0), "it accelerates by 7.0 m/s^2, more than 6.0, 0.1 s after t0"),
        # 10 m/s on a circle of 10 m.
        (
            driven(0.0, 0.1, 10.0),
            "it turns by 367 degrees",
        ),
        (
            driven(0.0, first_steps(0.0, 0.1), 10.0),
            "it needs 0.0 m/s^2 along and 10.0 m/s^2 across, tyres hold 8.8 m/s^2 together, 0.2 s after t0",
        ),
        # 7 m/s^2 along and 7 m/s^2 across would each do; the speed at the end of the first step is 9.3 m/s, and it
        # turns by 0.075 * 0.965 m.
        (
            driven(first_steps(-7.0), first_steps(0.075), 10.0),
            "it needs -7.0 m/s^2 along and 6.7 m/s^2 across, tyres hold 8.8 m/s^2 together, 0.1 s after t0",
        ),
        (
            driven(first_steps(-9.0), 0.0, 10.0),
            "it needs -9.0 m/s^2 along and 0.0 m/s^2 across, tyres hold 8.8 m/s^2 together, 0.1 s after t0",
        ),
    ],
)
def test_each_rule_refuses_the_plan_that_breaks_it(trajectory: Trajectory, complaint: str) -> None:
    assert refusal(trajectory, DrivenArc(10.0)) == complaint


STEPS = np.arange(1.0, FUTURE_POINTS + 1)
STANDING = driven(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("trajectory", "speed_mps", "complaint"),
    [
        # 64 times what is allowed once.
        (
            replace(STANDING, position_m=np.outer(STEPS, [0.0, 0.04, 0.0])),
            0.0,
            "it moves 2.56 m sideways in all",
        ),
        (replace(STANDING, position_m=np.outer(STEPS, [0.0, 0.0, -0.04])), 0.0, "it rises or falls by 2.56 m in all"),
        (
            replace(STANDING, position_m=np.outer(STEPS, [0.04, 0.0, 0.0])),
            0.0,
            "it moves 2.56 m more or less in all than its speeds say",
        ),
        (replace(STANDING, yaw_rad=0.04 * STEPS), 0.0, "it turns by 2.56 rad more in all than a car can on its way"),
        # 0.1 m a step at 0.6 1/m: 0.06 rad, where the turning circle allows 0.025.
        (driven(0.0, 0.6, 1.0), 1.0, "it turns by 2.24 rad more in all than a car can on its way"),
        # From a stretch behind a good one.
        (driven(0.0, np.where(STEPS > 40, 0.6, 0.0), 1.0), 1.0, "it turns by 0.84 rad more in all"),
        # In 63 steps: what the first one changes says where the plan begins.
        (
            replace(CRUISE, action=CRUISE.action + np.array([0.4, 0.0])),
            10.0,
            "its speeds and its accelerations differ by 2.5 m/s in all",
        ),
        (
            replace(CRUISE, action=CRUISE.action - np.array([0.0, 0.04])),
            10.0,
            "its heading and its curvature differ by 2.56 rad in all",
        ),
        # No way, no turn; a steering wheel that is told so would turn all the same.
        (
            replace(STANDING, action=np.tile([0.0, -30.0], (FUTURE_POINTS, 1))),
            0.0,
            "its curvature is 30.0 1/m, more than 1.0 1/m",
        ),
    ],
)
def test_what_is_good_in_each_step_must_be_good_in_all(
    trajectory: Trajectory, speed_mps: float, complaint: str
) -> None:
    assert refusal(trajectory, DrivenArc(speed_mps)).startswith(complaint)


def test_noise_does_not_add_up() -> None:
    noise = 0.04 * np.sign(np.sin(997.0 * STEPS))
    rough = replace(CRUISE, position_m=CRUISE.position_m + np.stack([noise, noise, noise], axis=1) / 2.0)
    assert refusal(rough, DrivenArc(10.0)) == ""


def test_turning_on_the_spot_is_no_motion_of_a_car() -> None:
    # A step of 0.1 m allows 0.025 rad on the turning circle of 4 m, and 0.05 rad more for noise.
    sharp = driven(0.0, first_steps(1.0), 1.0)
    assert refusal(sharp, DrivenArc(1.0)) == "it turns by 0.10 rad on 0.10 m, 0.1 s after t0"


def test_a_path_behind_the_ego_is_refused_even_if_each_step_could_be_driven() -> None:
    # A half circle of 4 m to the left in 2.5 s at 5 m/s, 6 m back in 1.2 s, and a half circle to the right,
    # half way through which it heads forward again: 6 m and 4 m back.
    curvature = np.concatenate([np.full(25, 0.25), np.zeros(12), np.full(27, -0.25)])
    assert refusal(driven(0.0, curvature, 5.0), DrivenArc(5.0)) == "it passes 9.9 m behind the ego"
    # The half circle alone is a U-turn.
    assert refusal(driven(0.0, np.where(np.arange(64) < 25, 0.25, 0.0), 5.0), DrivenArc(5.0)) == ""


def test_the_ego_of_unknown_speed_cannot_be_planned_for() -> None:
    assert refusal(CRUISE, DrivenArc(float("nan"))) == "the ego's speed is not known"


@pytest.mark.parametrize(
    ("trajectory", "found"),
    [
        (CRUISE, []),
        (driven(-2.5, 0.0, 20.0), []),
        (driven(2.5, 0.0, 10.0), ["longitudinal acceleration 2.50 m/s^2"]),
        (driven(-4.5, 0.0, 30.0), ["longitudinal acceleration -4.50 m/s^2"]),
        # 5 m/s^2 across: 10 m/s on a circle of 20 m.
        (driven(0.0, 0.05, 10.0), ["lateral acceleration 5.00 m/s^2"]),
        # 1 rad/s: 4 m/s on a circle of 4 m.
        (driven(0.0, -0.25, 4.0), ["yaw rate -1.00 rad/s"]),
        # The acceleration sways by 4 m/s^2 within 0.5 s: 8 m/s^3.
        (driven(2.0 * np.sin(np.arange(64) * np.pi / 5.0), 0.0, 10.0), ["longitudinal jerk"]),
    ],
)
def test_comfort_bounds_are_reported_one_by_one(trajectory: Trajectory, found: list[str]) -> None:
    speed = trajectory.speed_mps[0] - trajectory.action[0, 0] * DT
    told = discomforts(trajectory, DrivenArc(float(speed)))
    assert len(told) == len(found), told
    assert all(complaint.startswith(start) for complaint, start in zip(told, found, strict=True)), told
