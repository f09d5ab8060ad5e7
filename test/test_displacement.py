"""Errors of plans against what was driven: by hand, and by a second implementation of other parts."""

import math

import numpy as np
import pytest
from drives import Motion, ahead, circling

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.displacement import (
    HORIZONS_S,
    HorizonErrors,
    PlannedPoses,
    errors_by_horizon,
)
from flatrope_planner.evaluation.replay.driven_path import DrivenPath
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import Pose, yaw_quaternion

TIME_S: Floats = np.linspace(0.1, 6.4, 64)
T0_S = 10.0


def path_along(motion: Motion, times_s: Floats) -> DrivenPath:
    path = DrivenPath()
    for time_s in times_s:
        path.add(sample_at(float(time_s), motion))
    return path


def sample_at(time_s: float, motion: Motion) -> OdometrySample:
    x, y, yaw = motion(time_s)
    return OdometrySample(round(time_s * 1e9), np.array([x, y, 0.0]), yaw_quaternion(yaw), np.zeros(3))


def pose_at(time_s: float, motion: Motion) -> Pose:
    x, y, yaw = motion(time_s)
    return Pose(x, y, 0.0, yaw_quaternion(yaw))


def straight_plan(speed_mps: float, time_s: Floats = TIME_S) -> PlannedPoses:
    position_m = np.stack([speed_mps * time_s, np.zeros_like(time_s)], axis=1)
    return PlannedPoses(time_s, position_m, np.zeros_like(time_s))


def errors(plan: PlannedPoses, path: DrivenPath, motion: Motion) -> dict[str, HorizonErrors | str]:
    return errors_by_horizon(plan, path.seen_from(pose_at(T0_S, motion), round(T0_S * 1e9), plan.time_s))


def counted(found: HorizonErrors | str) -> HorizonErrors:
    assert isinstance(found, HorizonErrors), found
    return found


@pytest.mark.parametrize("rate_hz", [4.0, 10.0, 50.0])
def test_constant_velocity_by_hand(rate_hz: float) -> None:
    motion = ahead(6.0)
    found = errors(straight_plan(5.0), path_along(motion, np.arange(0.0, 17.01, 1.0 / rate_hz)), motion)
    # One metre is lost every second: t metres at t. Mean of 0.1 ... H is (H + 0.1) / 2.
    for name, horizon_s in {"1s": 1.0, "2s": 2.0, "3s": 3.0, "4s": 4.0, "6s": 6.0, "full": 6.4}.items():
        each = counted(found[name])
        assert each.ade_m == pytest.approx((horizon_s + 0.1) / 2.0)
        assert each.fde_m == pytest.approx(horizon_s)
        assert each.final_longitudinal_m == pytest.approx(-horizon_s)
        assert (each.lateral_m, each.ahe_rad, each.fhe_rad) == pytest.approx((0.0, 0.0, 0.0))
        assert each.missed == (horizon_s > 2.0)


def test_a_turn_by_hand() -> None:
    speed_mps, radius_m = 8.0, 20.0
    motion = circling(speed_mps, radius_m)
    found = errors(straight_plan(speed_mps), path_along(motion, np.arange(0.0, 17.01, 0.01)), motion)
    # After 2 s the car has turned by 0.8 rad; the plan is at (16, 0).
    x, y, turned = 20.0 * math.sin(0.8), 20.0 * (1.0 - math.cos(0.8)), 0.8
    each = counted(found["2s"])
    assert each.fde_m == pytest.approx(math.hypot(16.0 - x, y), abs=1e-3)
    assert each.fhe_rad == pytest.approx(turned, abs=1e-6)
    # Mean of 0.04, 0.08 ... 0.8.
    assert each.ahe_rad == pytest.approx(0.42, abs=1e-6)
    # Seen from the car the plan's end lies to the right.
    assert each.final_lateral_m == pytest.approx(-(16.0 - x) * math.sin(turned) - y * math.cos(turned), abs=1e-3)
    assert each.final_longitudinal_m == pytest.approx((16.0 - x) * math.cos(turned) - y * math.sin(turned), abs=1e-3)


def test_headings_are_compared_around_the_circle() -> None:
    def backwards(time_s: float) -> tuple[float, float, float]:
        return -time_s, 0.0, math.pi - 0.01 * time_s

    path = path_along(backwards, np.arange(0.0, 17.01, 0.1))
    x, y, _ = backwards(T0_S)
    plan = PlannedPoses(TIME_S, np.zeros((64, 2)), np.full(64, -math.pi + 0.1))
    found = errors_by_horizon(plan, path.seen_from(Pose(x, y, 0.0, yaw_quaternion(0.0)), 10_000_000_000, TIME_S))
    assert counted(found["1s"]).fhe_rad == pytest.approx(0.1 + 0.11)


def test_unequal_stamps_out_of_order_and_twice_change_nothing() -> None:
    motion, rng = ahead(7.0), np.random.default_rng(3)
    stamps_s = np.cumsum(rng.uniform(0.01, 0.2, 200))
    path = DrivenPath()
    shuffled = stamps_s.reshape(-1, 2)[:, ::-1].ravel()
    for time_s in (*shuffled[:150], *shuffled[100:]):
        path.add(sample_at(float(time_s), motion))
    found = errors(straight_plan(5.0), path, motion)
    assert counted(found["3s"]).ade_m == pytest.approx(2.0 * 1.55)


def test_a_gap_hides_what_lies_in_it_and_behind() -> None:
    motion = ahead(6.0)
    stamps_s = np.concatenate([np.arange(0.0, 11.51, 0.1), np.arange(12.5, 17.0, 0.1)])
    found = errors(straight_plan(5.0), path_along(motion, stamps_s), motion)
    assert counted(found["1s"]).fde_m == pytest.approx(1.0)
    assert {found[name] for name in ("2s", "3s", "4s", "6s", "full")} == {"the odometry does not cover it"}


def test_a_point_on_the_edge_of_a_gap_is_known() -> None:
    motion = ahead(6.0)
    stamps_s = np.concatenate([np.arange(0.0, 12.01, 0.1), np.arange(13.0, 17.0, 0.1)])
    found = errors(straight_plan(5.0), path_along(motion, stamps_s), motion)
    assert counted(found["2s"]).fde_m == pytest.approx(2.0)
    assert isinstance(found["3s"], str)


@pytest.mark.parametrize(("end_s", "horizons"), [(10.95, 0), (11.0, 1), (13.0, 3), (15.99, 4), (16.0, 5), (16.4, 6)])
def test_the_end_of_the_bag_ends_horizons(end_s: float, horizons: int) -> None:
    motion = ahead(6.0)
    stamps_s = np.append(np.arange(0.0, end_s - 0.005, 0.02), end_s)
    found = errors(straight_plan(5.0), path_along(motion, stamps_s), motion)
    assert [isinstance(each, HorizonErrors) for each in found.values()] == [i < horizons for i in range(6)]


def test_a_jump_to_another_place_is_no_motion() -> None:
    def jumping(time_s: float) -> tuple[float, float, float]:
        return 6.0 * time_s + (500.0 if time_s > 11.55 else 0.0), 0.0, 0.0

    found = errors(straight_plan(5.0), path_along(jumping, np.arange(0.0, 17.0, 0.1)), jumping)
    assert isinstance(found["1s"], HorizonErrors)
    assert isinstance(found["2s"], str)


@pytest.mark.parametrize(("last_s", "counts"), [(2.9, True), (2.85, False), (3.0, True), (2.5, False)])
def test_a_horizon_counts_if_the_plan_comes_close_to_it(last_s: float, counts: bool) -> None:
    motion = ahead(6.0)
    time_s: Floats = np.append(np.arange(0.5, last_s - 1e-9, 0.5), last_s)
    found = errors(straight_plan(5.0, time_s), path_along(motion, np.arange(0.0, 17.0, 0.1)), motion)
    assert isinstance(found["3s"], HorizonErrors) == counts
    assert found["6s"] == "the plan ends before"


def test_no_odometry_is_no_error_of_zero() -> None:
    found = errors(straight_plan(5.0), DrivenPath(), ahead(6.0))
    assert set(found.values()) == {"the odometry does not cover it"}


def other_errors(plan: PlannedPoses, samples: list[tuple[float, float, float, float]], horizon_s: float) -> Floats:
    """ADE, FDE, AHE, FHE in plain Python: world frame, angles by complex numbers, samples (t, x, y, yaw)."""
    _, x0, y0, yaw0 = next(sample for sample in samples if abs(sample[0] - T0_S) < 1e-9)
    ego = complex(math.cos(yaw0), math.sin(yaw0))
    distances, headings = [], []
    for time_s, (px, py), yaw in zip(plan.time_s, plan.position_m, plan.yaw_rad, strict=True):
        if time_s > horizon_s + 1e-9:
            break
        t = T0_S + time_s
        right = next(i for i, sample in enumerate(samples) if sample[0] >= t - 1e-9)
        (ta, xa, ya, wa), (tb, xb, yb, wb) = samples[right - 1], samples[right]
        share = (t - ta) / (tb - ta)
        place = complex(xa + share * (xb - xa), ya + share * (yb - ya))
        planned = complex(x0, y0) + ego * complex(px, py)
        distances.append(abs(planned - place))
        heading = complex(math.cos(wa + share * (wb - wa)), math.sin(wa + share * (wb - wa)))
        turn = ego * complex(math.cos(yaw), math.sin(yaw)) / heading
        headings.append(abs(math.atan2(turn.imag, turn.real)))
    return np.array([sum(distances) / len(distances), distances[-1], sum(headings) / len(headings), headings[-1]])


@pytest.mark.parametrize("seed", range(5))
def test_a_second_implementation_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stamps_s = np.unique(np.append(np.cumsum(rng.uniform(0.02, 0.2, 200)), T0_S))
    steps = np.diff(stamps_s, prepend=0.0)
    yaw = np.cumsum(rng.normal(0.0, 0.4, len(steps)) * steps)
    x, y = np.cumsum(9.0 * steps * np.cos(yaw)), np.cumsum(9.0 * steps * np.sin(yaw))
    samples = list(zip(stamps_s.tolist(), x.tolist(), y.tolist(), yaw.tolist(), strict=True))
    known = {round(sample[0], 9): sample[1:] for sample in samples}
    path = path_along(lambda time_s: known[round(time_s, 9)], stamps_s)
    heading = np.cumsum(rng.normal(0.0, 0.1, 64))
    plan = PlannedPoses(TIME_S, np.cumsum(rng.normal(0.8, 0.1, (64, 2)), axis=0), heading)
    start = pose_at(T0_S, lambda _: known[T0_S])
    found = errors_by_horizon(plan, path.seen_from(start, round(T0_S * 1e9), TIME_S))
    for name, horizon_s in HORIZONS_S.items():
        each = counted(found[name])
        mine = [each.ade_m, each.fde_m, each.ahe_rad, each.fhe_rad]
        np.testing.assert_allclose(mine, other_errors(plan, samples, horizon_s), rtol=1e-6)
