"""Whether anything is planned at present: told in the status of plans and planning, and on the console."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from flatrope_planner.nodes.monitoring import Level, TaskReport

# What can keep a planner that is active from planning.
CAUSES = ("inputs", "clock")
# How much longer than the timeout of the inputs nothing has to be planned until the console says so (s): by then the
# status names what stopped, not only what is behind. Any other cause has to last as long to be told: where inputs come
# again, they are incomplete for a moment.
GRACE_S = 1.0
PLANS, PLANNING = "plans", "planning"


class Idleness:
    """Remembers what the console was told since the planner stopped to plan."""

    def __init__(self, warn: Callable[[str], object], inform: Callable[[str], object]) -> None:
        """Tell the console of faults by `warn`, of their end by `inform`."""
        self._warn, self._inform = warn, inform
        self._told: set[str] = set()
        # The present cause, and how long nothing had been planned when it came up (s).
        self._cause, self._since_s = "", 0.0

    def shown(self, reports: Sequence[TaskReport], idle_s: float | None, timeout_s: float) -> list[TaskReport]:
        """The reports, with a word in plans and planning where something keeps the planner from planning.

        Args:
            reports: on all tasks, the inputs and the clock among them.
            idle_s: how long nothing has been planned, 0 while a tick is in flight; None where nothing is to be planned.
            timeout_s: an input may be silent for so long, and the planner idle.
        """
        if idle_s is None:
            self._told.clear()
            return list(reports)
        if idle_s <= timeout_s:
            if self._told:
                self._told.clear()
                self._inform("planning goes on")
            return list(reports)
        causes = [report for report in reports if report.task in CAUSES and report.level is not Level.OK]
        if not causes:
            # A simulator may be slow.
            return list(reports)
        if idle_s > timeout_s + GRACE_S:
            self._tell("; ".join(report.message for report in causes), idle_s)
        words = f"nothing has been planned for {idle_s:.1f} s: see {' and '.join(report.task for report in causes)}"
        return [_idle(report, words) for report in reports]

    def _tell(self, causes: str, idle_s: float) -> None:
        """Say each thing once, until planning goes on; those that differ in a time alone are one."""
        alike = re.sub(r"\d+(\.\d+)? s\b", "", causes)
        if alike != self._cause:
            self._cause, self._since_s = alike, idle_s
        lasts = idle_s - self._since_s >= GRACE_S
        if alike not in self._told and (lasts or not self._told):
            self._told.add(alike)
            self._warn(f"nothing is planned: {causes}")


def _idle(report: TaskReport, words: str) -> TaskReport:
    """The report, if it is on plans or planning, with what is the matter first."""
    if report.task == PLANNING:
        return replace(report, level=max(report.level, Level.WARN), message=f"{words}; {report.message}")
    if report.task != PLANS:
        return report
    # Who followed a plan must have stopped.
    level = Level.ERROR if report.values["accepted"] != "0" else Level.WARN
    told = "" if report.level is Level.OK else f"; before that: {report.message}"
    return replace(report, level=max(report.level, level), message=f"{words}{told}")
