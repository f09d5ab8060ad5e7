"""The nano benchmark asks what it says it asks, and counts right."""

from typing import Any

import numpy as np
import pytest
from tiny_nano import tiny_target

from flatrope_planner.domain import Decision, Observation
from flatrope_planner.evaluation.nano_benchmark import (
    Answer,
    _scores,
    blinded,
    is_reproducible,
    observation_of,
    table,
    visual_token_share,
)
from flatrope_planner.planning.planner import Planner
from flatrope_planner.simulation.world import Family, Split
from flatrope_planner.speculation.drafter import NoDrafter
from flatrope_planner.speculation.exactness import Exactness
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.training.collection import collect
from flatrope_planner.vla.loading import VlaPlanner


def planner(seed: int = 0) -> VlaPlanner:
    target = tiny_target(seed)
    return Planner(target, Reasoner(target, NoDrafter(), 8, Exactness()))


@pytest.fixture(scope="module")
def moment() -> Observation:
    target = tiny_target()
    sample = next(collect(Family.CURVE, 0, target.observation_spec, Split.VAL))
    observation = observation_of(sample, target.observation_spec)
    np.testing.assert_array_equal(observation.ego_history.position_m, sample.history_position_m)
    return observation


def test_a_sample_becomes_the_observation_it_came_from(moment: Observation) -> None:
    assert list(moment.frames) == ["front_wide", "front_tele"]
    for frames in moment.frames.values():
        assert [moment.t0_ns - frame.stamp_ns for frame in frames] == [500_000_000, 0]
        assert frames[0].image.shape == (160, 448, 3)
        # The car moves: an earlier picture is another one.
        assert np.any(frames[0].image != frames[1].image)


def test_the_blinded_moment_is_grey_and_otherwise_the_same(moment: Observation) -> None:
    blind = blinded(moment)
    assert all(np.all(frame.image == 128) for frames in blind.frames.values() for frame in frames)
    assert blind.t0_ns == moment.t0_ns
    assert blind.ego_history is moment.ego_history


def test_reproducible_means_the_same_words_and_bits(moment: Observation) -> None:
    assert is_reproducible(planner(), planner(), [moment])
    assert not is_reproducible(planner(), planner(seed=1), [moment])


def test_pictures_make_up_most_of_the_prompt(moment: Observation) -> None:
    target = tiny_target()
    prompt = target.prepare(moment)
    # Four pictures of 5 x 14 tokens.
    assert visual_token_share(prompt) == 280 / len(prompt.token_ids)
    assert visual_token_share(prompt) >= 0.7


def answer(family: str, decision: Decision | None, blind: Decision | None, ade_m: float) -> Answer:
    return Answer(family, Decision.STOP, decision, blind, ade_m, 2.0 * ade_m)


def test_scores_are_means_over_moments() -> None:
    answers = [
        answer("lead", Decision.STOP, None, 0.1),
        answer("lead", Decision.KEEP, Decision.STOP, 0.3),
        answer("curve", Decision.STOP, Decision.KEEP, 0.2),
        answer("cones", Decision.STOP, Decision.STOP, 9.0),
    ]
    scores: dict[str, Any] = _scores(answers, {"lead", "curve"})
    assert scores["moments"] == 3
    assert scores["decision_accuracy"] == 0.6667
    assert scores["decision_accuracy_blind"] == 0.3333
    assert scores["ade_3s_m"] == 0.2
    assert scores["ade_6s_m"] == 0.4
    assert scores["families"]["lead"]["decision_accuracy"] == 0.5
    assert scores["decisions"]["stop"]["moments"] == 3


def test_the_table_shows_every_family() -> None:
    scores = _scores([answer("lead", Decision.STOP, None, 0.1)], {"lead"})
    unseen = _scores([answer("cones", None, None, 0.5)], {"cones"})
    facts = {"reproducible": True, "parameters": 5_200_000, "visual_token_share": 0.77}
    shown = table({**scores, "unseen": unseen, **facts})
    assert "lead                  100.0%      0.0%    0.10 m    0.20 m         1" in shown
    assert "cones                   0.0%      0.0%    0.50 m    1.00 m         1" in shown
    assert "5,200,000 parameters, 77% of the prompt are pictures" in shown
