"""What rationales say will be done: in Alpamayo's manner, in nano's, and in sentences turned round."""

import pytest

from flatrope_planner.domain import Decision
from flatrope_planner.planning.stated_decision import Speed, Steering, decision_of, stated_decision


@pytest.mark.parametrize(
    ("text", "speed", "steering"),
    [
        ("Stop for the red light", Speed.STOP, None),
        ("Come to a complete stop, as the car ahead has stopped.", Speed.STOP, None),
        ("Decelerate to stop behind the queue", Speed.STOP, None),
        ("Decelerate smoothly to a full stop at the line", Speed.STOP, None),
        ("Remain stopped because the light is red", Speed.STOP, None),
        ("Keep still until the children have passed.", Speed.STOP, None),
        ("Wait for the pedestrian to cross", Speed.STOP, None),
        ("Decelerate since the lead vehicle is slowing", Speed.SLOW, None),
        ("Adapt speed to slow for the tight bend", Speed.SLOW, None),
        ("Gently ease off for the speed bump", Speed.SLOW, None),
        ("Yield to the cyclist who crosses ahead", Speed.YIELD, None),
        ("Give way to the tram", Speed.YIELD, None),
        ("Accelerate through the junction since it is clear", Speed.ACCELERATE, None),
        ("Speed up to match traffic", Speed.ACCELERATE, None),
        ("Resume speed, the crossing is clear again", Speed.PROCEED, None),
        ("Keep driving as nothing is ahead", Speed.PROCEED, None),
        ("Keep speed through the junction", Speed.HOLD, None),
        ("Maintain a steady speed of 30 km/h", Speed.HOLD, None),
        ("Keep the lane and speed because the road ahead is clear.", Speed.HOLD, Steering.KEEP_LANE),
        ("Keep lane", None, Steering.KEEP_LANE),
        ("Keep at the centre of the lane since nothing is near", None, Steering.KEEP_LANE),
        ("Keep right", None, None),
        ("Keep distance to the lead vehicle because it is braking", None, None),
        ("Adapt speed for the bend to the right", None, None),
        ("Maintain lane and wait for a gap on the left", None, Steering.KEEP_LANE),
        ("Nudge to the left to pass the parked car", None, Steering.LEFT),
        ("Nudge right due to the van that stands half on the lane on the left", None, Steering.RIGHT),
        ("Change lanes to the left as the right one ends", None, Steering.LEFT),
        ("Lane change to the right to take the exit", None, Steering.RIGHT),
        ("Shift slightly to the left", None, Steering.LEFT),
        ("Change to the right exit lane and slow down", Speed.SLOW, Steering.RIGHT),
        ("Slow down and turn right at the junction", Speed.SLOW, Steering.TURN_RIGHT),
        ("Turn left at the junction because the light is green", None, Steering.TURN_LEFT),
        ("Make a left turn", None, Steering.TURN_LEFT),
        # Turned round, spoken by someone, or marked up.
        ("The light is red, so stop.", Speed.STOP, None),
        ("Since the lead vehicle is slowing, decelerate.", Speed.SLOW, None),
        ("The ego vehicle should slow down because of the fog.", Speed.SLOW, None),
        ("We need to turn right here", None, Steering.TURN_RIGHT),
        ("A child runs onto the road. Brake to a standstill!", Speed.STOP, None),
        ("stop<|im_end|>", Speed.STOP, None),
        # What is named is not what is done.
        ("Stop sign ahead, slow down", Speed.SLOW, None),
        ("Brake lights ahead, keep lane", None, Steering.KEEP_LANE),
        ("Slow-moving truck ahead, nudge left", None, Steering.LEFT),
        ("Waiting pedestrians on the right, keep the speed", Speed.HOLD, None),
        ("Stop-and-go traffic, keep distance and yield to the bus", Speed.YIELD, None),
        ("Left turn lane on our side, go straight", Speed.PROCEED, None),
        ("Keep within the lane lines", None, Steering.KEEP_LANE),
        ("Slow down for the lane that is blocked", Speed.SLOW, None),
        ("Stop before the crossing to not block it", Speed.STOP, None),
        # Nor is what is denied.
        ("Stopping is not needed, keep the speed", Speed.HOLD, None),
        ("Braking is unnecessary; proceed", Speed.PROCEED, None),
        ("Left turn is not possible, keep the lane", None, Steering.KEEP_LANE),
        ("Don't stop but yield", Speed.YIELD, None),
    ],
)
def test_what_is_commanded_is_read(text: str, speed: Speed | None, steering: Steering | None) -> None:
    stated = stated_decision(text)
    assert stated is not None
    assert (stated.speed, stated.steering) == (speed, steering)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "...",
        "The lead vehicle is slowing down.",
        "The car ahead stops because the light is red.",
        "Because the light is red",
        "Do not accelerate",
        "Stopping is not needed since the light is green",
        "Stop is no longer required",
        "Accelerate no further",
        "Turning left is forbidden",
        "Stop if the light turns red",
        "If the car ahead brakes, slow down",
        "Keep the speed unless the bus sets off",
        "Banana, as the light is green.",
        "停车",
    ],
)
def test_what_others_do_and_why_is_no_decision(text: str) -> None:
    assert stated_decision(text) is None
    assert decision_of(text) is None


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Nudge to the left and slow down", Decision.LEFT),
        ("Turn right", Decision.RIGHT),
        ("Yield to the bus", Decision.SLOW),
        ("Keep distance to the car ahead", Decision.KEEP),
        ("Resume speed", Decision.KEEP),
        ("Stop", Decision.STOP),
        ("Accelerate", Decision.ACCELERATE),
    ],
)
def test_one_word_stands_for_all_that_is_said(text: str, decision: Decision) -> None:
    assert decision_of(text) is decision


def test_a_long_text_is_read_in_no_time() -> None:
    # A text of a model that has lost itself must not hold up the planner.
    assert stated_decision("keep the very " * 4000) is not None
    assert stated_decision("slowly and gently to the " * 4000) is None
