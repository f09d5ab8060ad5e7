"""The drive in numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.percentiles import percentiles
from flatrope_planner.evaluation.report.recording import STAGES, Recording
from flatrope_planner.evaluation.report.ticks import DrivenScene, Tick, stage_times_ms
from flatrope_planner.planning.stated_decision import decision_of


def summary_of(recording: Recording, scenes: Sequence[DrivenScene], ticks: Sequence[Tick]) -> dict[str, Any]:
    """Everything the report shows as a number; times in s and ms, distances in m."""
    costs = [tick.costs for tick in ticks if tick.costs]
    return {
        "duration_s": round(sum(scene.end_s - scene.start_s for scene in scenes), 2),
        "distance_m": round(sum(scene.distance_m for scene in scenes), 1),
        "ticks": len(ticks),
        "dropped_ticks": max((cost.dropped_ticks for cost in costs), default=0),
        "control_timeouts": recording.control_timeouts,
        "fallback_plans": sum(bool(tick.plan.fallback_reason) for tick in ticks),
        "stage_ms": {stage: spread(stage_times_ms(ticks, stage)) for stage in STAGES} if costs else {},
        "observation_age_ms": spread(np.array([cost.observation_age_ms for cost in costs])),
        "mean_acceptance_length": _mean([cost.mean_acceptance_length for cost in costs]),
        "decisions": dict(Counter(tick.decision.value for tick in ticks if tick.decision).most_common()),
        "decision_agrees_with_reference": _agreement(ticks),
        "missing": recording.missing,
        "pictures": {camera: len(pictures) for camera, pictures in recording.pictures.items()},
        "scenes": [_scene(scene, [tick for tick in ticks if tick.scene == n]) for n, scene in enumerate(scenes)],
    }


def spread(values: Floats) -> dict[str, float]:
    """Median, 95th percentile and maximum; empty for no values."""
    if not len(values):
        return {}
    return {**percentiles(values.tolist(), (50, 95), 2), "max": round(float(values.max()), 2)}


def _scene(scene: DrivenScene, ticks: Sequence[Tick]) -> dict[str, Any]:
    return {
        "title": scene.title,
        "outcome": scene.outcome,
        "duration_s": round(scene.end_s - scene.start_s, 2),
        "distance_m": round(scene.distance_m, 1),
        "ticks": len(ticks),
    }


def _agreement(ticks: Sequence[Tick]) -> float | None:
    """Share of ticks whose decision is the reference driver's, among those for which it was asked."""
    pairs = [(tick.decision, decision_of(tick.reference_rationale)) for tick in ticks if tick.reference_rationale]
    return _mean([mine is reference for mine, reference in pairs])


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 3) if values else None
