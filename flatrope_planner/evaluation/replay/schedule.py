"""When the next plan is due."""

from collections.abc import Set
from typing import Protocol

from flatrope_planner.domain import seconds_to_ns


class Schedule(Protocol):
    """Asked before every plan."""

    def is_due(self, newest_ns: int, last_ns: int | None) -> bool:
        """Whether to plan for the newest t0, after a plan for the last one (None: there was none)."""
        ...


class EveryPeriod:
    """The planner node's own rule: a period has passed since the last plan, or there is none, or time began anew."""

    def __init__(self, period_s: float) -> None:
        """Plans at least `period_s` apart."""
        self._period_ns = seconds_to_ns(period_s)

    def is_due(self, newest_ns: int, last_ns: int | None) -> bool:
        """See `Schedule`."""
        return last_ns is None or not last_ns <= newest_ns < last_ns + self._period_ns


class AtTimes:
    """At given moments, if the cameras have a picture of then."""

    def __init__(self, times_ns: Set[int]) -> None:
        """Plans for these t0."""
        self._times_ns = times_ns

    def is_due(self, newest_ns: int, last_ns: int | None) -> bool:
        """See `Schedule`."""
        return newest_ns in self._times_ns and newest_ns != last_ns
