"""Stands between the planning thread and publication: judges plans, watches deadlines, puts in fallbacks.

Knows no ROS; the node hands in its clock. All ages are in ROS time, so a simulator that stands still makes nothing
late. What is decided when stands in docs/safety.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from flatrope_planner.domain import Plan, Trajectory, ns_to_seconds, seconds_to_ns
from flatrope_planner.errors import NotReadyError
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.plan_alarm import Trouble
from flatrope_planner.nodes.slowness import REMEDY, Slowness
from flatrope_planner.nodes.worker import FinishedTick
from flatrope_planner.planning.consistency import Consistency, ConsistencyFinding
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.fallback import Fallback
from flatrope_planner.planning.judgement import Judgement, judge
from flatrope_planner.planning.placement import PlacedTrajectory

# ROS time that moves so much faster than the steady clock, and by so much at once, has leapt: nothing was late.
LEAP_FACTOR = 20.0
LEAP_S = 1.0
NO_RATIONALE = ConsistencyFinding(Consistency.UNKNOWN, "a fallback has no rationale")


@dataclass(frozen=True)
class GuardSettings:
    """The parameters of that name; times in s of ROS time, 0 for no bound."""

    period_s: float
    deadline_s: float
    max_plan_age_s: float
    refuse_inconsistent: bool


def guard_settings(parameters: PlannerParameters) -> GuardSettings:
    """The settings that the parameters ask for."""
    p = parameters
    return GuardSettings(p.period_s, p.deadline_s, p.max_plan_age_s, p.refuse_inconsistent)


@dataclass
class GuardCounts:
    """Since the start."""

    accepted: int = 0
    # Plans that were bad, and ticks that failed.
    refused: int = 0
    # Plans too old, or of a time to come, when they were done: not published.
    stale: int = 0
    deadline_misses: int = 0
    fallbacks: int = 0
    inconsistent: int = 0
    uncomfortable: int = 0


@dataclass(frozen=True)
class GuardedPlan:
    """What is to be published."""

    placed: PlacedTrajectory
    judgement: Judgement
    # The tick whose plan it is or would have been; None for a fallback while the tick is still in flight.
    tick: FinishedTick | None
    deadline_misses: int
    fallbacks: int


class Ticking(Protocol):
    """What of the planning thread is watched: `worker.PlanningWorker`."""

    def in_flight_t0_ns(self) -> int | None:
        """The t0 of the tick in flight."""
        ...

    def newest_t0_ns(self) -> int | None:
        """The newest time that the ego can be asked for."""
        ...

    def newest_ego(self) -> EgoMoment:
        """The ego at that time."""
        ...


class SeesObstacles(Protocol):
    """What knows of things in the way: `obstacles.ObstaclePoints`."""

    def free_way_m(self, trajectory: Trajectory, ego: EgoMoment) -> float | None:
        """The way before a plan meets something, None if it does not."""
        ...


@dataclass
class _Lateness:
    """What is known of the tick that is or was in flight last."""

    t0_ns: int | None = None
    # Of its observation, when the tick was seen first (s).
    begun_age_s: float = 0.0
    missed: bool = False
    # A leap of the clock made it look late.
    waived: bool = False


@dataclass
class _RosClock:
    """ROS time as seen by one who looks again and again."""

    now_ns: Callable[[], int]
    _last: tuple[int, float] = field(default=(0, 0.0))

    def look(self, steady_s: float) -> tuple[int, bool]:
        """The time (ns), and whether it has leapt ahead since the last look."""
        now_ns = self.now_ns()
        last_ns, last_s = self._last
        self._last = (now_ns, steady_s)
        moved_s = ns_to_seconds(now_ns - last_ns)
        return now_ns, moved_s > LEAP_S + LEAP_FACTOR * (steady_s - last_s)


class PlanGuard:
    """Takes finished ticks from the planning thread and is called again and again by the node."""

    def __init__(
        self,
        settings: GuardSettings,
        now_ns: Callable[[], int],
        publish: Callable[[GuardedPlan], None],
        obstacles: SeesObstacles | None = None,
    ) -> None:
        """Judge by `settings` at ROS time `now_ns()`; `publish` is called in either thread, never in both at once."""
        self._settings, self._publish, self._obstacles = settings, publish, obstacles
        self._lock = Lock()
        self._clock = _RosClock(now_ns)
        self._fallback = Fallback()
        self._late = _Lateness()
        self._fallback_t0_ns: int | None = None
        self.counts = GuardCounts()
        self._last = Judgement()
        self._withheld = ""
        # Of the tick that was finished last, where it was too late.
        self._slowness: Slowness | None = None

    def adopt(self, settings: GuardSettings) -> None:
        """Judge by other settings from now on."""
        with self._lock:
            self._settings = settings

    def reset(self) -> None:
        """Another drive: nothing of the last one is remembered but the counts."""
        with self._lock:
            self._fallback.reset()
            self._late, self._fallback_t0_ns = _Lateness(), None
            self._last, self._withheld, self._slowness = Judgement(), "", None

    def take(self, tick: FinishedTick) -> None:
        """Publish a plan, a fallback for it, or nothing; runs in the planning thread."""
        with self._lock:
            now_ns = self._clock.now_ns()
            age_s = ns_to_seconds(now_ns - tick.ego.t0_ns)
            self._note_lateness(tick.ego.t0_ns, age_s)
            late = self._late.missed or self._is_stale(age_s)
            self._slowness = Slowness(age_s, self._late.begun_age_s, tick.took_s) if late else None
            if self._is_stale(age_s):
                self.counts.stale += 1
                self._withheld = f"not published: its observation was {_aged(age_s)}"
                return
            self._withheld = ""
            if tick.plan is None:
                self._refuse(tick, Judgement(f"the tick failed: {tick.failure}", finding=NO_RATIONALE))
            else:
                self._take_plan(tick, tick.plan)

    def watch(self, ticking: Ticking, steady_s: float) -> None:
        """Publish a fallback as soon as the tick in flight has missed its deadline, and again as time goes on.

        Args:
            ticking: the planning thread.
            steady_s: the steady clock's time, which tells a clock that leaps from one that runs.
        """
        with self._lock:
            now_ns, leapt = self._clock.look(steady_s)
            t0_ns = ticking.in_flight_t0_ns()
            if t0_ns is None:
                return
            self._note_lateness(t0_ns, ns_to_seconds(now_ns - t0_ns), leapt=leapt)
            if self._late.missed and self._is_time_for_fallback(ticking, now_ns):
                self._stand_in(ticking)

    def report(self) -> TaskReport:
        """What became of the plans: an error while the ego is being stopped."""
        with self._lock:
            counts, last, withheld = self.counts, self._last, self._withheld
            settings, slowness = self._settings, self._slowness
            values = {name: str(value) for name, value in vars(counts).items()}
        values["consistency"] = last.finding.reason
        if last.comfort_exceeded:
            values["comfort_exceeded"] = "; ".join(last.comfort_exceeded)
        slow = "" if slowness is None else slowness.words(settings.deadline_s, settings.max_plan_age_s)
        if withheld:
            return TaskReport("plans", Level.ERROR, "; ".join(filter(None, (withheld, slow))), values)
        if last.is_fallback:
            stopped = f"the ego is being stopped: {last.fallback_reason}"
            # A plan that is refused for what it is will not be better for being quicker.
            if last.pending:
                stopped = f"{stopped}; {slow or f'if ticks take so long, {REMEDY}'}"
            return TaskReport("plans", Level.ERROR, stopped, values)
        if last.finding.consistency is Consistency.INCONSISTENT:
            words = "; ".join(filter(None, (f"rationale and trajectory differ: {last.finding.reason}", slow)))
            return TaskReport("plans", Level.WARN, words, values)
        if slow:
            return TaskReport("plans", Level.WARN, f"plans are good, but late: {slow}", values)
        return TaskReport("plans", Level.OK, "plans are good" if counts.accepted else "no plan yet", values)

    def trouble(self) -> Trouble:
        """What the report speaks of."""
        with self._lock:
            if self._last.is_fallback and not self._last.pending and not self._withheld:
                return Trouble.BAD
            if self._withheld or self._slowness is not None:
                return Trouble.LATE
            return Trouble.LATE_IN_FLIGHT if self._last.pending else Trouble.NONE

    def _note_lateness(self, t0_ns: int, age_s: float, *, leapt: bool = False) -> None:
        if self._late.t0_ns != t0_ns:
            self._late = _Lateness(t0_ns, age_s)
        late = self._late
        late.waived |= leapt
        if 0.0 < self._settings.deadline_s <= age_s and not late.waived and not late.missed:
            late.missed = True
            self.counts.deadline_misses += 1

    def _is_stale(self, age_s: float) -> bool:
        return 0.0 < self._settings.max_plan_age_s < abs(age_s)

    def _take_plan(self, tick: FinishedTick, plan: Plan) -> None:
        judgement = judge(plan, tick.ego, refuse_inconsistent=self._settings.refuse_inconsistent)
        self.counts.inconsistent += judgement.finding.consistency is Consistency.INCONSISTENT
        if judgement.is_fallback:
            self._refuse(tick, judgement)
            return
        free_m = self._obstacles.free_way_m(plan.trajectory, tick.ego) if self._obstacles else None
        if free_m is not None:
            reason = f"it drives into what the point cloud shows after {free_m:.1f} m"
            self._refuse(tick, Judgement(reason, finding=judgement.finding), free_m)
            return
        self.counts.accepted += 1
        self.counts.uncomfortable += bool(judgement.comfort_exceeded)
        self._fallback_t0_ns = None
        placed = PlacedTrajectory(plan.trajectory, plan.t0_ns, tick.ego.frame_id, tick.ego.pose)
        self._fallback.accept(placed)
        self._send(placed, judgement, tick)

    def _refuse(self, tick: FinishedTick, judgement: Judgement, free_m: float = float("inf")) -> None:
        self.counts.refused += 1
        if self._fallback_t0_ns is not None and self._fallback_t0_ns > tick.ego.t0_ns:
            # The fallback for its lateness is newer than one for its faults would be.
            return
        self._fall_back(tick.ego, judgement, tick, free_m)

    def _is_time_for_fallback(self, ticking: Ticking, now_ns: int) -> bool:
        """Whether there is none for this tick yet, or a newer observation to make the next one from."""
        newest_ns = ticking.newest_t0_ns()
        if newest_ns is None or self._is_stale(ns_to_seconds(now_ns - newest_ns)):
            return False
        last_ns = self._fallback_t0_ns
        return last_ns is None or newest_ns - last_ns >= seconds_to_ns(self._settings.period_s) or newest_ns < last_ns

    def _stand_in(self, ticking: Ticking) -> None:
        try:
            ego = ticking.newest_ego()
        except NotReadyError:
            # What is missing stands in the status of the inputs; looked for again at the next poll.
            return
        reason = f"the plan is late: not done {self._settings.deadline_s:.2f} s after its observation"
        self._fall_back(ego, Judgement(reason, pending=True, finding=NO_RATIONALE), None)

    def _fall_back(
        self, ego: EgoMoment, judgement: Judgement, tick: FinishedTick | None, free_m: float = float("inf")
    ) -> None:
        self.counts.fallbacks += 1
        self._fallback_t0_ns = ego.t0_ns
        trajectory = self._fallback.stop(ego, free_m)
        self._send(PlacedTrajectory(trajectory, ego.t0_ns, ego.frame_id, ego.pose), judgement, tick)

    def _send(self, placed: PlacedTrajectory, judgement: Judgement, tick: FinishedTick | None) -> None:
        self._last, self._withheld = judgement, ""
        self._publish(GuardedPlan(placed, judgement, tick, self.counts.deadline_misses, self.counts.fallbacks))


def _aged(age_s: float) -> str:
    """An age in words, with what it most often comes from where it is none."""
    if abs(age_s) > 1e6:
        return "not of this clock's time; is use_sim_time what the stamps need?"
    return f"{age_s:.2f} s old" if age_s >= 0.0 else f"{-age_s:.2f} s in the future"
