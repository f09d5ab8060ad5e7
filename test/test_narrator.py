"""Sentences say the decision they stand for."""

import itertools

import pytest

from flatrope_planner.domain import Decision
from flatrope_planner.planning.stated_decision import decision_of
from flatrope_planner.simulation.causes import Cause, CauseKind
from flatrope_planner.simulation.narrator import OPENINGS, narrate


@pytest.mark.parametrize(("decision", "kind"), list(itertools.product(Decision, CauseKind)))
def test_every_sentence_reads_back_as_its_decision(decision: Decision, kind: CauseKind) -> None:
    if decision in (Decision.STOP, Decision.LEFT, Decision.RIGHT) and kind is CauseKind.FREE:
        return
    try:
        sentences = {narrate(decision, Cause(kind), seed) for seed in range(30)}
    except KeyError:
        # Only manoeuvres and stops can lack a reason: nobody stops or swerves for nothing.
        assert decision in (Decision.STOP, Decision.LEFT, Decision.RIGHT)
        return
    assert len(sentences) >= 2
    for sentence in sentences:
        assert decision_of(sentence) is decision
        assert 6 <= len(sentence.split()) <= 18
        assert sentence.endswith(".")
        assert "{" not in sentence


def test_openings_do_not_contain_each_other() -> None:
    everything = [opening for openings in OPENINGS.values() for opening in openings]
    for one, other in itertools.permutations(everything, 2):
        assert not one.startswith(other)


def test_side_and_vehicle_are_named() -> None:
    from flatrope_planner.simulation.view import VehicleKind

    sentence = narrate(Decision.SLOW, Cause(CauseKind.CUT_IN, left=True, vehicle=VehicleKind.TRUCK), 4)
    assert "truck" in sentence
    assert "left" in sentence


def test_other_text_has_no_decision() -> None:
    assert decision_of("Banana because the light is red.") is None
    assert decision_of("") is None
