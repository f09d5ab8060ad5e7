"""Whether the trajectory does what the rationale says: flagged where it clearly does not.

A rationale that is vaguer than a trajectory can be no contradiction, so each rule looks for what breaks its word and
leaves the rest alone. The road is not known here: a bend to the left is no lane change, and a turn may lie further
ahead than the plan reaches.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats, Rationale, Trajectory
from flatrope_planner.planning.driven_arc import DrivenArc
from flatrope_planner.planning.stated_decision import Speed, StatedDecision, Steering, stated_decision

# What is said is about the next moments; later the plan may well do something else.
SOON_S = 3.0
# Speeds that differ by less are the same; above, the share counts.
SAME_MPS = 0.3
HELD_MPS, HELD_SHARE = 2.0, 0.3
# Slower than this a car stands, for a learnt plan never quite does.
STANDING_MPS = 0.6
# A way this short shows no direction; a standing car may keep rolling so far.
SHORT_WAY_M = 3.0
ROLLING_M = 2.0
# A shift is told from a bend of the road only where the plan ends in its old direction: so much to one side, and within
# `SOON_S` less than so much to the other side of both the straight line and the present bend.
SAME_DIRECTION_RAD = 0.1
SHIFT_M, NO_SHIFT_M, HINT_M = 0.5, 0.15, 0.05
# Whoever sets out to one side so sharply does not shift to the other: 30 degrees within `SOON_S`.
AWAY_RAD = 0.52
# A turn at a junction changes the heading by more; a plan that goes so far to the other side takes the other turn.
TURN_RAD = 0.35
# Going on in the old direction beside the lane, which is at least so wide; a road takes longer for that.
LANE_CHANGE_M, LANE_CHANGE_S = 2.6, 4.5
# No lane turns so sharply but a junction's: 60 degrees within `SOON_S`.
JUNCTION_TURN_RAD = 1.05


class Consistency(IntEnum):
    """As PlannedTrajectory numbers it."""

    UNKNOWN = 0
    CONSISTENT = 1
    INCONSISTENT = 2


@dataclass(frozen=True)
class ConsistencyFinding:
    """The finding and what it rests on."""

    consistency: Consistency
    reason: str


def compare(rationale: Rationale, trajectory: Trajectory, ego: DrivenArc) -> ConsistencyFinding:
    """Hold a finite trajectory against its rationale."""
    if not rationale.text.strip():
        return ConsistencyFinding(Consistency.UNKNOWN, "the rationale is empty" + _cut_off(rationale))
    stated = stated_decision(rationale.text)
    if stated is None:
        return ConsistencyFinding(Consistency.UNKNOWN, "the rationale states no decision" + _cut_off(rationale))
    if stated.speed is None and stated.steering is None:
        reason = f"'{stated.words}' leaves speed and way open"
        return ConsistencyFinding(Consistency.UNKNOWN, reason + _cut_off(rationale))
    done = _Done.of(trajectory, ego)
    broken = [complaint for complaint in (_speed_broken(stated, done), _steering_broken(stated, done)) if complaint]
    if broken:
        reason = f"says '{stated.words}', but {' and '.join(broken)}"
        return ConsistencyFinding(Consistency.INCONSISTENT, reason + _cut_off(rationale))
    return ConsistencyFinding(Consistency.CONSISTENT, f"does what '{stated.words}' says" + _cut_off(rationale))


def _cut_off(rationale: Rationale) -> str:
    return "" if rationale.complete else " (the rationale was cut off)"


@dataclass(frozen=True)
class _Done:
    """What a trajectory does."""

    start_mps: float
    slowest_mps: float
    fastest_mps: float
    # Within `SOON_S`.
    soon_slowest_mps: float
    soon_fastest_mps: float
    soon_way_m: float
    soon_turn_rad: float
    way_m: float
    # The furthest turns.
    most_left_rad: float
    most_right_rad: float
    # Whether the direction at the end is the old one, and how far the way lies to each side of the straight line.
    same_direction: bool
    left_m: float
    right_m: float
    # The furthest to each side within `SOON_S`, of the straight line or of the present bend.
    soon_left_m: float
    soon_right_m: float
    # Offset (left positive) of the first point that lies in another lane in the old direction; 0 for none.
    lane_change_m: float

    @classmethod
    def of(cls, trajectory: Trajectory, ego: DrivenArc) -> "_Done":
        soon = round(SOON_S / FUTURE_PERIOD_S)
        speed, yaw = trajectory.speed_mps, trajectory.yaw_rad
        step_m = np.linalg.norm(np.diff(trajectory.position_m[:, :2], axis=0, prepend=np.zeros((1, 2))), axis=1)
        way_m = np.cumsum(step_m)
        straight = trajectory.position_m[:, 1]
        near = np.concatenate([straight[:soon], _beside_bend(trajectory.position_m, ego.curvature)[:soon]])
        same_direction = bool(abs(yaw[-1]) < SAME_DIRECTION_RAD)
        return cls(
            start_mps=max(ego.speed_mps, 0.0),
            slowest_mps=float(speed.min()),
            fastest_mps=float(speed.max()),
            soon_slowest_mps=float(speed[:soon].min()),
            soon_fastest_mps=float(speed[:soon].max()),
            soon_way_m=float(way_m[soon - 1]),
            soon_turn_rad=float(yaw[soon - 1]),
            way_m=float(way_m[-1]),
            most_left_rad=float(max(yaw.max(), 0.0)),
            most_right_rad=float(max(-yaw.min(), 0.0)),
            same_direction=same_direction,
            left_m=float(max(straight.max(), 0.0)),
            right_m=float(max(-straight.min(), 0.0)),
            soon_left_m=float(max(near.max(), 0.0)),
            soon_right_m=float(max(-near.min(), 0.0)),
            lane_change_m=_lane_change(straight, yaw) if same_direction else 0.0,
        )


def _beside_bend(position_m: Floats, curvature: float) -> Floats:
    """How far points lie to the left of the circle the ego drives on now (small bends: of its parabola)."""
    return position_m[:, 1] - 0.5 * curvature * position_m[:, 0] ** 2


def _speed_broken(stated: StatedDecision, done: _Done) -> str:
    start = done.start_mps
    stands = start < STANDING_MPS
    match stated.speed:
        case Speed.STOP if stands and done.soon_way_m > ROLLING_M:
            return f"it drives {done.soon_way_m:.1f} m within {SOON_S:.0f} s"
        case Speed.STOP if not stands and done.slowest_mps > max(min(start - 1.0, 0.9 * start), STANDING_MPS):
            return f"its speed stays above {done.slowest_mps:.1f} m/s, from {start:.1f} m/s"
        case Speed.SLOW if start > 1.0 and done.slowest_mps > start - SAME_MPS:
            return f"its speed stays above {done.slowest_mps:.1f} m/s, from {start:.1f} m/s"
        case Speed.YIELD if done.soon_fastest_mps > start + HELD_MPS:
            return f"it speeds up from {start:.1f} to {done.soon_fastest_mps:.1f} m/s"
        case Speed.HOLD if _changes(done) > max(HELD_MPS, HELD_SHARE * start):
            return f"its speed changes by {_changes(done):.1f} m/s within {SOON_S:.0f} s"
        case Speed.PROCEED if done.fastest_mps < STANDING_MPS:
            return "it stands"
        case Speed.ACCELERATE if done.fastest_mps < start + SAME_MPS:
            return f"its speed stays below {done.fastest_mps:.1f} m/s, from {start:.1f} m/s"
    return ""


def _changes(done: _Done) -> float:
    return max(done.soon_fastest_mps - done.start_mps, done.start_mps - done.soon_slowest_mps)


def _lane_change(offset_m: Floats, yaw_rad: Floats) -> float:
    quick = round(LANE_CHANGE_S / FUTURE_PERIOD_S)
    beside = (np.abs(offset_m) > LANE_CHANGE_M) & (np.abs(yaw_rad) < SAME_DIRECTION_RAD)
    return float(offset_m[np.argmax(beside)]) if beside[:quick].any() else 0.0


def _steering_broken(stated: StatedDecision, done: _Done) -> str:
    if done.way_m < SHORT_WAY_M:
        return ""
    match stated.steering:
        case Steering.LEFT:
            return _shift_missing("left", -done.soon_turn_rad, done, (done.soon_left_m, done.right_m))
        case Steering.RIGHT:
            return _shift_missing("right", done.soon_turn_rad, done, (done.soon_right_m, done.left_m))
        case Steering.TURN_LEFT if done.most_right_rad > TURN_RAD > done.most_left_rad:
            return f"it turns right by {np.degrees(done.most_right_rad):.0f} degrees"
        case Steering.TURN_RIGHT if done.most_left_rad > TURN_RAD > done.most_right_rad:
            return f"it turns left by {np.degrees(done.most_left_rad):.0f} degrees"
        case Steering.KEEP_LANE:
            return _lane_left(done)
    return ""


def _shift_missing(side: str, turned_away_rad: float, done: _Done, sides_m: tuple[float, float]) -> str:
    """What is wrong with a shift to `side`; `sides_m`: how far the way lies to that side soon, and to the other."""
    if turned_away_rad > AWAY_RAD:
        return f"it turns by {np.degrees(turned_away_rad):.0f} degrees to the other side within {SOON_S:.0f} s"
    if not done.same_direction:
        return ""
    there_m, away_m = sides_m
    if there_m < HINT_M and away_m > SHIFT_M:
        return f"it moves {away_m:.1f} m to the other side"
    return f"it does not move {side}" if max(done.left_m, done.right_m) < NO_SHIFT_M else ""


def _lane_left(done: _Done) -> str:
    if abs(done.soon_turn_rad) > JUNCTION_TURN_RAD:
        side = "left" if done.soon_turn_rad > 0.0 else "right"
        return f"it turns {side} by {abs(np.degrees(done.soon_turn_rad)):.0f} degrees within {SOON_S:.0f} s"
    if done.lane_change_m:
        side = "left" if done.lane_change_m > 0.0 else "right"
        return f"it moves {abs(done.lane_change_m):.1f} m {side} and goes on in the same direction"
    return ""
