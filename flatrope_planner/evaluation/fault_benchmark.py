"""The fault run: a real planner over real middleware, one fault after another, and what came of each."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.drive_recording import record_drive
from flatrope_planner.evaluation.fault_stage import FaultStage
from flatrope_planner.evaluation.fault_verdict import RECOVERY_S, Trial, Verdict, defect_of, verdict
from flatrope_planner.evaluation.faults import FAULTS, Fault
from flatrope_planner.evaluation.percentiles import percentiles
from flatrope_planner.evaluation.plan_judgement import OK
from flatrope_planner.evaluation.planner_starts import PlannerStart
from flatrope_planner.progress import with_progress

LAP_S = 12.0
# Steady: this many good plans, the last one this young (s).
STEADY_PLANS, STEADY_AGE_S = 2, 1.0
# Longest waits for a planner that was just started, and for one that runs (s).
LOADING_S, STEADYING_S = 60.0, 12.0
# How long recovery is waited for, so that a slow one shows as slow and not as none, and what follows it (s).
PATIENCE_S, AFTERWARDS_S = 6.0, 0.3
DOMAIN = "94"


def run_fault_benchmark(faults: Sequence[Fault]) -> dict[str, Any]:
    """Inject the faults one after another; `as_json` of every verdict by name, and the counts.

    Raises:
        SetupError: if what feeds the planner does not come up.
    """
    print("recording a drive, starting the players and the planner", file=sys.stderr)
    drive, domain = record_drive(LAP_S), os.environ.get("ROS_DOMAIN_ID", DOMAIN)
    verdicts: dict[str, Verdict] = {}
    with TemporaryDirectory(prefix="flatrope-faults-") as folder, FaultStage(drive, Path(folder), domain) as stage:
        for trial in with_progress(_trials(stage, faults), len(faults), "faults"):
            verdicts[trial.fault.name] = verdict(trial, stage.timeline, drive)
        tick_ms = percentiles([tick.total_ms for tick in stage.timeline.ticks])
    # How fast this machine plans: recovery cannot be faster, and what else runs on it counts.
    return {**summary(verdicts), "tick_ms": tick_ms}


def summary(verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """The result of a run."""
    recoveries_s = [each.recovery_s for each in verdicts.values() if each.recovery_s is not None]
    return {
        "injected": len(verdicts),
        "survived": sum(each.survived for each in verdicts.values()),
        "bad_plans_published": sum(len(each.bad_plans) for each in verdicts.values()),
        # Of those that recovered at all.
        "max_recovery_s": round(max(recoveries_s), 2) if recoveries_s else None,
        "recovery_limit_s": RECOVERY_S,
        "faults": {name: each.as_json() for name, each in verdicts.items()},
    }


def table(result: dict[str, Any]) -> str:
    """One line a fault, and the counts."""
    lines = [f"{'fault':<28}{'survived':<10}{'recovery':>9}{'bad':>5}{'fallback':>9}  note"]
    for name, entry in result["faults"].items():
        recovery = "never" if entry["recovery_s"] is None else f"{entry['recovery_s']:.2f} s"
        survived = "yes" if entry["survived"] else "NO"
        counts = f"{entry['bad_plans']:>5}{entry['fallbacks']:>9}"
        lines.append(f"{name:<28}{survived:<10}{recovery:>9}{counts}  {entry['note']}")
    bad, slowest = result["bad_plans_published"], result["max_recovery_s"]
    totals = f"{result['survived']} of {result['injected']} survived, {bad} bad plans published"
    return "\n".join([*lines, totals + ("" if slowest is None else f", slowest recovery {slowest:.2f} s")])


def listing(faults: Sequence[Fault] = FAULTS) -> str:
    """The faults in words."""
    return "\n".join(f"{fault.name:<28}{fault.meaning}" for fault in faults)


def _trials(stage: FaultStage, faults: Sequence[Fault]) -> Iterator[Trial]:
    for start, group in groupby(faults, key=lambda fault: fault.start):
        fresh = True
        for fault in group:
            try:
                if fresh or not _is_steady(stage, STEADYING_S):
                    stage.start_planner(start)
                fresh = False
                yield _standing_trial(stage, fault) if fault.standing else _trial(stage, fault, start)
            except SetupError as err:
                now_s = stage.now_s()
                yield Trial(fault, now_s, now_s, now_s, obstacle=str(err))


def _trial(stage: FaultStage, fault: Fault, start: PlannerStart) -> Trial:
    """Steady planning, the fault, its end, recovery."""
    if not _is_steady(stage, LOADING_S):
        now_s = stage.now_s()
        last = f"; it said: {stage.said[-1]}" if stage.said else ""
        obstacle = f"a planner started {start.value} does not plan before the fault{last}"
        return Trial(fault, now_s, now_s, now_s, stage.planner_ended(), obstacle)
    began_s = fault.injection.begin(stage)
    stage.wait(lambda: False, fault.lasts_s)
    ended_s = fault.injection.end(stage)
    stage.wait(lambda: _recovered(stage, ended_s), PATIENCE_S)
    time.sleep(AFTERWARDS_S)
    return Trial(fault, began_s, ended_s, stage.now_s(), stage.planner_ended())


def _recovered(stage: FaultStage, ended_s: float) -> bool:
    """Whether a good plan for a moment after the fault has come."""
    end_ns, plans = stage.timeline.clock_from(ended_s), stage.plans_since(ended_s)
    after = [plan for plan in plans if plan.status == OK and plan.t0_ns > end_ns]
    return any(not defect_of(plan, stage.timeline, stage.drive) for plan in after)


def _standing_trial(stage: FaultStage, fault: Fault) -> Trial:
    """A planner that starts with the fault and plans with it for a while."""
    began_s = stage.planner_began_s
    stage.wait(lambda: bool(stage.plans_since(began_s)), LOADING_S)
    stage.wait(lambda: False, fault.lasts_s)
    now_s = stage.now_s()
    return Trial(fault, began_s, now_s, now_s, stage.planner_ended())


def _is_steady(stage: FaultStage, patience_s: float) -> bool:
    """Wait until the planner plans steadily."""
    # What an earlier planner has published says nothing about this one.
    since_s = max(stage.now_s() - STEADY_AGE_S, stage.planner_began_s)

    def steady() -> bool:
        good = [plan for plan in stage.plans_since(since_s) if plan.status == OK]
        return len(good) >= STEADY_PLANS and stage.now_s() - good[-1].wall_s < STEADY_AGE_S

    return stage.wait(steady, patience_s)
