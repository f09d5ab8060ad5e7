"""The judge of published plans: what it lets pass, and every kind that it does not."""

import math
from dataclasses import replace

import pytest
from straight_drive import good_plan, straight_drive, with_point

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.evaluation.plan_judgement import defect
from flatrope_planner.evaluation.witness_events import Beat, PlanSeen

GOOD = good_plan(10.0)


def judged(plan: PlanSeen, *garbage_ns: int, beats: tuple[Beat, ...] = ()) -> str:
    return defect(plan, straight_drive(), garbage_ns, beats)


def beat(wall_s: float, clock_s: float) -> Beat:
    return Beat(wall_s, seconds_to_ns(clock_s))


def test_a_good_plan() -> None:
    assert judged(GOOD) == ""


def test_braking_hard_to_a_standstill_is_feasible() -> None:
    # 5 m/s, 6 m/s^2: 5 - 6 t until it stands after 0.83 s.
    points = []
    for i in range(1, 65):
        t = min(0.1 * i, 5.0 / 6.0)
        points.append((0.1 * i, 50.0 + 5.0 * t - 3.0 * t * t, 0.0, 0.0, 5.0 - 6.0 * t))
    assert judged(replace(GOOD, points=tuple(points))) == ""


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (replace(GOOD, points=GOOD.points[:63]), "63 points"),
        (with_point(GOOD, 7, y_m=math.nan), "not finite"),
        (replace(GOOD, ego=(math.inf, 0.0, 0.0)), "not finite"),
        (good_plan(10.0, age_s=1.6), "1.60 s old"),
        (good_plan(10.0, age_s=-0.2), "for 0.20 s in the future"),
        (replace(GOOD, ego=(50.0, 0.4, 0.0)), "starts 0.40 m and 0 degrees from the true pose"),
        (replace(GOOD, ego=(50.0, 0.0, 0.2)), "starts 0.00 m and 11 degrees from the true pose"),
        (with_point(GOOD, 0, y_m=50.0), "leaps by 50.0 m at 0.1 s"),
        # 0.5 m a step are planned, 0.3 m more are let pass.
        (with_point(GOOD, 9, x_m=GOOD.points[9][1] + 0.4), "leaps by 0.9 m at 1.0 s"),
        (with_point(GOOD, 9, x_m=GOOD.points[8][1] - 0.4), "reverses at 1.0 s"),
        (with_point(GOOD, 9, speed_mps=-0.5), "reverses at 1.0 s"),
        (with_point(GOOD, 9, speed_mps=8.0), "accelerates by 30 m/s^2 at 1.0 s"),
        (with_point(GOOD, 9, time_s=0.8), "time does not go on after 0.9 s"),
    ],
)
def test_a_plan_that_is_not_one(plan: PlanSeen, words: str) -> None:
    assert judged(plan) == words


def test_a_plan_made_from_a_damaged_picture() -> None:
    assert judged(GOOD, GOOD.t0_ns) == "made from a damaged picture"
    assert judged(GOOD, GOOD.t0_ns + 1) == ""


def test_a_heading_of_a_whole_turn_more_is_the_same() -> None:
    assert judged(replace(GOOD, ego=(50.0, 0.0, math.tau))) == ""


@pytest.mark.parametrize(("after_s", "words"), [(0.1, ""), (0.2, "for 4.60 s in the future")])
def test_a_plan_under_way_while_the_clock_goes_back_is_no_fault(after_s: float, words: str) -> None:
    plan = replace(good_plan(10.0, age_s=-4.6, wall_s=70.0 + after_s))
    beats = (beat(69.95, 10.2), beat(70.0, 5.25), beat(70.05, 5.3))
    assert judged(plan, beats=beats) == words
