"""Rationale against trajectory: each word kept and broken by a motion of which it is clear."""

import numpy as np
import pytest
from test_plan_validator import driven, first_steps

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Floats, Rationale, Trajectory
from flatrope_planner.planning.consistency import Consistency, compare
from flatrope_planner.planning.driven_arc import DrivenArc

TEN = DrivenArc(10.0)
CRUISE = driven(0.0, 0.0, 10.0)
STOPPING = driven(np.where(np.arange(64) < 50, -2.0, 0.0), 0.0, 10.0)
STANDING = driven(0.0, 0.0, 0.0)
STARTING = driven(2.0, 0.0, 0.0)


def shifted(side: float, steps: int = 15) -> Trajectory:
    """At 10 m/s: a bend, and as long the other way round: k (v t)^2 = 0.01 * 15^2 = 2.25 m to the side."""
    curvature: Floats = np.zeros(FUTURE_POINTS)
    curvature[:steps], curvature[steps : 2 * steps] = 0.01 * side, -0.01 * side
    return driven(0.0, curvature, 10.0)


def bent(side: float, curvature: float = 0.05) -> Trajectory:
    """Along a bend at 5 m/s."""
    return driven(0.0, curvature * side, 5.0)


FIVE = DrivenArc(5.0)


@pytest.mark.parametrize(
    ("text", "trajectory", "ego"),
    [
        ("Stop for the red light", STOPPING, TEN),
        # A stop further ahead than the plan reaches.
        ("Stop at the line", driven(-0.5, 0.0, 10.0), TEN),
        ("Remain stopped", STANDING, DrivenArc(0.0)),
        ("Slow down", driven(first_steps(*[-1.0] * 10), 0.0, 10.0), TEN),
        ("Yield to the bus", STOPPING, TEN),
        ("Yield to the bus", CRUISE, TEN),
        ("Accelerate", driven(1.0, 0.0, 10.0), TEN),
        ("Proceed through the junction", STARTING, DrivenArc(0.0)),
        ("Keep the lane and speed", CRUISE, TEN),
        ("Keep lane", STOPPING, TEN),
        # A bend of the road is no change of lane, and on it a shift cannot be told.
        ("Keep lane", bent(1.0), FIVE),
        ("Nudge to the left", shifted(1.0), TEN),
        ("Nudge to the left", bent(-1.0, 0.02), DrivenArc(5.0, -0.02)),
        ("Nudge to the right", shifted(-1.0), TEN),
        ("Turn left", bent(1.0), FIVE),
        # The junction lies beyond the plan.
        ("Turn left", driven(-1.0, 0.0, 7.0), DrivenArc(7.0)),
        ("Slow down and nudge left", driven(-0.5, shifted(1.0).action[:, 1], 10.0), TEN),
    ],
)
def test_a_word_that_is_kept(text: str, trajectory: Trajectory, ego: DrivenArc) -> None:
    finding = compare(Rationale(text), trajectory, ego)
    assert (finding.consistency, finding.reason) == (Consistency.CONSISTENT, finding.reason)
    assert finding.reason.startswith("does what '")


@pytest.mark.parametrize(
    ("text", "trajectory", "ego", "reason"),
    [
        ("Stop for the red light", CRUISE, TEN, "says 'stop', but its speed stays above 10.0 m/s, from 10.0 m/s"),
        ("Stop at the line", driven(1.0, 0.0, 10.0), TEN, "says 'stop', but its speed stays above 10.1 m/s"),
        # 2 m/s^2 for 3 s: 9 m.
        ("Remain stopped", STARTING, DrivenArc(0.0), "says 'remain stopped', but it drives 9.0 m within 3 s"),
        ("Slow down", CRUISE, TEN, "says 'slow down', but its speed stays above 10.0 m/s"),
        ("Slow down", driven(1.0, 0.0, 10.0), TEN, "says 'slow down', but its speed stays above 10.1 m/s"),
        ("Yield to the bus", driven(1.0, 0.0, 10.0), TEN, "says 'yield', but it speeds up from 10.0 to 13.0 m/s"),
        ("Accelerate", STOPPING, TEN, "says 'accelerate', but its speed stays below 9.8 m/s, from 10.0 m/s"),
        ("Proceed through the junction", STANDING, DrivenArc(0.0), "says 'proceed', but it stands"),
        (
            "Keep the lane and speed",
            STOPPING,
            TEN,
            "says 'keep the lane and speed', but its speed changes by 6.0 m/s within 3 s",
        ),
        ("Nudge to the left", shifted(-1.0), TEN, "but it moves 2.2 m to the other side"),
        ("Nudge to the right", shifted(1.0), TEN, "but it moves 2.2 m to the other side"),
        ("Nudge to the left", CRUISE, TEN, "but it does not move left"),
        # 5 m/s and 0.05 1/m for 3 s: 0.75 rad.
        ("Nudge to the left", bent(-1.0), FIVE, "but it turns by 43 degrees to the other side within 3 s"),
        # For 6.4 s: 1.6 rad.
        ("Turn left", bent(-1.0), FIVE, "says 'turn left', but it turns right by 92 degrees"),
        ("Turn right", bent(1.0), FIVE, "says 'turn right', but it turns left by 92 degrees"),
        # 0.08 1/m: 1.2 rad within 3 s.
        ("Keep lane", bent(1.0, 0.08), FIVE, "says 'keep lane', but it turns left by 69 degrees within 3 s"),
        # 0.01 * 20^2 = 4 m within 4 s.
        ("Keep lane", shifted(1.0, 20), TEN, "m left and goes on in the same direction"),
        (
            "Stop and nudge left",
            shifted(-1.0),
            TEN,
            "says 'stop, nudge left', but its speed stays above 10.0 m/s, from 10.0 m/s and it moves 2.2 m to the",
        ),
    ],
)
def test_a_word_that_is_broken(text: str, trajectory: Trajectory, ego: DrivenArc, reason: str) -> None:
    finding = compare(Rationale(text), trajectory, ego)
    assert finding.consistency is Consistency.INCONSISTENT
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("rationale", "reason"),
    [
        (Rationale(""), "the rationale is empty"),
        (Rationale(" \n"), "the rationale is empty"),
        (Rationale("", complete=False), "the rationale is empty (the rationale was cut off)"),
        (Rationale("Banana."), "the rationale states no decision"),
        (Rationale("Keep distance to the car ahead"), "'keep distance' leaves speed and way open"),
        (Rationale("Banana", complete=False), "the rationale states no decision (the rationale was cut off)"),
    ],
)
def test_what_says_nothing_can_break_nothing(rationale: Rationale, reason: str) -> None:
    finding = compare(rationale, CRUISE, TEN)
    assert (finding.consistency, finding.reason) == (Consistency.UNKNOWN, reason)


def test_a_cut_off_rationale_is_named_as_that() -> None:
    finding = compare(Rationale("Stop for the", complete=False), STOPPING, TEN)
    assert finding.consistency is Consistency.CONSISTENT
    assert finding.reason.endswith("(the rationale was cut off)")
