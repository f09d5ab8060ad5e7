"""Means of displacement errors of many plans, horizon by horizon; a horizon that no plan has is null and says why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flatrope_planner.evaluation.percentiles import percentiles
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S
from flatrope_planner.evaluation.replay.rows import DECIMALS

ERRORS = (
    *("ade_m", "fde_m", "ahe_rad", "fhe_rad", "lateral_m", "longitudinal_m"),
    *("final_lateral_m", "final_longitudinal_m"),
)
NO_PLANS = "there is no plan"


class HorizonTotals:
    """Collects the errors of plans."""

    def __init__(self) -> None:
        """No plans yet."""
        # Horizon -> error -> one number a plan.
        self._columns: dict[str, dict[str, list[float]]] = {name: {} for name in HORIZONS_S}
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in HORIZONS_S}

    def add(self, errors: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in one plan: horizon -> its errors, or {"unavailable": why}."""
        for horizon, of_horizon in errors.items():
            if "unavailable" in of_horizon:
                self._missing[horizon][of_horizon["unavailable"]] += 1
                continue
            for name in (*ERRORS, "missed"):
                self._columns[horizon].setdefault(name, []).append(float(of_horizon[name]))

    def summary(self) -> dict[str, Any]:
        """Horizon -> plans that have it, mean errors, 95th percentiles, share of misses."""
        return {horizon: self._horizon(horizon) for horizon in HORIZONS_S}

    def _horizon(self, horizon: str) -> dict[str, Any]:
        columns = self._columns[horizon]
        if not columns:
            reasons = self._missing[horizon].most_common(1)
            nothing = dict.fromkeys((*ERRORS, "ade_p95_m", "fde_p95_m", "miss_rate"))
            return {"plans": 0, **nothing, "unavailable": reasons[0][0] if reasons else NO_PLANS}
        return {
            "plans": len(columns["ade_m"]),
            **{name: mean(columns[name]) for name in ERRORS},
            "ade_p95_m": percentiles(columns["ade_m"], (95,), DECIMALS)["p95"],
            "fde_p95_m": percentiles(columns["fde_m"], (95,), DECIMALS)["p95"],
            "miss_rate": mean(columns["missed"]),
        }


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return float(np.mean(values))
