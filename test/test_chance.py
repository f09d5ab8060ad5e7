"""What of a plan is left to chance, and which of several trajectories becomes the plan."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.planning.chance import Chance
from flatrope_planner.planning.consensus import most_central
from flatrope_planner.speculation.sampling import Sampling


def test_by_default_nothing_is_drawn() -> None:
    chance = Chance()
    assert chance.seed_at(5) is None
    assert chance.sampling(None) is None
    assert Chance(seed=1).sampling(7) is None


def test_each_observation_has_a_seed_of_its_own_and_keeps_it() -> None:
    chance = Chance(seed=1, temperature=0.6)
    seeds = [chance.seed_at(t0_ns) for t0_ns in (-3, 0, 100_000_000, 200_000_000, 2**62)]
    assert len({*seeds, Chance(seed=2).seed_at(0)}) == 6
    assert seeds == [replace(chance, samples=4).seed_at(t0_ns) for t0_ns in (-3, 0, 100_000_000, 200_000_000, 2**62)]
    assert chance.sampling(seeds[0]) == Sampling(seeds[0] or 0, 0.6, 0.98)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"samples": 0}, "samples is 0, expected at least 1"),
        ({"samples": 2}, "no seed, expected one for temperature 0.0 and 2 samples"),
        ({"temperature": 0.5}, "no seed, expected one for temperature 0.5 and 1 samples"),
        ({"seed": 1, "temperature": -0.5}, "temperature is -0.5, expected more than 0"),
        ({"seed": 1, "temperature": 0.5, "top_p": 0.0}, "top_p is 0.0, expected more than 0, at most 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Chance(**wrong)


def test_the_nodes_parameters_ask_for_a_seed_where_something_is_drawn() -> None:
    values: dict[str, Any] = default_parameters("planner.param.yaml")
    for asked in ({"temperature": 0.6}, {"trajectory_samples": 6}):
        with pytest.raises(InputError, match="parameter draw_seed is -1, expected a seed where temperature is"):
            PlannerParameters(**{**values, **asked})
        assert PlannerParameters(**{**values, **asked, "draw_seed": 0}).draw_seed == 0


def straight(aside_m: float) -> Trajectory:
    still = np.zeros(FUTURE_POINTS)
    position = np.zeros((FUTURE_POINTS, 3))
    position[:, 1] = aside_m
    return Trajectory(position, still, still, np.zeros((FUTURE_POINTS, 2)))


def test_the_plan_is_the_trajectory_that_the_others_lie_nearest_to() -> None:
    # Distances to the others add up to 18, 15, 13, 14 and 32 m.
    drawn = [straight(aside_m) for aside_m in (-1.0, 0.0, 2.0, 3.0, 9.0)]
    assert most_central(drawn) is drawn[2]
    assert most_central([straight(9.0), straight(0.0), straight(1.0)]).position_m[0, 1] == 1.0
    assert most_central(drawn[:1]) is drawn[0]
    alike = [straight(0.0), straight(0.0)]
    assert most_central(alike) is alike[0]
