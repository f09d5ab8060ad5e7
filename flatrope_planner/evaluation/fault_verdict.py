"""What came of one fault: judged from what was seen of the planner, without running anything."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from flatrope_planner.evaluation.drive import Drive
from flatrope_planner.evaluation.faults import Fault
from flatrope_planner.evaluation.plan_judgement import OK, defect
from flatrope_planner.evaluation.witness_events import PlanSeen, StatusSeen, Timeline

# Longest time from a fault's end to the first good plan.
RECOVERY_S = 2.0
# What a status still says of a fault after its end counts as said during it: it comes only now and then (s).
STATUS_SLACK_S = 0.6
# A leap has no duration; the status may speak of it this long after (s).
LEAP_STATUS_S = 2.0
WARN = 1


@dataclass(frozen=True)
class Trial:
    """One fault and when it was. Times are of the steady clock (s)."""

    fault: Fault
    began_s: float
    ended_s: float
    # When nobody watched any more.
    over_s: float
    # How the planner's process ended, "" when it runs.
    planner_ended: str = ""
    # Why the fault could not be injected, "" when it was.
    obstacle: str = ""


@dataclass(frozen=True)
class Verdict:
    """What came of a fault; `as_json` is the entry in the result."""

    survived: bool
    # From the fault's end to the first good plan; of a fault that does not end, the longest wait for one. None: never.
    recovery_s: float | None
    # What was wrong with plans published as good.
    bad_plans: tuple[str, ...]
    good_meanwhile: int
    fallbacks: int
    # None: nothing was to be said.
    named: bool | None
    status: tuple[str, ...]
    note: str

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "survived": self.survived,
            "recovery_s": None if self.recovery_s is None else round(self.recovery_s, 2),
            "bad_plans": len(self.bad_plans),
            "good_plans_meanwhile": self.good_meanwhile,
            "fallbacks": self.fallbacks,
            "named": self.named,
            "status": list(self.status),
            "note": self.note,
        }


def verdict(trial: Trial, timeline: Timeline, truth: Drive) -> Verdict:
    """Judge a trial by what was seen from its beginning to its end."""
    fault = trial.fault
    plans = [plan for plan in timeline.plans if trial.began_s < plan.wall_s <= trial.over_s]
    judged = [(plan, defect_of(plan, timeline, truth)) for plan in plans if plan.status == OK]
    good = [plan for plan, wrong in judged if not wrong]
    bad = tuple(wrong for _, wrong in judged if wrong)
    recovery_s = _longest_wait(good, trial) if fault.standing else _recovery(good, trial, timeline)
    meanwhile = sum(plan.wall_s <= trial.ended_s for plan in good)
    fallbacks = [plan for plan in plans if plan.status != OK]
    said = (*_news(trial, timeline.statuses), *dict.fromkeys(plan.reason for plan in fallbacks if plan.reason))
    named = bool(re.search(fault.words, "\n".join(said), re.IGNORECASE)) if fault.words else None
    complaints = [
        trial.obstacle,
        trial.planner_ended,
        _complaint_about(recovery_s, fault),
        "no good plan meanwhile, though the fault is harmless" if fault.harmless and not meanwhile else "",
        f"the status said nothing of /{fault.words}/" if named is False else "",
    ]
    faults = [complaint for complaint in complaints if complaint]
    wrong = [f"published as good: {words}" for words in dict.fromkeys(bad)]
    return Verdict(not faults, recovery_s, bad, meanwhile, len(fallbacks), named, said, "; ".join([*faults, *wrong]))


def defect_of(plan: PlanSeen, timeline: Timeline, truth: Drive) -> str:
    """What is wrong with a plan published as good, by all that was seen; "" for nothing."""
    return defect(plan, truth, timeline.garbage_ns, timeline.beats_around(plan.wall_s))


def _recovery(good: Sequence[PlanSeen], trial: Trial, timeline: Timeline) -> float | None:
    """Time from the fault's end to the first good plan for a moment after it."""
    end_ns = timeline.clock_from(trial.ended_s)
    after = [plan.wall_s - trial.ended_s for plan in good if plan.wall_s > trial.ended_s and plan.t0_ns > end_ns]
    return min(after, default=None)


def _longest_wait(good: Sequence[PlanSeen], trial: Trial) -> float | None:
    """The longest time between two good plans, or the last one and the end of watching."""
    times_s = [*(plan.wall_s for plan in good), trial.over_s]
    return max((later - earlier for earlier, later in pairwise(times_s)), default=None)


def _complaint_about(recovery_s: float | None, fault: Fault) -> str:
    if recovery_s is None:
        return "no good plan" if fault.standing else "no good plan after the fault's end"
    if recovery_s <= RECOVERY_S:
        return ""
    return f"{recovery_s:.1f} s without a good plan" if fault.standing else f"recovered only after {recovery_s:.1f} s"


def _news(trial: Trial, statuses: Sequence[StatusSeen]) -> tuple[str, ...]:
    """What the status said of the fault: messages of warnings and errors, and values in words, that are new with it."""
    slack_s = LEAP_STATUS_S if trial.ended_s - trial.began_s < LEAP_STATUS_S else STATUS_SLACK_S
    before = [status for status in statuses if status.wall_s <= trial.began_s][-1:] if not trial.fault.standing else []
    known = {(task, words) for status in before for task, words in status.words.items()}
    news: dict[str, str] = {}
    for status in statuses:
        if trial.began_s < status.wall_s <= trial.ended_s + slack_s:
            for task, words in status.words.items():
                if (task, words) not in known and _matters(task, status):
                    # Words that differ in a number alone say the same.
                    news.setdefault(re.sub(r"[\d.]+", "#", f"{task}: {words}"), f"{task}: {words}")
    return tuple(news.values())


def _matters(task: str, status: StatusSeen) -> bool:
    """Whether it is a warning or an error, or a value that is a sentence: a value has no level of its own."""
    return status.levels[task] >= WARN if task in status.levels else " " in status.words[task]
