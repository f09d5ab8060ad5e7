"""Whether a trajectory can be driven as it stands: the last look at a plan before it is published.

Knows nothing of the road; that a plan is valid does not make it wise. What is merely uncomfortable is `comfort`'s.
Not covered: whether the plan meets anything (`corridor`) and whether it does what the rationale says (`consistency`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.planning.driven_arc import DrivenArc

# No road allows more: 216 km/h.
MAX_SPEED_MPS = 60.0
# What tyres hold on dry asphalt, along and across together (peak friction 0.8 to 0.9; Wong, Theory of Ground Vehicles).
MAX_GRIP_MPS2 = 0.9 * 9.81
# Stronger than all but racing cars: 0 to 100 km/h in 4.6 s.
MAX_ACCELERATION_MPS2 = 6.0
# The rear axle of a passenger car turns on a circle of 4 m radius at the least (turning circle of 10 m over the tyres).
MAX_CURVATURE = 0.25
# More than a turn round, which is pi, folds the path over itself.
MAX_TURN_RAD = 1.25 * np.pi
# What the ego may lie behind its own start without having turned round (alpamayo-autoware's check of its output).
MAX_BEHIND_M = 2.0
# Steeper than any road: 30 %.
MAX_SLOPE = 0.3

# A plan to stand is never quite that when it was learnt: what it may creep backwards, in a step and in all.
REVERSE_SPEED_MPS = 0.1
REVERSE_STEP_M = 0.02
REVERSE_WAY_M = 0.2
# Steps may differ from the speeds by so much, absolutely and as a share: half of this over 0.1 s is 0.25 m/s.
STEP_M, STEP_SHARE = 0.05, 0.05
# Motion across the body: a car does not slip.
SLIP_M, SLIP_SHARE = 0.05, 0.1
# Actions differ from the speeds and headings they lead to by rounding only.
ACTION_MPS2, ACTION_RAD = 0.5, 0.05
# What the above may add up to over any stretch of the plan: 64 steps, each good by itself, could slide the ego 3 m
# sideways or turn it round where it stands.
ALL_M, ALL_RAD, ALL_MPS = 0.2, 0.3, 1.0
# A plan to stand has no bend to speak of, but what it says of one reaches the steering all the same.
MAX_STATED_CURVATURE = 1.0
# Between the ego's speed as measured and the one the plan begins with; the share is alpamayo-autoware's.
START_SPEED_MPS, START_SPEED_SHARE = 1.0, 0.1


@dataclass(frozen=True)
class _Steps:
    """The plan from t0 on, step by step; its first step begins at the ego."""

    trajectory: Trajectory
    ego: DrivenArc
    # float64 (65,), m/s and rad, t0 first.
    speed_mps: Floats
    yaw_rad: Floats
    # float64 (64,), m: along the heading half way through the step, across it, up.
    forward_m: Floats
    across_m: Floats
    up_m: Floats


def refusal(trajectory: Trajectory, ego: DrivenArc) -> str:
    """Why the trajectory must not be driven, in words; empty if it may."""
    if not _is_finite(trajectory):
        return "a number of the plan is not finite"
    if not np.isfinite(ego.speed_mps):
        return "the ego's speed is not known"
    steps = _steps(trajectory, ego)
    return next((complaint for rule in RULES for complaint in rule(steps)), "")


def _is_finite(trajectory: Trajectory) -> bool:
    parts = (trajectory.position_m, trajectory.yaw_rad, trajectory.speed_mps, trajectory.action)
    return all(bool(np.all(np.isfinite(part))) for part in parts)


def _steps(trajectory: Trajectory, ego: DrivenArc) -> _Steps:
    step = np.diff(trajectory.position_m, axis=0, prepend=np.zeros((1, 3)))
    yaw = np.concatenate([[0.0], trajectory.yaw_rad])
    middle = (yaw[:-1] + yaw[1:]) / 2.0
    cos, sin = np.cos(middle), np.sin(middle)
    # The first point's own speed and acceleration say what the plan took the ego's speed for.
    start_mps = trajectory.speed_mps[0] - trajectory.action[0, 0] * FUTURE_PERIOD_S
    return _Steps(
        trajectory,
        ego,
        np.concatenate([[start_mps], trajectory.speed_mps]),
        yaw,
        step[:, 0] * cos + step[:, 1] * sin,
        step[:, 1] * cos - step[:, 0] * sin,
        step[:, 2],
    )


def _at(index: int) -> str:
    return f"{(index + 1) * FUTURE_PERIOD_S:.1f} s after t0"


def _starts_at_the_ego(steps: _Steps) -> Iterator[str]:
    speed, ego = float(steps.speed_mps[0]), steps.ego.speed_mps
    if abs(speed - ego) > START_SPEED_MPS + START_SPEED_SHARE * abs(ego):
        yield f"it begins with {speed:.1f} m/s, the ego drives {ego:.1f} m/s"
    first, expected = float(np.linalg.norm(steps.trajectory.position_m[0])), max(ego, 0.0) * FUTURE_PERIOD_S
    tolerance = STEP_M + (START_SPEED_MPS + START_SPEED_SHARE * abs(ego)) * FUTURE_PERIOD_S
    if abs(first - expected) > tolerance:
        yield f"its first point is {first:.2f} m from the ego, expected {expected:.2f} m"


def _does_not_reverse(steps: _Steps) -> Iterator[str]:
    slowest = int(np.argmin(steps.trajectory.speed_mps))
    if steps.trajectory.speed_mps[slowest] < -REVERSE_SPEED_MPS:
        yield f"it reverses with {-steps.trajectory.speed_mps[slowest]:.2f} m/s {_at(slowest)}"
    furthest = int(np.argmin(steps.forward_m))
    if steps.forward_m[furthest] < -REVERSE_STEP_M:
        yield f"its path goes back by {-steps.forward_m[furthest]:.2f} m {_at(furthest)}"
    back_m = -float(np.sum(np.minimum(steps.forward_m, 0.0)))
    if back_m > REVERSE_WAY_M:
        yield f"its path goes back by {back_m:.2f} m in all"


def _does_not_fold(steps: _Steps) -> Iterator[str]:
    turn = float(np.max(np.abs(steps.yaw_rad)))
    if turn > MAX_TURN_RAD:
        yield f"it turns by {np.degrees(turn):.0f} degrees"
    ahead = np.cos(steps.trajectory.yaw_rad) > 0.0
    behind_m = -float(np.min(steps.trajectory.position_m[:, 0], where=ahead, initial=0.0))
    if behind_m > MAX_BEHIND_M:
        yield f"it passes {behind_m:.1f} m behind the ego"


def _moves_as_fast_as_it_says(steps: _Steps) -> Iterator[str]:
    planned_m = (steps.speed_mps[:-1] + steps.speed_mps[1:]) / 2.0 * FUTURE_PERIOD_S
    off_m = np.abs(steps.forward_m - planned_m) - STEP_SHARE * np.abs(planned_m)
    worst = int(np.argmax(off_m))
    if off_m[worst] > STEP_M:
        yield f"it moves {steps.forward_m[worst]:.2f} m where its speed says {planned_m[worst]:.2f} m, {_at(worst)}"
    across_m = np.abs(steps.across_m) - SLIP_SHARE * np.abs(steps.forward_m)
    worst = int(np.argmax(across_m))
    if across_m[worst] > SLIP_M:
        yield f"it moves {abs(steps.across_m[worst]):.2f} m sideways {_at(worst)}"
    up_m = np.abs(steps.up_m) - MAX_SLOPE * np.abs(steps.forward_m)
    worst = int(np.argmax(up_m))
    if up_m[worst] > STEP_M:
        yield f"it rises or falls by {abs(steps.up_m[worst]):.2f} m {_at(worst)}"


def _is_moved_by_its_actions(steps: _Steps) -> Iterator[str]:
    accel = np.diff(steps.speed_mps) / FUTURE_PERIOD_S
    off = np.abs(accel - steps.trajectory.action[:, 0])
    worst = int(np.argmax(off))
    if off[worst] > ACTION_MPS2:
        wanted = steps.trajectory.action[worst, 0]
        yield f"its speed changes by {accel[worst]:.1f} m/s^2, its acceleration is {wanted:.1f} m/s^2, {_at(worst)}"
    turned = np.diff(steps.yaw_rad)
    off = np.abs(turned - steps.trajectory.action[:, 1] * steps.forward_m)
    worst = int(np.argmax(off))
    if off[worst] > ACTION_RAD:
        yield f"its heading and its curvature differ by {off[worst]:.2f} rad {_at(worst)}"


def _adds_up(steps: _Steps) -> Iterator[str]:
    planned_m = (steps.speed_mps[:-1] + steps.speed_mps[1:]) / 2.0 * FUTURE_PERIOD_S
    way_m, turned = np.abs(steps.forward_m), np.diff(steps.yaw_rad)
    ahead_m = _in_all(steps.forward_m - planned_m, STEP_SHARE * np.abs(planned_m))
    if ahead_m > ALL_M:
        yield f"it moves {ahead_m:.2f} m more or less in all than its speeds say"
    across_m = _in_all(steps.across_m, SLIP_SHARE * way_m)
    if across_m > ALL_M:
        yield f"it moves {across_m:.2f} m sideways in all"
    up_m = _in_all(steps.up_m, MAX_SLOPE * way_m)
    if up_m > ALL_M:
        yield f"it rises or falls by {up_m:.2f} m in all"
    sharp_rad = _in_all(turned, MAX_CURVATURE * way_m)
    if sharp_rad > ALL_RAD:
        yield f"it turns by {sharp_rad:.2f} rad more in all than a car can on its way"
    off_mps = _in_all(np.diff(steps.speed_mps) - steps.trajectory.action[:, 0] * FUTURE_PERIOD_S)
    if off_mps > ALL_MPS:
        yield f"its speeds and its accelerations differ by {off_mps:.1f} m/s in all"
    off_rad = _in_all(turned - steps.trajectory.action[:, 1] * steps.forward_m)
    if off_rad > ALL_RAD:
        yield f"its heading and its curvature differ by {off_rad:.2f} rad in all"


def _in_all(parts: Floats, allowed: Floats | float = 0.0) -> float:
    """The most that signed parts (64,) add up to over any stretch, beyond what each of them is allowed (64,)."""
    sums = np.cumsum(np.stack([parts - allowed, -parts - allowed]), axis=1)
    lowest = np.minimum.accumulate(np.concatenate([np.zeros((2, 1)), sums], axis=1), axis=1)[:, :-1]
    return max(float(np.max(sums - lowest)), 0.0)


def _is_in_the_power_of_a_car(steps: _Steps) -> Iterator[str]:
    speed = steps.trajectory.speed_mps
    fastest = int(np.argmax(speed))
    if speed[fastest] > MAX_SPEED_MPS:
        yield f"it drives {speed[fastest]:.1f} m/s, more than {MAX_SPEED_MPS:.0f} m/s"
    accel = np.diff(steps.speed_mps) / FUTURE_PERIOD_S
    strongest = int(np.argmax(accel))
    if accel[strongest] > MAX_ACCELERATION_MPS2:
        yield f"it accelerates by {accel[strongest]:.1f} m/s^2, more than {MAX_ACCELERATION_MPS2:.1f}, {_at(strongest)}"
    turned = np.abs(np.diff(steps.yaw_rad))
    sharp = turned - MAX_CURVATURE * np.abs(steps.forward_m)
    worst = int(np.argmax(sharp))
    if sharp[worst] > ACTION_RAD:
        yield f"it turns by {turned[worst]:.2f} rad on {steps.forward_m[worst]:.2f} m, {_at(worst)}"
    bend = float(np.max(np.abs(steps.trajectory.action[:, 1])))
    if bend > MAX_STATED_CURVATURE:
        yield f"its curvature is {bend:.1f} 1/m, more than {MAX_STATED_CURVATURE:.1f} 1/m"


def _stays_on_its_tyres(steps: _Steps) -> Iterator[str]:
    accel = np.diff(steps.speed_mps) / FUTURE_PERIOD_S
    # v^2 k = v * yaw rate.
    lateral = steps.trajectory.speed_mps * np.diff(steps.yaw_rad) / FUTURE_PERIOD_S
    grip = np.hypot(accel, lateral)
    worst = int(np.argmax(grip))
    if grip[worst] > MAX_GRIP_MPS2:
        parts = f"{accel[worst]:.1f} m/s^2 along and {abs(lateral[worst]):.1f} m/s^2 across"
        yield f"it needs {parts}, tyres hold {MAX_GRIP_MPS2:.1f} m/s^2 together, {_at(worst)}"


RULES: tuple[Callable[[_Steps], Iterator[str]], ...] = (
    _starts_at_the_ego,
    _does_not_reverse,
    _does_not_fold,
    _moves_as_fast_as_it_says,
    _is_moved_by_its_actions,
    _adds_up,
    _is_in_the_power_of_a_car,
    _stays_on_its_tyres,
)
