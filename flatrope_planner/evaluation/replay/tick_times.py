"""What the ticks of a replay took, and what speculation saved: everything that differs from run to run."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from flatrope_planner.evaluation.percentiles import percentiles
from flatrope_planner.evaluation.report.summary import spread

COMPARED_STAGES = ("reasoning", "total")


class TickTimes:
    """Collects stage times of rows."""

    def __init__(self) -> None:
        """No rows yet."""
        self._stages: dict[str, list[float]] = {}
        # Stage -> milliseconds with and without speculation, tick by tick.
        self._pairs: dict[str, list[tuple[float, float]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in one row of plans.jsonl."""
        for stage, duration_ms in row["stage_ms"].items():
            self._stages.setdefault(stage, []).append(duration_ms)
        if row["compared"]:
            for stage in COMPARED_STAGES:
                pair = row["stage_ms"].get(stage), row["compared"]["plain_stage_ms"].get(stage)
                if pair[0] and pair[1]:
                    self._pairs.setdefault(stage, []).append((pair[0], pair[1]))

    def summary(self) -> dict[str, Any]:
        """Median, 95th percentile and maximum of each stage (ms), and the ratio of plain to speculated time."""
        stages = {stage: spread(np.array(times)) for stage, times in self._stages.items()}
        return {"stage_ms": stages, "speedup": {stage: _speedup(pairs) for stage, pairs in self._pairs.items()} or None}


def _speedup(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """Of the sums, and the spread of the ratios of single ticks."""
    speculated, plain = np.array(pairs).T
    single = percentiles((plain / speculated).tolist(), (5, 50, 95), 3)
    return {"of_sums": round(float(plain.sum() / speculated.sum()), 3), **single}
