"""The report's charts: speed, steering, and what each stage of a tick takes."""

from collections.abc import Sequence
from html import escape

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.report.recording import STAGES, Recording
from flatrope_planner.evaluation.report.svg import Chart
from flatrope_planner.evaluation.report.ticks import DrivenScene, Tick, seconds_into, stage_times_ms

# How much of each plan is drawn beside what was driven.
SHOWN_PLAN_S = 2.5
# Slower than this, the curvature driven is noise.
MIN_CURVATURE_SPEED_MPS = 1.0
HISTOGRAM_BINS = 28


def speed_chart(recording: Recording, scenes: Sequence[DrivenScene], ticks: Sequence[Tick]) -> str:
    """Speed driven, and the first seconds of every plan."""
    time_s, speed_mps = _driven(recording, scenes)
    planned = [tick.plan.speed_mps for tick in ticks]
    top = max(float(np.nanmax(speed_mps)), *(float(p.max(initial=0.0)) for p in planned), 1.0)
    chart = _timeline(scenes, (0.0, top * 1.08), "speed, m/s")
    for tick in ticks:
        near = tick.plan.time_s <= SHOWN_PLAN_S
        chart.line(tick.t0_s + tick.plan.time_s[near], tick.plan.speed_mps[near], "planned")
    chart.line(time_s, speed_mps, "driven")
    return chart.svg()


def steering_chart(recording: Recording, scenes: Sequence[DrivenScene], ticks: Sequence[Tick]) -> str:
    """Curvature driven (yaw rate over speed), and that of the first seconds of every plan."""
    time_s, speed_mps = _driven(recording, scenes)
    yaw_rate = _joined([[sample.yaw_rate_radps for sample in scene.odometry] for scene in scenes])
    curvature = np.where(speed_mps > MIN_CURVATURE_SPEED_MPS, yaw_rate / np.maximum(speed_mps, 1e-6), np.nan)
    bound = max(0.02, float(np.nanmax(np.abs(curvature), initial=0.0)) * 1.15)
    chart = _timeline(scenes, (-bound, bound), "steering as path curvature, 1/m (left is up)")
    for tick in ticks:
        near = (tick.plan.time_s <= SHOWN_PLAN_S) & (tick.plan.speed_mps > MIN_CURVATURE_SPEED_MPS)
        bent = np.where(near, np.clip(tick.plan.curvature, -bound, bound), np.nan)
        chart.line(tick.t0_s + tick.plan.time_s, bent, "planned")
    chart.line(time_s, curvature, "driven")
    return chart.svg()


def latency_charts(ticks: Sequence[Tick]) -> str:
    """One histogram of wall time for each stage, with its median and 95th percentile."""
    figures = []
    for stage in STAGES:
        values_ms = stage_times_ms(ticks, stage)
        if len(values_ms):
            figures.append(f"<figure><figcaption>{escape(stage)}</figcaption>{_histogram(values_ms)}</figure>")
    return f'<div class="stages">{"".join(figures)}</div>'


def _histogram(values_ms: Floats) -> str:
    high = float(np.percentile(values_ms, 99)) * 1.1 + 1e-3
    counts, edges = np.histogram(np.minimum(values_ms, high), bins=HISTOGRAM_BINS, range=(0.0, high))
    chart = Chart((0.0, high), (0.0, float(counts.max()) * 1.12), "ms", "ticks", width_px=330, height_px=170)
    chart.bars(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), "bar")
    for line, percent in enumerate((50, 95)):
        at_ms = float(np.percentile(values_ms, percent))
        chart.mark_x(at_ms, f"p{percent} {at_ms:.0f} ms", f"mark p{percent}", line)
    return chart.svg()


def _timeline(scenes: Sequence[DrivenScene], y_range: tuple[float, float], y_label: str) -> Chart:
    end_s = max(scenes[-1].end_s, 0.1)
    chart = Chart((0.0, end_s), y_range, "time, s", y_label, style="chart timeline")
    for number, scene in enumerate(scenes):
        chart.band(scene.start_s, scene.end_s, scene.title, "band odd" if number % 2 else "band")
    return chart


def _driven(recording: Recording, scenes: Sequence[DrivenScene]) -> tuple[Floats, Floats]:
    time_s = _joined([[seconds_into(recording, s.stamp_ns) for s in scene.odometry] for scene in scenes])
    return time_s, _joined([[sample.speed_mps for sample in scene.odometry] for scene in scenes])


def _joined(rows: list[list[float]]) -> Floats:
    """All rows as one, each ended by NaN so that lines break between scenes."""
    return np.array([value for row in rows for value in [*row, float("nan")]])
