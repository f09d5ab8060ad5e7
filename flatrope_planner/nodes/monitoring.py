"""Health in numbers: rolling windows, percentiles, levels. Knows neither ROS nor the clock; times are handed in.

Two clocks: `now_s` is of a steady clock and tells who has fallen silent; ages and rates of plans are in ROS time, which
a simulator may stop.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from flatrope_planner.domain import ns_to_seconds

PERCENTILES = (50, 90, 99)
NO_PLAN = "no plan is published; the planner's own plans, planning and inputs say why"


class Level(IntEnum):
    """Level of a diagnostic status, as diagnostic_msgs numbers them."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True)
class TaskReport:
    """One line of diagnostics."""

    task: str
    level: Level
    message: str
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Threshold:
    """From where on a value is a warning, and an error; `falling` if small values are the bad ones."""

    warn: float
    error: float
    falling: bool = False

    def level(self, value: float) -> Level:
        """The level of a value."""
        sign = -1.0 if self.falling else 1.0
        if sign * value > sign * self.error:
            return Level.ERROR
        return Level.WARN if sign * value > sign * self.warn else Level.OK


@dataclass(frozen=True)
class TickFigures:
    """What one tick reported."""

    t0_ns: int
    # Stage -> ms.
    stage_ms: dict[str, float]
    observation_age_ms: float
    # Counts since the planner's start.
    ticks: int
    dropped_ticks: int
    rounds: int
    proposed: int
    accepted: int
    committed: int
    drafter: str = ""
    deadline_misses: int = 0
    fallbacks: int = 0


@dataclass(frozen=True)
class MonitorSettings:
    """Span of the windows and all thresholds."""

    window_s: float
    stale_after_s: float
    latency_ms: Threshold
    age_ms: Threshold
    rate_hz: Threshold
    dropped_share: Threshold
    acceptance_length: Threshold


class PlannerMonitor:
    """Watches a planner through what it publishes."""

    def __init__(self, settings: MonitorSettings) -> None:
        """Begin with empty windows."""
        self._settings = settings
        self._ticks: deque[tuple[float, TickFigures]] = deque()
        # Plans made and ticks dropped since the planner's start, by its status, which is told without plans too.
        self._counts: deque[tuple[float, int, int]] = deque()
        self._heard_s: float | None = None

    def adopt(self, settings: MonitorSettings) -> None:
        """Judge by these from now on."""
        self._settings = settings

    def heard(self, now_s: float) -> None:
        """Note a sign of life."""
        self._heard_s = now_s

    def count(self, now_s: float, ticks: int, dropped_ticks: int) -> None:
        """Take in what the planner says to have planned and dropped since its start."""
        if self._counts and (ticks < self._counts[-1][1] or dropped_ticks < self._counts[-1][2]):
            self._counts.clear()
        self._counts.append((now_s, ticks, dropped_ticks))

    def take(self, now_s: float, figures: TickFigures) -> None:
        """Take in a tick; a planner that counts from the start again, or a clock set back, empties the window."""
        self.heard(now_s)
        if self._ticks:
            last = self._ticks[-1][1]
            if figures.ticks <= last.ticks or figures.t0_ns <= last.t0_ns:
                self._ticks.clear()
        self._ticks.append((now_s, figures))

    def reports(self, now_s: float, why_silent: str | None = None) -> list[TaskReport]:
        """The state of all tasks; `why_silent` is told of a planner that is."""
        for window_of in (self._ticks, self._counts):
            while window_of and now_s - window_of[0][0] > self._settings.window_s:
                window_of.popleft()
        silent = self._silence(now_s)
        if silent and why_silent:
            silent = f"{silent}: {why_silent}"
        window = [figures for _, figures in self._ticks]
        tasks = {
            "latency": self._latency,
            "rate": self._rate,
            "drops": self._drops,
            "age": self._age,
            "speculation": self._speculation,
        }
        if silent is not None or not window or now_s - self._ticks[-1][0] > self._settings.stale_after_s:
            stale = {task: TaskReport(task, Level.STALE, silent or NO_PLAN) for task in tasks}
            if silent is None:
                stale["drops"] = self._unpublished_drops() or stale["drops"]
            return [_liveness(silent), *stale.values()]
        return [_liveness(silent), *(report(window) for report in tasks.values())]

    def _silence(self, now_s: float) -> str | None:
        if self._heard_s is None:
            return "the planner has not been heard of"
        quiet_s = now_s - self._heard_s
        return f"the planner is silent for {quiet_s:.1f} s" if quiet_s > self._settings.stale_after_s else None

    def _latency(self, window: Sequence[TickFigures]) -> TaskReport:
        values: dict[str, str] = {}
        for stage in window[-1].stage_ms:
            shares = np.percentile([figures.stage_ms[stage] for figures in window], PERCENTILES)
            values |= {f"{stage}_p{p}_ms": f"{value:.1f}" for p, value in zip(PERCENTILES, shares, strict=True)}
        p90 = float(np.percentile([figures.stage_ms["total"] for figures in window], 90))
        return TaskReport("latency", self._settings.latency_ms.level(p90), f"p90 of a tick is {p90:.0f} ms", values)

    def _age(self, window: Sequence[TickFigures]) -> TaskReport:
        ages = np.percentile([figures.observation_age_ms for figures in window], PERCENTILES)
        values = {f"age_p{p}_ms": f"{value:.1f}" for p, value in zip(PERCENTILES, ages, strict=True)}
        p90 = float(ages[PERCENTILES.index(90)])
        message = f"p90 of the observation's age at publication is {p90:.0f} ms"
        if p90 < 0.0:
            return TaskReport("age", Level.ERROR, f"{message}: stamps lie in the future", values)
        return TaskReport("age", self._settings.age_ms.level(p90), message, values)

    def _rate(self, window: Sequence[TickFigures]) -> TaskReport:
        """Plans per second of ROS time."""
        span_s = ns_to_seconds(window[-1].t0_ns - window[0].t0_ns)
        if span_s <= 0.0:
            return TaskReport("rate", Level.OK, "one plan so far", {"plans": str(len(window))})
        rate_hz = (len(window) - 1) / span_s
        values = {"plans": str(len(window)), "rate_hz": f"{rate_hz:.2f}", "ticks": str(window[-1].ticks)}
        return TaskReport("rate", self._settings.rate_hz.level(rate_hz), f"{rate_hz:.2f} plans a second", values)

    def _unpublished_drops(self) -> TaskReport | None:
        """What is dropped while no plan is published; None if nothing is, or the planner has not said."""
        if not self._counts:
            return None
        (_, first_ticks, first_dropped), (_, ticks, dropped_ticks) = self._counts[0], self._counts[-1]
        dropped = dropped_ticks - first_dropped
        if not dropped:
            return None
        share = dropped / (ticks - first_ticks + dropped)
        values = {
            "dropped": str(dropped),
            "dropped_share": f"{share:.3f}",
            "dropped_since_start": str(dropped_ticks),
        }
        words = f"{share:.0%} of ticks dropped, and no plan is published"
        return TaskReport("drops", self._settings.dropped_share.level(share), words, values)

    def _drops(self, window: Sequence[TickFigures]) -> TaskReport:
        planned = window[-1].ticks - window[0].ticks
        dropped = window[-1].dropped_ticks - window[0].dropped_ticks
        share = dropped / (planned + dropped) if planned + dropped else 0.0
        values = {
            "dropped": str(dropped),
            "dropped_share": f"{share:.3f}",
            "dropped_since_start": str(window[-1].dropped_ticks),
            "deadline_misses": str(window[-1].deadline_misses - window[0].deadline_misses),
            "fallbacks": str(window[-1].fallbacks - window[0].fallbacks),
        }
        return TaskReport("drops", self._settings.dropped_share.level(share), f"{share:.0%} of ticks dropped", values)

    def _speculation(self, window: Sequence[TickFigures]) -> TaskReport:
        rounds, proposed = sum(f.rounds for f in window), sum(f.proposed for f in window)
        accepted, committed = sum(f.accepted for f in window), sum(f.committed for f in window)
        length = committed / rounds if rounds else 0.0
        values = {
            "drafter": window[-1].drafter or "none",
            "mean_acceptance_length": f"{length:.2f}",
            "acceptance_rate": f"{accepted / proposed if proposed else 0.0:.3f}",
            "rounds": str(rounds),
        }
        if not proposed:
            return TaskReport("speculation", Level.OK, "no draft: the target decodes alone", values)
        level = self._settings.acceptance_length.level(length)
        return TaskReport("speculation", level, f"{length:.2f} tokens a round", values)


def _liveness(silent: str | None) -> TaskReport:
    if silent is not None:
        return TaskReport("liveness", Level.STALE, silent)
    return TaskReport("liveness", Level.OK, "the planner is alive")
