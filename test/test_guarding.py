"""What is published when plans are good, bad, late or stale; the test turns the clock and plays the planning thread."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from stand_ins import SPEED_MPS, straight

from flatrope_planner.domain import Plan, Rationale, SpeculationStats, Trajectory, seconds_to_ns
from flatrope_planner.errors import NotReadyError
from flatrope_planner.nodes.guarding import GuardedPlan, GuardSettings, PlanGuard
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.plan_alarm import Trouble
from flatrope_planner.nodes.slowness import foreseen
from flatrope_planner.nodes.worker import FinishedTick
from flatrope_planner.planning.consistency import Consistency
from flatrope_planner.planning.driven_arc import DrivenArc, EgoMoment
from flatrope_planner.planning.plan_validator import refusal
from flatrope_planner.planning.pose import Pose, yaw_quaternion

SETTINGS = GuardSettings(period_s=0.5, deadline_s=1.0, max_plan_age_s=1.2, refuse_inconsistent=False)
LATE = "the plan is late: not done 1.00 s after its observation"


def ego_at(t0_s: float) -> EgoMoment:
    """At 5 m/s along x."""
    pose = Pose(SPEED_MPS * t0_s, 0.0, 0.0, yaw_quaternion(0.0))
    return EgoMoment(seconds_to_ns(t0_s), pose, "map", DrivenArc(SPEED_MPS))


def tick(t0_s: float, trajectory: Trajectory | None = None, text: str = "Keep the speed.") -> FinishedTick:
    """A finished tick."""
    chosen = straight() if trajectory is None else trajectory
    plan = Plan(seconds_to_ns(t0_s), chosen, Rationale(text), SpeculationStats(5, 0, 0, 5))
    return FinishedTick(plan, "", ego_at(t0_s), 1, 0)


def failed(t0_s: float) -> FinishedTick:
    return FinishedTick(None, "ValueError: out of cheese", ego_at(t0_s), 1, 0)


@dataclass
class Playing:
    """A planning thread, a clock, and what was published."""

    in_flight_s: float | None = None
    newest_s: float | None = None
    now_s: float = 0.0
    missing: bool = False
    published: list[GuardedPlan] = field(default_factory=list)

    def in_flight_t0_ns(self) -> int | None:
        return None if self.in_flight_s is None else seconds_to_ns(self.in_flight_s)

    def newest_t0_ns(self) -> int | None:
        return None if self.newest_s is None else seconds_to_ns(self.newest_s)

    def newest_ego(self) -> EgoMoment:
        if self.missing or self.newest_s is None:
            msg = "waiting for odometry"
            raise NotReadyError(msg)
        return ego_at(self.newest_s)

    def guard(self, settings: GuardSettings = SETTINGS) -> PlanGuard:
        guard = PlanGuard(settings, lambda: seconds_to_ns(self.now_s), self.published.append)
        # The first look at a clock is a leap from nothing.
        guard.watch(self, self.now_s)
        return guard

    def told(self) -> list[tuple[float, str]]:
        """t0 (s) and reason of all that was published."""
        return [(one.placed.t0_ns * 1e-9, one.judgement.fallback_reason) for one in self.published]


def test_a_good_plan_is_published_as_it_is() -> None:
    play = Playing(now_s=10.3)
    guard, done = play.guard(), tick(10.0)
    guard.take(done)
    one = play.published[0]
    assert done.plan is not None
    assert one.placed.trajectory is done.plan.trajectory
    assert (one.placed.t0_ns, one.placed.frame_id, one.placed.pose_t0.x_m) == (seconds_to_ns(10.0), "map", 50.0)
    assert not one.judgement.is_fallback
    assert one.judgement.finding.consistency is Consistency.CONSISTENT
    assert (one.tick, one.deadline_misses, one.fallbacks) == (done, 0, 0)
    assert guard.report().level is Level.OK


def test_a_bad_plan_becomes_a_stop_along_the_last_good_one() -> None:
    play = Playing(now_s=10.3)
    guard = play.guard()
    guard.take(tick(10.0))
    play.now_s = 10.8
    bad = replace(straight(), position_m=straight().position_m * np.nan)
    done = tick(10.5, bad)
    guard.take(done)
    one = play.published[1]
    assert play.told()[1] == (10.5, "a number of the plan is not finite")
    assert one.placed.pose_t0.x_m == 52.5
    assert one.tick is done
    assert not one.judgement.pending
    np.testing.assert_allclose(one.placed.trajectory.speed_mps[:3], [4.96, 4.88, 4.76])
    assert refusal(one.placed.trajectory, DrivenArc(SPEED_MPS)) == ""
    assert (guard.counts.refused, guard.counts.fallbacks, guard.counts.accepted) == (1, 1, 1)
    report = guard.report()
    assert report.level is Level.ERROR
    assert report.message == "the ego is being stopped: a number of the plan is not finite"
    # The next good plan ends it.
    play.now_s = 11.3
    guard.take(tick(11.0))
    assert guard.report().level is Level.OK


def test_a_tick_that_fails_is_a_stop_too() -> None:
    play = Playing(now_s=10.3)
    play.guard().take(failed(10.0))
    assert play.told() == [(10.0, "the tick failed: ValueError: out of cheese")]
    assert play.published[0].placed.trajectory.speed_mps[-1] == 0.0


def test_a_plan_for_another_time_than_the_observations_is_bad() -> None:
    play = Playing(now_s=10.3)
    done = tick(10.0)
    play.guard().take(replace(done, ego=ego_at(10.1)))
    assert "it was made for another time" in play.told()[0][1]


@pytest.mark.parametrize("refuse", [False, True])
def test_a_plan_that_does_not_do_what_it_says_is_marked_and_refused_on_demand(refuse: bool) -> None:
    play = Playing(now_s=10.3)
    guard = play.guard(replace(SETTINGS, refuse_inconsistent=refuse))
    guard.take(tick(10.0, text="Stop for the red light."))
    one = play.published[0]
    reason = "says 'stop', but its speed stays above 5.0 m/s, from 5.0 m/s"
    assert (one.judgement.finding.consistency, one.judgement.finding.reason) == (Consistency.INCONSISTENT, reason)
    assert one.judgement.fallback_reason == (reason if refuse else "")
    assert guard.counts.inconsistent == 1
    assert guard.report().level is (Level.ERROR if refuse else Level.WARN)


def test_a_late_plan_is_replaced_in_mid_flight_and_again_as_time_goes_on() -> None:
    play = Playing(now_s=10.3)
    guard = play.guard()
    guard.take(tick(10.0))
    play.in_flight_s, play.newest_s, play.now_s = 10.5, 11.3, 11.4
    guard.watch(play, play.now_s)
    assert len(play.published) == 1
    play.now_s = 11.5
    guard.watch(play, play.now_s)
    guard.watch(play, play.now_s)
    # From the newest observation, by the ego there.
    assert play.told()[1:] == [(11.3, LATE)]
    assert play.published[1].placed.pose_t0.x_m == pytest.approx(56.5)
    assert play.published[1].tick is None
    assert play.published[1].judgement.pending
    assert (guard.counts.deadline_misses, guard.counts.fallbacks) == (1, 1)
    play.newest_s, play.now_s = 11.8, 11.9
    guard.watch(play, play.now_s)
    assert [t0_s for t0_s, _ in play.told()] == [10.0, 11.3, 11.8]
    # The second one brakes on: 0.5 s after the first one began the brake is pressed by 2 m/s^2.
    assert play.published[2].placed.trajectory.action[0, 0] == pytest.approx(-2.4)
    assert (guard.counts.deadline_misses, guard.counts.fallbacks) == (1, 2)


@pytest.mark.parametrize(("done_s", "published"), [(11.65, True), (11.75, False)])
def test_the_late_plan_is_published_while_it_is_young_enough(done_s: float, published: bool) -> None:
    play = Playing(now_s=10.0)
    guard = play.guard()
    play.in_flight_s, play.newest_s, play.now_s = 10.5, 11.4, 11.5
    guard.watch(play, play.now_s)
    play.in_flight_s, play.now_s = None, done_s
    guard.take(tick(10.5))
    assert len(play.published) == 1 + published
    assert (guard.counts.accepted, guard.counts.stale) == (int(published), int(not published))
    assert guard.counts.deadline_misses == 1
    assert guard.report().level is (Level.WARN if published else Level.ERROR)


def test_a_slow_planner_is_told_how_long_its_ticks_take_and_what_to_do() -> None:
    play = Playing(now_s=10.1)
    guard = play.guard()
    play.in_flight_s = 10.0
    guard.watch(play, play.now_s)
    assert guard.trouble() is Trouble.NONE
    # How long it takes is not known yet, what can be done is.
    play.newest_s, play.now_s = 10.9, 11.0
    guard.watch(play, play.now_s)
    assert guard.trouble() is Trouble.LATE_IN_FLIGHT
    assert guard.report().message.startswith(f"the ego is being stopped: {LATE}; if ticks take so long, make ticks")
    play.in_flight_s, play.now_s = None, 13.1
    guard.take(replace(tick(10.0), took_s=3.02))
    assert guard.trouble() is Trouble.LATE
    cause = "; a tick takes 3.02 s and deadline_s is 1, max_plan_age_s 1.2: make ticks quicker (a smaller target, "
    assert guard.report().message.startswith(f"not published: its observation was 3.10 s old{cause}")
    # While the next one is being waited for too.
    play.in_flight_s, play.newest_s, play.now_s = 13.5, 14.5, 14.6
    guard.watch(play, play.now_s)
    play.now_s = 14.7
    guard.watch(play, play.now_s)
    assert guard.report().message.startswith(f"the ego is being stopped: {LATE}{cause}")
    # Late, but not too late.
    play.in_flight_s = None
    guard.take(replace(tick(13.5), took_s=1.15))
    assert guard.report().message.startswith("plans are good, but late: a tick takes 1.15 s and")
    play.now_s = 15.0
    guard.take(replace(tick(14.9), took_s=0.1))
    assert (guard.report().level, guard.report().message) == (Level.OK, "plans are good")
    assert guard.trouble() is Trouble.NONE
    guard.take(failed(14.95))
    assert guard.trouble() is Trouble.BAD


@pytest.mark.parametrize(
    ("took_s", "deadline_s", "max_plan_age_s", "told"),
    [
        (0.9, 1.0, 1.2, False),
        (1.1, 1.0, 1.2, True),
        (1.1, 0.0, 1.2, False),
        (1.3, 0.0, 1.2, True),
        (600.0, 0.0, 0.0, False),
    ],
)
def test_that_plans_will_be_late_is_told_beforehand(
    took_s: float, deadline_s: float, max_plan_age_s: float, told: bool
) -> None:
    words = foreseen(took_s, deadline_s, max_plan_age_s)
    assert bool(words) is told
    bounds = f"deadline_s is {deadline_s:g}, max_plan_age_s {max_plan_age_s:g}"
    assert not told or words.startswith(f"a plan takes about {took_s:.2f} s and {bounds}: plans will be late")


def test_a_plan_of_an_observation_that_was_old_from_the_start_is_no_matter_of_slow_ticks() -> None:
    play = Playing(now_s=11.2)
    guard = play.guard()
    play.in_flight_s = 10.0
    guard.watch(play, play.now_s)
    play.in_flight_s, play.now_s = None, 11.3
    guard.take(replace(tick(10.0), took_s=0.1))
    words = guard.report().message
    assert "the tick took 0.10 s, but its observation was 1.20 s old when it began" in words
    assert "deadline_s" not in words


def test_a_late_plan_that_is_bad_does_not_take_the_place_of_the_newer_fallback() -> None:
    play = Playing(now_s=10.0)
    guard = play.guard()
    play.in_flight_s, play.newest_s, play.now_s = 10.5, 11.4, 11.5
    guard.watch(play, play.now_s)
    play.in_flight_s, play.now_s = None, 11.6
    guard.take(failed(10.5))
    assert play.told() == [(11.4, LATE)]
    assert guard.counts.refused == 1


def test_a_miss_that_nobody_watched_is_counted_all_the_same() -> None:
    play = Playing(now_s=11.1)
    guard = play.guard()
    guard.take(tick(10.0))
    assert (len(play.published), guard.counts.deadline_misses) == (1, 1)
    assert play.published[0].deadline_misses == 1


@pytest.mark.parametrize(
    ("now_s", "words"), [(11.3, "1.30 s old"), (8.7, "1.30 s in the future"), (1e9, "use_sim_time")]
)
def test_a_stale_plan_is_not_published_whatever_it_is(now_s: float, words: str) -> None:
    play = Playing(now_s=now_s)
    guard = play.guard()
    for done in (tick(10.0), failed(10.0)):
        guard.take(done)
    assert not play.published
    assert guard.counts.stale == 2
    assert words in guard.report().message


def test_without_bounds_nothing_is_late_or_stale() -> None:
    play = Playing(now_s=1e9)
    guard = play.guard(replace(SETTINGS, deadline_s=0.0, max_plan_age_s=0.0))
    play.in_flight_s, play.newest_s = 10.0, 10.0
    guard.watch(play, play.now_s)
    guard.take(tick(10.0))
    assert play.told() == [(10.0, "")]
    assert guard.counts.deadline_misses == 0


@pytest.mark.parametrize(
    "change",
    [
        # Inputs have stopped: the newest observation is stale itself.
        lambda play: setattr(play, "newest_s", 10.2),
        lambda play: setattr(play, "newest_s", None),
        lambda play: setattr(play, "missing", True),
    ],
)
def test_without_a_new_observation_there_is_no_fallback(change: Callable[[Playing], None]) -> None:
    play = Playing(now_s=10.0)
    guard = play.guard()
    play.in_flight_s, play.newest_s, play.now_s = 10.1, 11.5, 11.5
    change(play)
    guard.watch(play, play.now_s)
    assert not play.published
    assert (guard.counts.deadline_misses, guard.counts.fallbacks) == (1, 0)


def test_a_clock_that_stands_still_makes_nothing_late() -> None:
    play = Playing(now_s=10.1)
    guard = play.guard()
    play.in_flight_s, play.newest_s = 10.0, 10.0
    for _ in range(100):
        guard.watch(play, play.now_s)
    assert (guard.counts.deadline_misses, play.published) == (0, [])


def test_a_clock_that_leaps_ahead_makes_nothing_late_but_the_plan_stale() -> None:
    play = Playing(now_s=10.1)
    guard = play.guard()
    play.in_flight_s, play.newest_s = 10.0, 10.0
    guard.watch(play, play.now_s)
    play.now_s, play.newest_s = 100.0, 100.0
    guard.watch(play, 10.12)
    guard.watch(play, 10.14)
    guard.take(tick(10.0))
    assert (guard.counts.deadline_misses, guard.counts.stale, play.published) == (0, 1, [])
    # The next tick has a deadline again.
    play.in_flight_s = 100.0
    for step in range(1, 12):
        play.now_s = 100.0 + step * 0.1
        guard.watch(play, 10.14 + step * 0.1)
    assert guard.counts.deadline_misses == 1


def test_after_a_reset_nothing_of_the_last_drive_is_left() -> None:
    play = Playing(now_s=10.0)
    guard = play.guard()
    guard.take(tick(10.0))
    guard.take(failed(10.0))
    guard.reset()
    assert guard.report().level is Level.OK
    # The clock goes on from a time long past: the old plan's path is no way to go, the brake is pressed anew.
    play.now_s = 2.0
    guard.take(failed(2.0))
    assert play.published[-1].placed.trajectory.action[0, 0] == pytest.approx(-0.4)


class Wall:
    """Something in the way."""

    def free_way_m(self, trajectory: Trajectory, ego: EgoMoment) -> float | None:
        return 5.0


def test_a_plan_that_drives_into_something_is_refused_and_the_stop_is_short() -> None:
    play = Playing(now_s=10.3)
    guard = PlanGuard(SETTINGS, lambda: seconds_to_ns(play.now_s), play.published.append, Wall())
    guard.take(tick(10.0))
    assert play.told() == [(10.0, "it drives into what the point cloud shows after 5.0 m")]
    # 5 m/s and 4 m to stop in: 3.1 m/s^2 at least, where a gentle stop takes 6.5 m.
    assert play.published[0].placed.trajectory.position_m[-1, 0] < 4.0
