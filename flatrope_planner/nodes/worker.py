"""The planning thread: loads the planner, then plans tick by tick. Knows no ROS: it is polled and it calls back."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

from flatrope_planner.domain import Observation, Plan, SpeculationHealth, seconds_to_ns
from flatrope_planner.errors import NotReadyError, described
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.planning.core import PlanningCore
from flatrope_planner.planning.driven_arc import EgoMoment, driven_arc

# Longest wait for a plan in flight when the node ends; a model that is still being loaded is not waited for.
JOIN_TIMEOUT_S = 1.0
# Inputs that skip more periods than this have not been late: their time has leapt.
LEAP_PERIODS = 5


@dataclass(frozen=True)
class FinishedTick:
    """A plan with the ego it was made for, or what went wrong instead of one."""

    # None where the tick failed.
    plan: Plan | None
    failure: str
    ego: EgoMoment
    # Counts since the start, this tick included unless it failed.
    ticks: int
    dropped_ticks: int
    # How long the planner was at it (s of real time).
    took_s: float = 0.0


class PlanningWorker:
    """Plans in a thread of its own whenever `poll` finds a tick due."""

    def __init__(
        self,
        inputs: PlannerInputs,
        load: Callable[[], PlanningCore],
        deliver: Callable[[FinishedTick], None],
        period_s: float,
    ) -> None:
        """Plan from `inputs` with what `load` returns, at most every `period_s`; `deliver` is called in the thread."""
        self._inputs, self._load, self._deliver = inputs, load, deliver
        self._period_ns = seconds_to_ns(period_s)
        self._wakes = Condition()
        self._thread = Thread(target=self._run, name="planning", daemon=True)
        self._ending = self._loaded = self._busy = False
        # Raised by every reset, so that a plan made for the time before is not delivered.
        self._epoch = 0
        self._last_t0_ns: int | None = None
        self._refused_t0_ns: int | None = None
        # Of the tick in flight, None for none.
        self._in_flight_t0_ns: int | None = None
        # Newest time when the tick in flight began, and ticks that have fallen due since.
        self._begun_t0_ns = self._newest_ns = self._missed = 0
        self.ticks = self.dropped_ticks = self.failed_ticks = 0
        # When the plan in flight was begun, None for none, and when there was cause to plan last (s, steady).
        self._begun_s: float | None = None
        self._planned_s = time.monotonic()
        # Of the last tick: how long it took (s), and how many fell due meanwhile.
        self._took_s, self._overrun = 0.0, 0
        self._load_failure = self._tick_failure = ""
        self._health = SpeculationHealth()

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def wait_until_loaded(self) -> bool:
        """Wait until the planner is loaded, cannot be loaded, or is no longer wanted; whether it is loaded."""
        with self._wakes:
            self._wakes.wait_for(lambda: self._loaded or self._load_failure or self._ending)
            return self._loaded and not self._ending

    def close(self) -> None:
        """End the thread; a plan in flight is waited for, but not for ever."""
        with self._wakes:
            self._ending = True
            self._wakes.notify_all()
        if self._thread.is_alive():
            self._thread.join(JOIN_TIMEOUT_S if self._loaded else 0.0)

    def reset(self) -> None:
        """Forget when the last plan was made: the clock was set back."""
        with self._wakes:
            self._epoch += 1
            self._last_t0_ns = self._refused_t0_ns = self._in_flight_t0_ns = None

    def in_flight_t0_ns(self) -> int | None:
        """The t0 of the tick in flight; None while none is, or when it is of a time before the clock was set back."""
        with self._wakes:
            return self._in_flight_t0_ns

    def newest_t0_ns(self) -> int | None:
        """The newest time that the ego can be asked for."""
        return self._inputs.newest_t0_ns()

    def newest_ego(self) -> EgoMoment:
        """The ego at that time.

        Raises:
            NotReadyError: saying which input is missing.
        """
        return self._observe()[1]

    def set_period(self, period_s: float) -> None:
        """Plan at most every `period_s` from now on."""
        with self._wakes:
            self._period_ns = seconds_to_ns(period_s)

    def begin(self) -> None:
        """Be polled from now on: that nothing was planned before is as it should be."""
        with self._wakes:
            self._planned_s = time.monotonic()

    def idle_s(self) -> float | None:
        """How long nothing has been planned (s), 0 while a tick is in flight; None where nothing is loaded."""
        with self._wakes:
            if not self._loaded:
                return None
            return 0.0 if self._begun_s is not None else time.monotonic() - self._planned_s

    def poll(self) -> None:
        """Start a tick if one is due and none is in flight; count it as dropped if one is."""
        newest_ns = self._inputs.newest_t0_ns()
        with self._wakes:
            if newest_ns is None or not self._loaded or newest_ns == self._refused_t0_ns:
                return
            if self._busy:
                self._count_missed(newest_ns)
            elif self._is_due(newest_ns):
                self._busy, self._missed = True, 0
                self._begun_t0_ns = self._newest_ns = newest_ns
                self._wakes.notify_all()

    def reports(self) -> list[TaskReport]:
        """The state of the model and of planning."""
        with self._wakes:
            return [self._model_report(), self._planning_report(), self._draft_report()]

    def _is_due(self, newest_ns: int) -> bool:
        """Whether a period has passed since the last plan, or there is none, or time began anew."""
        last_ns = self._last_t0_ns
        return last_ns is None or newest_ns < last_ns or newest_ns - last_ns >= self._period_ns

    def _count_missed(self, newest_ns: int) -> None:
        """Count the ticks that have fallen due since the one in flight began."""
        if newest_ns - self._newest_ns > LEAP_PERIODS * self._period_ns:
            # Between two drives the clock leaps; nothing was to be planned in between.
            self._begun_t0_ns += newest_ns - self._newest_ns
        self._newest_ns = newest_ns
        due = (newest_ns - self._begun_t0_ns) // self._period_ns
        if due > self._missed:
            self.dropped_ticks += due - self._missed
            self._missed = due

    def _model_report(self) -> TaskReport:
        if self._load_failure:
            return TaskReport("model", Level.ERROR, f"model not loaded: {self._load_failure}")
        if self._thread.ident is None:
            return TaskReport("model", Level.WARN, "no model is loaded")
        if not self._loaded:
            return TaskReport("model", Level.WARN, "the model is being loaded")
        return TaskReport("model", Level.OK, "the model is loaded")

    def _planning_report(self) -> TaskReport:
        values = {
            "ticks": str(self.ticks),
            "dropped_ticks": str(self.dropped_ticks),
            "failed_ticks": str(self.failed_ticks),
            "last_tick_s": f"{self._took_s:.2f}",
        }
        in_flight = ""
        if self._begun_s is not None:
            in_flight_s = time.monotonic() - self._begun_s
            values["in_flight_s"] = f"{in_flight_s:.2f}"
            in_flight = f": the first one has been in the making for {in_flight_s:.1f} s"
        if self._tick_failure:
            return TaskReport("planning", Level.ERROR, f"the last tick failed: {self._tick_failure}", values)
        if not self.ticks:
            return TaskReport("planning", Level.WARN, f"no plan yet{in_flight}", values)
        made = f"{self.ticks} plans made, the last in {self._took_s:.2f} s"
        if self._overrun:
            words = f"{made}, in which {self._overrun} more fell due and were dropped: period_s is shorter than a tick"
            return TaskReport("planning", Level.WARN, words, values)
        return TaskReport("planning", Level.OK, made, values)

    def _draft_report(self) -> TaskReport:
        if self._loaded:
            return speculation_report(self._health)
        # Who drafts is not known before.
        loading = self._thread.ident is not None and not self._load_failure
        words = "the model is being loaded, and the draft with it" if loading else "no model is loaded, and no draft"
        return TaskReport("draft", Level.OK, words)

    def _run(self) -> None:
        core = self._loaded_core()
        if core is None:
            return
        drive = self._epoch
        while True:
            with self._wakes:
                self._wakes.wait_for(lambda: self._busy or self._ending)
                if self._ending:
                    return
                epoch = self._epoch
            try:
                if epoch != drive:
                    core.reset()
                    drive = epoch
                self._tick(core, epoch)
            except BaseException as err:
                # Whatever goes wrong with one tick, the next one is planned.
                with self._wakes:
                    self.failed_ticks += 1
                    self._tick_failure = described(err)
            with self._wakes:
                self._busy = False

    def _loaded_core(self) -> PlanningCore | None:
        try:
            core = self._load()
            self._inputs.adopt(core.observation_spec)
        except BaseException as err:
            # Whatever goes wrong in a thread has to be told, or nobody hears of it. What panics in Rust, as tokenizers
            # and safetensors may, is no Exception.
            with self._wakes:
                self._load_failure = described(err)
                self._wakes.notify_all()
            return None
        with self._wakes:
            self._loaded = True
            self._planned_s = time.monotonic()
            self._health = core.health
            self._wakes.notify_all()
        return core

    def _observe(self) -> tuple[Observation, EgoMoment]:
        observation, pose_t0, frame_id = self._inputs.observe()
        return observation, EgoMoment(observation.t0_ns, pose_t0, frame_id, driven_arc(observation.ego_history))

    def _tick(self, core: PlanningCore, epoch: int) -> None:
        try:
            observation, ego = self._observe()
        except NotReadyError:
            # Tried again with the next picture; what is missing stands in the status of the inputs.
            with self._wakes:
                self._refused_t0_ns = self._inputs.newest_t0_ns()
            return
        with self._wakes:
            self._last_t0_ns = observation.t0_ns
            self._in_flight_t0_ns = observation.t0_ns if epoch == self._epoch else None
            self._begun_s = begun_s = time.monotonic()
        plan, failure = _planned(core, observation)
        with self._wakes:
            self._planned_s, self._begun_s = time.monotonic(), None
            took_s = self._took_s = self._planned_s - begun_s
            self._overrun = self._missed
            self._tick_failure = failure
            self.failed_ticks += plan is None
            if plan is not None:
                self._health = core.health
            if epoch != self._epoch or self._ending:
                return
            self._in_flight_t0_ns = None
            self.ticks += plan is not None
            finished = FinishedTick(plan, failure, ego, self.ticks, self.dropped_ticks, took_s)
        self._deliver(finished)


def _planned(core: PlanningCore, observation: Observation) -> tuple[Plan | None, str]:
    """The plan, or why there is none."""
    try:
        return core.plan(observation), ""
    except BaseException as err:
        # One bad tick must not end the thread.
        return None, described(err)


def speculation_report(health: SpeculationHealth) -> TaskReport:
    """Speculation in words."""
    values = {
        "drafter": health.drafter or "none",
        "exactness": health.exactness,
        "speculation_active": str(health.speculating).lower(),
        "audited": str(health.audited),
        "divergences": str(health.divergences),
    }
    if health.broken_promise:
        return TaskReport("draft", Level.ERROR, health.broken_promise, values)
    if health.problem:
        return TaskReport("draft", Level.WARN, health.problem, values)
    message = f"{health.drafter} drafts" if health.speculating else "the target writes alone"
    return TaskReport("draft", Level.OK, message, values)
