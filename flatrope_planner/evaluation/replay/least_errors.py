"""The least errors of plans and the trajectories drawn besides (minADE, minFDE), as means over many plans."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from flatrope_planner.evaluation.replay.displacement import HORIZONS_S
from flatrope_planner.evaluation.replay.horizon_totals import NO_PLANS, mean

NAMES = ("ade_m", "fde_m")


class LeastErrors:
    """Collects what the best of each plan and its samples is off by."""

    def __init__(self) -> None:
        """No plans yet."""
        self._samples = 0
        # Horizon -> error -> one number a plan; and why there is none.
        self._columns: dict[str, dict[str, list[float]]] = {name: {} for name in HORIZONS_S}
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in HORIZONS_S}

    def add(self, samples: int, least: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in a plan with so many trajectories drawn besides: horizon -> least errors, or {"unavailable": why}."""
        self._samples = max(self._samples, samples)
        for horizon, errors in least.items():
            if "unavailable" in errors:
                self._missing[horizon][errors["unavailable"]] += 1
                continue
            for name in NAMES:
                self._columns[horizon].setdefault(name, []).append(errors[name])

    def summary(self) -> dict[str, Any]:
        """Number of trajectories, and by horizon the means."""
        if not self._samples:
            return {"unavailable": "one trajectory of each plan; more are drawn with --samples"}
        return {"samples": self._samples, **{horizon: self._horizon(horizon) for horizon in HORIZONS_S}}

    def _horizon(self, horizon: str) -> dict[str, Any]:
        columns = self._columns[horizon]
        if columns:
            return {"plans": len(columns["ade_m"]), **{f"min_{name}": mean(columns[name]) for name in NAMES}}
        reasons = self._missing[horizon].most_common(1)
        return {
            "plans": 0,
            **dict.fromkeys(f"min_{name}" for name in NAMES),
            "unavailable": reasons[0][0] if reasons else NO_PLANS,
        }
