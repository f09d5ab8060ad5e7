"""Whether a long run has grown: in memory, in latency, in silence. Arithmetic on what was sampled, nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from flatrope_planner.domain import Floats, ns_to_seconds
from flatrope_planner.evaluation.process_usage import Usage
from flatrope_planner.evaluation.witness_events import StatusSeen, TickSeen

# What a sound run keeps below.
MAX_GROWTH_PERCENT = 2.0
MAX_LATENCY_RATIO = 1.15
# Memory is compared from here on: this share of the run or this long, whichever is more, but no more than half (s).
WARM_UP_SHARE, WARM_UP_S = 0.1, 120.0
# A gap of more periods than this between two status messages is a miss for each message that did not come.
MISSED_PERIODS = 2.5
# Between two drives the clock leaps; nothing is planned in between (s).
LEAP_S = 2.0
# Task of the status, and how its words begin.
LIFECYCLE, ACTIVE = "lifecycle", "active"


@dataclass(frozen=True)
class Sample:
    """All processes at one moment."""

    # Since the first sample (s).
    time_s: float
    usage: Mapping[str, Usage]


def robust_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and offset of the line with the median of all slopes between two points (Theil 1950, Sen 1968).

    Args:
        x: float64 (N,), ascending; N at least 2.
        y: float64 (N,).
    """
    first, second = np.triu_indices(len(x), 1)
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return slope, float(np.median(y - slope * x))


def growth_percent(samples: Sequence[Sample], process: str) -> float:
    """How much the memory of a process grows from the end of the warm-up to the end, by a robust line; 0 if unknown."""
    warm = after_warm_up(samples)
    if len(warm) < 2:
        return 0.0
    time_s = np.array([sample.time_s for sample in warm])
    memory_kib = np.array([float(sample.usage[process].memory_kib) for sample in warm])
    slope, offset = robust_line(time_s, memory_kib)
    start_kib = slope * time_s[0] + offset
    return float(100.0 * slope * (time_s[-1] - time_s[0]) / start_kib) if start_kib > 0.0 else 0.0


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that count."""
    if not samples:
        return []
    end_s = samples[-1].time_s
    warm_s = min(max(WARM_UP_SHARE * end_s, WARM_UP_S), 0.5 * end_s)
    return [sample for sample in samples if sample.time_s >= warm_s]


def latency_ratio(ticks: Sequence[TickSeen]) -> float:
    """Median of the last quarter's ticks over that of the first quarter's; 1 when there are too few to say."""
    quarter = len(ticks) // 4
    if not quarter:
        return 1.0
    first, last = ticks[:quarter], ticks[-quarter:]
    return float(np.median([tick.total_ms for tick in last]) / np.median([tick.total_ms for tick in first]))


def missed_heartbeats(statuses: Sequence[StatusSeen], period_s: float, end_s: float) -> int:
    """Status messages that did not come from the first one to the end of the run (steady clock, s)."""
    times_s = [*(status.wall_s for status in statuses), end_s]
    gaps_s = [later - earlier for earlier, later in pairwise(times_s)]
    return sum(round(gap_s / period_s) - 1 for gap_s in gaps_s if gap_s > MISSED_PERIODS * period_s)


def lifecycle_lapses(statuses: Sequence[StatusSeen]) -> int:
    """Status messages that, once the node was active, say that it is not; 0 where none speaks of it."""
    active = [status.words[LIFECYCLE].startswith(ACTIVE) for status in statuses if LIFECYCLE in status.words]
    return active[active.index(True) :].count(False) if True in active else 0


def rates_hz(ticks: Sequence[TickSeen]) -> tuple[float, float]:
    """Plans a second of wall time and of ROS time; 0 when there are fewer than two."""
    wall_s = ticks[-1].wall_s - ticks[0].wall_s if ticks else 0.0
    steps_s = [ns_to_seconds(later.t0_ns - earlier.t0_ns) for earlier, later in pairwise(ticks)]
    driven_s = [step_s for step_s in steps_s if 0.0 < step_s < LEAP_S]
    ros_hz = len(driven_s) / sum(driven_s) if driven_s else 0.0
    return (len(steps_s) / wall_s if wall_s > 0.0 else 0.0), ros_hz


def processes_in_figures(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """By process: growth, and memory, threads and files at the end of the warm-up and at the end."""
    warm = after_warm_up(samples)
    if not warm:
        return {}
    figures = {}
    for process in warm[0].usage:
        first, last = warm[0].usage[process], warm[-1].usage[process]
        figures[process] = {
            "memory_growth_percent": round(growth_percent(samples, process), 2),
            "memory_mib": [round(first.memory_kib / 1024, 1), round(last.memory_kib / 1024, 1)],
            "shared_mib": [round(first.shared_kib / 1024, 1), round(last.shared_kib / 1024, 1)],
            "threads": [first.threads, last.threads],
            "files": [first.files, last.files],
        }
    return figures


def passed(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of a sound run."""
    return bool(
        result["plans"]
        and not result["crashes"]
        and result["memory_growth_percent"] < MAX_GROWTH_PERCENT
        and result["latency_ratio"] <= MAX_LATENCY_RATIO
        and result["missed_lifecycle"] == 0
    )
