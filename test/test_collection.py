"""Episodes written down for training are reproducible, complete and disturbed."""

import itertools

import numpy as np
import pytest

from flatrope_planner.domain import DriveCommand, Trajectory
from flatrope_planner.planning.observation import ObservationSpec
from flatrope_planner.planning.stated_decision import decision_of
from flatrope_planner.simulation.world import Family
from flatrope_planner.training.collection import Disturbance, collect

SPEC = ObservationSpec(("front_wide", "front_tele"), 2, 0.5)


def test_an_episode_is_reproducible() -> None:
    one, other = (list(collect(Family.PEDESTRIAN, 5, SPEC)) for _ in range(2))
    assert [s.pictures for s in one] == [s.pictures for s in other]
    assert [s.rationale for s in one] == [s.rationale for s in other]


def test_samples_fit_together() -> None:
    samples = list(collect(Family.LEAD, 1, SPEC))
    assert len(samples) > 10
    for sample in samples:
        assert len(sample.pictures) == 4
        assert sample.history_position_m[-1] == pytest.approx([0.0, 0.0, 0.0])
        assert decision_of(sample.rationale) is sample.decision
        # The first planned point lies where the last history step, carried on, would put it (1 m/s of slack).
        step = sample.history_position_m[-1] - sample.history_position_m[-2]
        assert np.linalg.norm(sample.position_m[0] - step) < 0.1
    # The newest picture of one moment is the older picture of the next, camera by camera.
    pairs = [(a, b) for a, b in itertools.pairwise(samples) if b.time_s - a.time_s < 0.51]
    assert pairs
    for a, b in pairs:
        assert (a.pictures[1], a.pictures[3]) == (b.pictures[0], b.pictures[2])


def test_a_student_drives_and_the_teacher_says_what_it_would_have_done() -> None:
    speed_mps = 3.0
    points = np.arange(1, 65) * 0.1
    crawl = Trajectory(
        np.column_stack([speed_mps * points, np.zeros((64, 2))]),
        np.zeros(64),
        np.full(64, speed_mps),
        np.zeros((64, 2)),
    )
    taught = list(collect(Family.FREE_ROAD, 4, SPEC, student=lambda _: crawl))
    step_m = [np.linalg.norm(s.history_position_m[-1] - s.history_position_m[-2]) for s in taught]
    assert np.median(step_m[6:]) == pytest.approx(0.1 * speed_mps, abs=0.05)
    # On a free road the teacher would go faster.
    accelerates = [s.decision.value == "accelerate" for s in taught[6:]]
    assert np.mean(accelerates) > 0.9


def test_disturbances_push_both_ways_and_end() -> None:
    calm = DriveCommand(8.0, 0.0)
    pushed = [Disturbance(np.random.default_rng(seed)).apply(calm, 3.0, 9.0) for seed in range(60)]
    yaw_rates, speeds = [p.yaw_rate_radps for p in pushed], [p.speed_mps for p in pushed]
    assert min(yaw_rates) < -0.03
    assert max(yaw_rates) > 0.03
    assert min(speeds) < 7.5
    assert max(speeds) > 8.5
    assert 10 < sum(p == calm for p in pushed) < 30
    kicked = Disturbance(np.random.default_rng(next(s for s in range(60) if pushed[s] != calm)))
    after = [kicked.apply(calm, 3.0 + 0.05 * step, 9.0) == calm for step in range(65)]
    assert not after[0]
    assert any(after)


def test_a_held_speed_is_the_one_at_its_beginning_whatever_the_plan_wants() -> None:
    brake = DriveCommand(0.0, 0.0)

    def under_way(seed: int) -> list[float]:
        disturbance = Disturbance(np.random.default_rng(seed))
        return [disturbance.apply(brake, 3.0 + 0.05 * step, 8.0 - step).speed_mps for step in range(3)]

    held = [speeds for speeds in map(under_way, range(60)) if speeds[0] == 8.0]
    assert held
    assert all(speeds == [8.0, 8.0, 8.0] for speeds in held)
