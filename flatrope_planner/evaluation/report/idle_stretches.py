"""Stretches of a drive without a plan, and why: by the fallbacks in them, or by what the planner said meanwhile."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.evaluation.replay.holes import Hole
from flatrope_planner.evaluation.replay.reasons import Reasons
from flatrope_planner.evaluation.report.recording import Recording
from flatrope_planner.evaluation.report.ticks import DrivenScene, Tick, seconds_into

# A stretch is longer than so many of the usual times between two plans, and than a history and half a second.
INTERVALS = 2.0
LEAST_S = HISTORY_SPAN_S + 0.5


def idle_stretches(recording: Recording, scenes: Sequence[DrivenScene], ticks: Sequence[Tick]) -> list[Hole]:
    """The stretches in their order; a fallback is no plan."""
    planned_s = sorted(tick.t0_s for tick in ticks if not tick.plan.fallback_reason)
    # By time alone: where time begins anew, nobody knows whose plans they are.
    of_scenes = [_within(planned_s, scene) for scene in scenes]
    spacing_s = [after - before for own_s in of_scenes for before, after in pairwise(own_s)]
    longest_s = max(LEAST_S, INTERVALS * float(np.median(spacing_s)) if spacing_s else 0.0)
    between = chain.from_iterable(
        pairwise([scene.start_s, *own_s, scene.end_s]) for scene, own_s in zip(scenes, of_scenes, strict=True)
    )
    idle = [(since_s, until_s) for since_s, until_s in between if until_s - since_s > longest_s + 1e-6]
    fallbacks = sorted((tick.t0_s, tick.plan.fallback_reason) for tick in ticks)
    problems = sorted((seconds_into(recording, stamp_ns), problem) for stamp_ns, problem in recording.problems)
    return [
        Hole(since_s, until_s, _told_most(fallbacks, since_s, until_s) or _told_most(problems, since_s, until_s))
        for since_s, until_s in idle
    ]


def _within(times_s: Sequence[float], scene: DrivenScene) -> Sequence[float]:
    return times_s[bisect_left(times_s, scene.start_s) : bisect_right(times_s, scene.end_s)]


def _told_most(told: Sequence[tuple[float, str]], since_s: float, until_s: float) -> str:
    """What is told most often between two times, of all that is in the order of time; "" if nothing is."""
    reasons = Reasons()
    first, last = (bisect_right(told, time_s, key=lambda each: each[0]) for time_s in (since_s, until_s))
    for _, words in told[first:last]:
        if words:
            reasons.add(words)
    return reasons.commonest
