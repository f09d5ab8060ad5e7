"""Puts the driver's decision and its cause into words: 8 to 25 tokens, several phrasings, always the true cause.

The opening words stand for the decision, so a rationale can be read back (`planning.stated_decision`).
"""

import numpy as np

from flatrope_planner.domain import Decision
from flatrope_planner.simulation.causes import Cause, CauseKind
from flatrope_planner.simulation.view import VehicleKind

# Opening words of each decision; no opening is the beginning of another decision's.
OPENINGS: dict[Decision, tuple[str, ...]] = {
    Decision.KEEP: ("Keep", "Hold", "Continue"),
    Decision.ACCELERATE: ("Accelerate", "Speed up", "Pick up speed"),
    Decision.SLOW: ("Slow down", "Ease off", "Reduce speed"),
    Decision.STOP: ("Stop", "Come to a halt", "Brake to a standstill"),
    Decision.LEFT: ("Move left", "Steer left", "Shift to the left"),
    Decision.RIGHT: ("Move right", "Steer right", "Shift to the right"),
}

_VEHICLES = {VehicleKind.CAR: "car", VehicleKind.VAN: "van", VehicleKind.TRUCK: "truck"}

# What follows the opening; {side}, {vehicle} are filled in. The first phrasing is the most common.
_REASONS: dict[tuple[Decision, CauseKind], tuple[str, ...]] = {
    (Decision.KEEP, CauseKind.FREE): (
        "the lane and speed because the road ahead is clear.",
        "the present speed since nothing ahead needs attention.",
    ),
    (Decision.KEEP, CauseKind.GREEN_LIGHT): (
        "the speed through the junction because the traffic light is green.",
        "the present speed, as the light ahead shows green.",
    ),
    (Decision.KEEP, CauseKind.STOPPED_VEHICLE): (
        "the speed while passing the stopped {vehicle} on our right.",
    ),
    (Decision.KEEP, CauseKind.CURVE): (
        "a moderate speed through the bend to the {side}.",
        "the lane at a steady speed because the road bends to the {side}.",
    ),
    (Decision.KEEP, CauseKind.LEAD): (
        "a safe distance to the {vehicle} that drives ahead in our lane.",
        "the gap to the {vehicle} ahead, which moves at our speed.",
    ),
    (Decision.KEEP, CauseKind.LEAD_BRAKES): (
        "a safe distance to the {vehicle} ahead, which is braking lightly.",
    ),
    (Decision.KEEP, CauseKind.CUT_IN): (
        "enough distance for the {vehicle} that changes into our lane from the {side}.",
    ),
    (Decision.KEEP, CauseKind.MERGE): (
        "enough distance for the {vehicle} that merges into our lane from the {side}.",
    ),
    (Decision.KEEP, CauseKind.CONES): (
        "a moderate speed past the cones on the right side of the lane.",
    ),
    (Decision.ACCELERATE, CauseKind.FREE): (
        "to cruising speed because the lane ahead is clear.",
        "since the road ahead is free of obstacles.",
    ),
    (Decision.ACCELERATE, CauseKind.LEAD): (
        "because the {vehicle} ahead is pulling away.",
        "to follow the {vehicle} ahead, which leaves more room now.",
    ),
    (Decision.ACCELERATE, CauseKind.LEAD_BRAKES): (
        "gently, as there is still room to the {vehicle} ahead.",
    ),
    (Decision.ACCELERATE, CauseKind.CURVE): (
        "gently, as far as the bend to the {side} allows.",
    ),
    (Decision.ACCELERATE, CauseKind.CUT_IN): (
        "gently, as the {vehicle} from the {side} leaves enough room.",
    ),
    (Decision.ACCELERATE, CauseKind.MERGE): (
        "gently, as the merging {vehicle} from the {side} leaves enough room.",
    ),
    (Decision.ACCELERATE, CauseKind.CONES): (
        "a little, as there is room beside the cones on the right.",
    ),
    (Decision.ACCELERATE, CauseKind.GREEN_LIGHT): (
        "through the junction because the traffic light shows green.",
        "since the light ahead is green and the junction is free.",
    ),
    (Decision.ACCELERATE, CauseKind.STOPPED_AT_SIGN): (
        "across the junction after the full stop at the stop sign.",
        "again, as we have halted at the stop sign and the junction is free.",
    ),
    (Decision.ACCELERATE, CauseKind.PEDESTRIAN_CLEAR): (
        "again because the pedestrian has left our lane.",
        "since the pedestrian is out of the way now.",
    ),
    (Decision.SLOW, CauseKind.FREE): (
        "to cruising speed because we are faster than the road allows.",
        "a little, as the present speed is above cruising speed.",
    ),
    (Decision.SLOW, CauseKind.CURVE): (
        "for the sharp bend to the {side}.",
        "because the road ahead turns sharply to the {side}.",
    ),
    (Decision.SLOW, CauseKind.LEAD): (
        "to keep distance to the slower {vehicle} ahead in our lane.",
        "because the {vehicle} ahead is slower than we are.",
    ),
    (Decision.SLOW, CauseKind.LEAD_BRAKES): (
        "because the {vehicle} ahead is braking.",
        "as the brake lamps of the {vehicle} ahead are lit.",
    ),
    (Decision.SLOW, CauseKind.CUT_IN): (
        "to let the {vehicle} from the {side} into our lane.",
        "because a {vehicle} cuts in from the {side}.",
    ),
    (Decision.SLOW, CauseKind.MERGE): (
        "to let the merging {vehicle} from the {side} into our lane.",
        "because a {vehicle} merges from the ramp on the {side}.",
    ),
    (Decision.SLOW, CauseKind.CONES): (
        "because cones narrow the lane on the right.",
        "for the construction cones on the right side of our lane.",
    ),
    (Decision.STOP, CauseKind.LEAD_STANDS): (
        "behind the {vehicle} that stands in our lane.",
        "because the {vehicle} ahead has stopped.",
    ),
    (Decision.STOP, CauseKind.PEDESTRIAN): (
        "for the pedestrian who crosses the road from the {side}.",
        "because a pedestrian is crossing from the {side}.",
    ),
    (Decision.STOP, CauseKind.RED_LIGHT): (
        "at the line because the traffic light is red.",
        "before the junction, as the light shows red.",
    ),
    (Decision.STOP, CauseKind.STOP_SIGN): (
        "at the stop sign before entering the junction.",
        "at the line because a stop sign orders us to.",
    ),
    (Decision.LEFT, CauseKind.STOPPED_VEHICLE): (
        "to pass the {vehicle} that is stopped in our lane.",
        "because a stopped {vehicle} blocks the lane ahead.",
    ),
    (Decision.LEFT, CauseKind.CONES): (
        "to keep clear of the cones on the right side.",
        "because cones narrow our lane on the right.",
    ),
    (Decision.RIGHT, CauseKind.PASSED): (
        "back into our lane, as the obstacle is behind us.",
        "to return to the lane after passing the obstacle.",
    ),
    (Decision.RIGHT, CauseKind.STOPPED_VEHICLE): (
        "a little to line up for passing the stopped {vehicle}.",
    ),
    (Decision.RIGHT, CauseKind.CONES): (
        "a little to line up with the gap beside the cones.",
    ),
    (Decision.LEFT, CauseKind.PASSED): (
        "back to the middle of our lane after passing the obstacle.",
    ),
}  # fmt: skip


def narrate(decision: Decision, cause: Cause, seed: int) -> str:
    """The sentence for a decision and its cause; the phrasing is the scene's own (`seed`), steady in a drive."""
    reasons = _REASONS.get((decision, cause.kind)) or _REASONS[_nearest(decision, cause.kind)]
    rng = np.random.default_rng([seed, list(Decision).index(decision), list(CauseKind).index(cause.kind)])
    opening = OPENINGS[decision][int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
    reason = reasons[int(rng.choice(len(reasons), p=[0.7, 0.3] if len(reasons) == 2 else [1.0]))]
    words = reason.format(side="left" if cause.left else "right", vehicle=_VEHICLES[cause.vehicle])
    return f"{opening} {words}"


def _nearest(decision: Decision, kind: CauseKind) -> tuple[Decision, CauseKind]:
    """The sentence of a decision whose cause has none of its own: what binds only weakly is not worth a mention."""
    if kind is CauseKind.LEAD_STANDS:
        return decision, CauseKind.LEAD_BRAKES if decision is Decision.SLOW else CauseKind.LEAD
    return decision, CauseKind.FREE
