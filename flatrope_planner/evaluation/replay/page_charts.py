"""Charts about all plans: error over horizon, acceptance by position."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from flatrope_planner.dimensions import FUTURE_SPAN_S
from flatrope_planner.evaluation.replay.displacement import FULL, HORIZONS_S
from flatrope_planner.evaluation.report.svg import Chart

WIDTH_PX, HEIGHT_PX = 520, 260


def horizon_chart(errors: Mapping[str, Mapping[str, Any]]) -> str:
    """ADE and FDE over the horizon, with their 95th percentiles."""
    known = [horizon for horizon in HORIZONS_S if errors[horizon]["plans"]]
    time_s = np.array([FUTURE_SPAN_S if horizon == FULL else HORIZONS_S[horizon] for horizon in known])
    columns = {"ade_m": "ade", "fde_m": "fde", "ade_p95_m": "p95 a", "fde_p95_m": "p95 f"}
    top = max((errors[horizon][name] for horizon in known for name in columns), default=1.0)
    chart = Chart((0.0, FUTURE_SPAN_S), (0.0, max(top * 1.08, 0.1)), "horizon, s", "error, m", WIDTH_PX, HEIGHT_PX)
    for name, style in columns.items():
        chart.line(time_s, np.array([errors[horizon][name] for horizon in known]), style)
    return chart.svg()


def acceptance_chart(speculation: Mapping[str, Any]) -> str:
    """Share of rounds in which the proposal at each position was accepted."""
    shares = speculation.get("accepted_at") or []
    if not shares:
        return "<p>No proposal was accepted.</p>"
    chart = Chart((0.0, float(len(shares))), (0.0, 1.0), "position in the block", "accepted, share of rounds", WIDTH_PX)
    left = np.arange(len(shares))
    chart.bars((left + 0.08).tolist(), (left + 0.92).tolist(), shares, "bar")
    return chart.svg()
