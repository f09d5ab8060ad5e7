"""What is wrong with plans, told on the console: nobody may be listening to the status."""

import re
from collections.abc import Callable
from enum import Enum, auto

from flatrope_planner.nodes.monitoring import TaskReport

# How long plans have to be all right until trouble is news again (s, steady): it comes and goes in between.
RECOVERED_S = 3.0
# How long to wait for a first late plan to be done, as it then says how long a tick takes (s, steady).
PATIENCE_S = 5.0


class Trouble(Enum):
    """What keeps plans from being followed."""

    NONE = auto()
    # The plan in flight is late, and it is not known yet how long a tick takes.
    LATE_IN_FLIGHT = auto()
    LATE = auto()
    # Plans are refused for what they are.
    BAD = auto()


class PlanAlarm:
    """Remembers what the console was told since plans were all right."""

    def __init__(self, warn: Callable[[str], object], inform: Callable[[str], object]) -> None:
        """Tell the console of trouble by `warn`, of its end by `inform`."""
        self._warn, self._inform = warn, inform
        self._told: set[str] = set()
        # How many plans had been accepted when all was right for the first time after trouble.
        self._accepted = 0
        # Since when plans are late, now and then at least, and since when all is right (s).
        self._late_s: float | None = None
        self._well_s: float | None = None

    def look(self, report: TaskReport, trouble: Trouble, now_s: float) -> None:
        """Say each thing once, until plans have been all right for a while.

        Args:
            report: on the plans.
            trouble: what it speaks of.
            now_s: the steady clock's time.
        """
        if trouble is Trouble.NONE:
            self._recover(report, now_s)
            return
        self._well_s = None
        if self._late_s is None:
            self._late_s = now_s
        if trouble is Trouble.LATE_IN_FLIGHT and now_s - self._late_s < PATIENCE_S:
            return
        # Plans are late in several ways, by turns, and for one reason; reasons that differ in figures alone are one.
        kind = re.sub(r"\d+(\.\d+)?", "", report.message) if trouble is Trouble.BAD else Trouble.LATE.name
        if kind not in self._told:
            self._told.add(kind)
            self._warn(f"plans: {report.message}")

    def _recover(self, report: TaskReport, now_s: float) -> None:
        accepted = int(report.values["accepted"])
        if self._well_s is None:
            self._well_s, self._accepted = now_s, accepted
        if now_s - self._well_s < RECOVERED_S:
            return
        self._late_s = None
        # Where there are no new ones, another drive has begun, or ended.
        if self._told and accepted > self._accepted:
            self._inform("plans are good and in time again")
        self._told.clear()
