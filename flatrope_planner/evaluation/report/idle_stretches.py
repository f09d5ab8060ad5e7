"""Stretches of a drive without a plan, and why: by the fallbacks in them, or by what the planner said meanwhile."""

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
    planned_s = [
        [tick.t0_s for tick in ticks if tick.scene == number and not tick.plan.fallback_reason]
        for number in range(len(scenes))
    ]
    spacing_s = [after - before for own_s in planned_s for before, after in pairwise(own_s)]
    longest_s = max(LEAST_S, INTERVALS * float(np.median(spacing_s)) if spacing_s else 0.0)
    between = chain.from_iterable(
        pairwise([scene.start_s, *own_s, scene.end_s]) for scene, own_s in zip(scenes, planned_s, strict=True)
    )
    return [
        Hole(since_s, until_s, _why(recording, ticks, since_s, until_s))
        for since_s, until_s in between
        if until_s - since_s > longest_s + 1e-6
    ]


def _why(recording: Recording, ticks: Sequence[Tick], since_s: float, until_s: float) -> str:
    """What is told most often between two times; "" if nothing is."""
    fallbacks = [(tick.t0_s, tick.plan.fallback_reason) for tick in ticks]
    problems = [(seconds_into(recording, stamp_ns), problem) for stamp_ns, problem in recording.problems]
    for told in (fallbacks, problems):
        reasons = Reasons()
        for time_s, words in told:
            if words and since_s < time_s <= until_s:
                reasons.add(words)
        if reasons.commonest:
            return reasons.commonest
    return ""
