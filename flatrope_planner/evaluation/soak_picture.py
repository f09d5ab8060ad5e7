"""Memory and latency of a long run over time, as one SVG picture."""

from collections.abc import Sequence

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.report.svg import Chart
from flatrope_planner.evaluation.soak_verdict import Sample, after_warm_up
from flatrope_planner.evaluation.witness_events import TickSeen

# Latencies are drawn as the median of this much of the run (s).
WINDOW_S = 20.0
SECONDS_PER_MINUTE = 60.0
WIDTH_PX, HEIGHT_PX = 1080, 240
COLORS = ("#1f6feb", "#d1242f", "#2da44e", "#9a6700", "#8250df", "#57606a")
STYLE = (
    "text{font:12px sans-serif;fill:#57606a}path{fill:none;stroke-width:1.6}.grid{stroke:#d0d7de;stroke-width:1}"
    ".axis{stroke:#57606a;stroke-width:1}.mark{stroke:#57606a;stroke-dasharray:3 3;stroke-width:1}"
    + "".join(f".line{i}{{stroke:{color}}}.name{i}{{fill:{color}}}" for i, color in enumerate(COLORS))
)


def soak_picture(samples: Sequence[Sample], ticks: Sequence[TickSeen], began_s: float) -> str:
    """The picture as SVG text; `began_s` is the moment of the first sample on the steady clock of the ticks."""
    end_min = max(samples[-1].time_s, 1.0) / SECONDS_PER_MINUTE
    charts = [_memory_chart(samples, end_min), _latency_chart(ticks, began_s, end_min)]
    names = "".join(
        f'<text class="name{i}" x="{60 + 140 * i}" y="16">{name}</text>' for i, name in enumerate(samples[0].usage)
    )
    placed = "".join(
        f'<svg y="{24 + i * HEIGHT_PX}" width="{WIDTH_PX}" height="{HEIGHT_PX}">{chart.svg()}</svg>'
        for i, chart in enumerate(charts)
    )
    size = f'width="{WIDTH_PX}" height="{24 + HEIGHT_PX * len(charts)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{names}{placed}</svg>\n'


def _memory_chart(samples: Sequence[Sample], end_min: float) -> Chart:
    """Each process in percent of what it held at the end of the warm-up."""
    warm = after_warm_up(samples)[0]
    time_min = np.array([sample.time_s for sample in samples]) / SECONDS_PER_MINUTE
    shares = {
        name: np.array([100.0 * sample.usage[name].memory_kib / max(usage.memory_kib, 1) for sample in samples])
        for name, usage in warm.usage.items()
    }
    counted = np.concatenate([share[time_min >= warm.time_s / SECONDS_PER_MINUTE] for share in shares.values()])
    bounds = (min(97.0, float(counted.min()) - 1.0), max(103.0, float(counted.max()) + 1.0))
    chart = Chart((0.0, end_min), bounds, "min", "memory, % of that after warming up", WIDTH_PX, HEIGHT_PX)
    chart.mark_x(warm.time_s / SECONDS_PER_MINUTE, "warmed up", "mark")
    for number, share in enumerate(shares.values()):
        chart.line(time_min, np.clip(share, *bounds), f"line{number}")
    return chart


def _latency_chart(ticks: Sequence[TickSeen], began_s: float, end_min: float) -> Chart:
    time_s = np.array([tick.wall_s - began_s for tick in ticks])
    total_ms, age_ms = np.array([tick.total_ms for tick in ticks]), np.array([tick.age_ms for tick in ticks])
    lines = [_medians(time_s, total_ms), _medians(time_s, age_ms)]
    top = max((float(values.max(initial=1.0)) for _, values in lines), default=1.0)
    words = f"median over {WINDOW_S:.0f} s: tick (blue), age of its observation (red), ms"
    chart = Chart((0.0, end_min), (0.0, 1.1 * top), "min", words, WIDTH_PX, HEIGHT_PX)
    for number, (at_s, values) in enumerate(lines):
        chart.line(at_s / SECONDS_PER_MINUTE, values, f"line{number}")
    return chart


def _medians(time_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The middle of each window that has values, and their median."""
    windows = np.floor(time_s / WINDOW_S)
    present = np.unique(windows)
    medians = [float(np.median(values[windows == window])) for window in present]
    return (present + 0.5) * WINDOW_S, np.array(medians)
