"""The closed loop gives a planning core exactly what the node would, and drives by what it answers."""

from collections.abc import Callable

import numpy as np
import pytest

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Observation, Plan, Rationale, SpeculationHealth, SpeculationStats, Trajectory
from flatrope_planner.evaluation.closed_loop import Episode, PlannerPilot, ReferencePilot, drive
from flatrope_planner.evaluation.driving_benchmark import (
    DrivingOptions,
    Task,
    _summary,
    run_driving_benchmark,
    table,
)
from flatrope_planner.planning.observation import ObservationSpec
from flatrope_planner.simulation.driver import ReferenceDriver
from flatrope_planner.simulation.world import Family, World

SPEC = ObservationSpec(("front_wide", "front_tele"), 2, 0.5)


class StubCore:
    """Answers every observation with what `answer` makes of it, and keeps what it saw."""

    observation_spec = SPEC

    def __init__(self, answer: Callable[[Observation], Trajectory]) -> None:
        self.answer = answer
        self.seen: list[Observation] = []
        self.health = SpeculationHealth()

    def reset(self) -> None:
        self.seen.clear()

    def plan(self, observation: Observation) -> Plan:
        self.seen.append(observation)
        return Plan(
            observation.t0_ns,
            self.answer(observation),
            Rationale("Keep the lane and speed because the road ahead is clear."),
            SpeculationStats(0, 0, 0, 0),
        )


def stand(_: Observation) -> Trajectory:
    zeros = np.zeros(FUTURE_POINTS)
    return Trajectory(np.zeros((FUTURE_POINTS, 3)), zeros, zeros, np.zeros((FUTURE_POINTS, 2)))


def oracle(world: World) -> StubCore:
    driver = ReferenceDriver(world)
    return StubCore(lambda _: driver.plan().trajectory)


def test_a_core_that_plans_like_the_reference_drives_like_it() -> None:
    world = World(Family.CURVE, 3)
    core = oracle(world)
    episode = drive(world, PlannerPilot(world, core))
    assert episode.success
    # Plans at 1.5 s, 2.0 s, ...
    assert [tick.time_s for tick in episode.ticks[:3]] == [1.5, 2.0, 2.5]
    assert len(episode.ticks) == int((episode.duration_s - 1.5 - 1e-6) // 0.5) + 1
    reference = drive(again := World(Family.CURVE, 3), ReferencePilot(again))
    assert abs(episode.duration_s - reference.duration_s) < 0.2


def test_observations_are_what_the_target_asks_for() -> None:
    world = World(Family.FREE_ROAD, 1)
    core = oracle(world)
    drive(world, PlannerPilot(world, core))
    for observation in core.seen:
        assert list(observation.frames) == ["front_wide", "front_tele"]
        for frames in observation.frames.values():
            assert [observation.t0_ns - frame.stamp_ns for frame in frames] == [500_000_000, 0]
            assert frames[0].image.shape == (320, 896, 3)
            assert frames[0].image.std() > 5.0
        np.testing.assert_allclose(observation.ego_history.position_m[-1], 0.0, atol=1e-9)


def test_the_blind_see_grey() -> None:
    world = World(Family.FREE_ROAD, 1)
    core = oracle(world)
    drive(world, PlannerPilot(world, core, blind=True))
    images = [frame.image for observation in core.seen for frames in observation.frames.values() for frame in frames]
    assert all(np.all(image == 128) for image in images)


def braking_begins_s(delay_s: float) -> float:
    """When a drive whose core says stop brakes hard."""
    world = World(Family.FREE_ROAD, 1)
    pilot = PlannerPilot(world, StubCore(stand), blind=True, delay_s=delay_s)
    while world.ego.accel_mps2 > -2.0:
        world.step(pilot.command())
    return world.time_s


def test_a_delayed_plan_takes_effect_later() -> None:
    assert braking_begins_s(0.8) - braking_begins_s(0.0) == pytest.approx(0.8)


def test_the_same_drive_twice_is_the_same() -> None:
    worlds = [World(Family.CURVE, 5) for _ in range(2)]
    episodes = [drive(world, PlannerPilot(world, oracle(world), blind=True)) for world in worlds]
    assert episodes[0] == episodes[1]


def episode(*failures: str) -> Episode:
    return Episode(not failures, failures, 10.0, 80.0, ())


def test_success_rates_by_family_and_apart_for_unseen_ones() -> None:
    summary = _summary(
        {
            Task("nano", Family.LEAD, 0): episode(),
            Task("nano", Family.LEAD, 1): episode("collision"),
            Task("nano", Family.CURVE, 0): episode(),
            Task("nano", Family.CURVE, 1): episode(),
            Task("nano", Family.CONES, 0): episode("collision", "off_road"),
        }
    )
    assert summary["success"] == 0.75
    assert summary["families"]["lead"] == {
        "success": 0.5,
        "successes": 1,
        "episodes": 2,
        "failures": {"collision": 1},
    }
    assert summary["unseen"]["success"] == 0.0
    assert summary["unseen"]["failures"] == {"collision": 1, "off_road": 1}
    assert "lead                     50.0%   nano: collision 1" in table(summary)


def test_the_number_of_jobs_does_not_change_the_result() -> None:
    families = (Family.CURVE, Family.CONES)
    one, two = (
        run_driving_benchmark(DrivingOptions(seeds=1, families=families, drivers=("reference",), jobs=jobs))
        for jobs in (1, 2)
    )
    del one["wall_s"], two["wall_s"]
    assert one == two
    assert one["reference"]["success"] == 1.0
