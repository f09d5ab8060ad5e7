"""Whether a plan that was published as good is one: judged against the truth, by rules of its own.

None of these rules is the planner's: they stand here once more, so that a hole in its validator shows.
"""

import math
from collections.abc import Collection
from itertools import pairwise

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.evaluation.drive import Drive
from flatrope_planner.evaluation.witness_events import Beat, PlanSeen

# PlannedTrajectory.OK, as in its message definition.
OK = 0
# Oldest observation a good plan may come from when it is published, and room for clocks that come late (s).
MAX_AGE_S = 1.5
MAX_AHEAD_S = 0.15
# How far the plan's start may lie from where the ego truly was (m, rad): interpolation, and 50 ms of extrapolation.
START_OFF_M = 0.3
START_OFF_RAD = 0.1
# Faster than any car, quicker than any tyre, and backwards (m/s, m/s^2, m/s).
MAX_SPEED_MPS = 70.0
MAX_ACCELERATION_MPS2 = 15.0
REVERSE_MPS = -0.3
# What two points may lie apart beside what the speeds of both allow (m).
STEP_SLACK_M = 0.3
# A leap of the clock, and how long after it messages of before may still be under way (s).
LEAP_S = 1.0
UNDER_WAY_S = 0.15


def defect(plan: PlanSeen, truth: Drive, garbage_ns: Collection[int], beats: Collection[Beat]) -> str:
    """What is wrong with a plan published as good, in words; "" for nothing.

    Args:
        plan: as it was published.
        truth: the drive it was made for.
        garbage_ns: stamps of pictures that nobody may plan with.
        beats: the clock around the plan.
    """
    return (
        _unfinished(plan)
        or _untimely(plan, beats)
        or ("made from a damaged picture" if plan.t0_ns in garbage_ns else "")
        or _misplaced(plan, truth)
        or _infeasible(plan, truth.speed_at(plan.t0_ns))
    )


def _unfinished(plan: PlanSeen) -> str:
    if len(plan.points) != FUTURE_POINTS:
        return f"{len(plan.points)} points"
    return "" if all(map(math.isfinite, (*plan.ego, *(x for p in plan.points for x in p)))) else "not finite"


def _untimely(plan: PlanSeen, beats: Collection[Beat]) -> str:
    """Too old, or of a time to come; by the clock before a leap when the plan may have been under way."""
    clocks_ns = [plan.clock_ns]
    for before, after in pairwise(beats):
        leapt = abs(ns_to_seconds(after.clock_ns - before.clock_ns)) > LEAP_S
        if leapt and -UNDER_WAY_S < plan.wall_s - after.wall_s < UNDER_WAY_S:
            clocks_ns += [before.clock_ns, after.clock_ns]
    ages_s = [ns_to_seconds(clock_ns - plan.t0_ns) for clock_ns in clocks_ns]
    if any(-MAX_AHEAD_S <= age_s <= MAX_AGE_S for age_s in ages_s):
        return ""
    return f"{ages_s[0]:.2f} s old" if ages_s[0] > 0.0 else f"for {-ages_s[0]:.2f} s in the future"


def _misplaced(plan: PlanSeen, truth: Drive) -> str:
    pose, (x_m, y_m, yaw_rad) = truth.pose_at(plan.t0_ns), plan.ego
    off_m = math.hypot(x_m - pose.x_m, y_m - pose.y_m)
    off_rad = abs(math.remainder(yaw_rad - pose.yaw_rad, math.tau))
    if off_m > START_OFF_M or off_rad > START_OFF_RAD:
        return f"starts {off_m:.2f} m and {math.degrees(off_rad):.0f} degrees from the true pose"
    return ""


def _infeasible(plan: PlanSeen, speed_mps: float) -> str:
    """A leap, a reversal or a push that no car makes; `speed_mps` is the ego's at t0."""
    start = (0.0, *plan.ego, speed_mps)
    for (t, x, y, yaw, v), (next_t, next_x, next_y, _, next_v) in pairwise((start, *plan.points)):
        span_s = next_t - t
        if span_s <= 0.0:
            return f"time does not go on after {t:.1f} s"
        along_m = (next_x - x) * math.cos(yaw) + (next_y - y) * math.sin(yaw)
        if next_v < REVERSE_MPS or along_m < REVERSE_MPS * span_s - STEP_SLACK_M:
            return f"reverses at {next_t:.1f} s"
        apart_m = math.hypot(next_x - x, next_y - y)
        if next_v > MAX_SPEED_MPS or apart_m > max(v, next_v) * span_s + STEP_SLACK_M:
            return f"leaps by {apart_m:.1f} m at {next_t:.1f} s"
        # Against the first point stands the truth, which the model has to estimate.
        if t > 0.0 and abs(next_v - v) > MAX_ACCELERATION_MPS2 * span_s:
            return f"accelerates by {(next_v - v) / span_s:.0f} m/s^2 at {next_t:.1f} s"
    return ""
