"""A bag on the page, second by second: speed, what was said, error and acceptance."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.compared_paths import known_points
from flatrope_planner.evaluation.report.svg import LEFT_PX, RIGHT_PX, Chart

# Of each plan this much is drawn.
SHOWN_PLAN_S = 2.5
# Where the driven line breaks, and the longest stretch that a rationale is shown for.
BREAK_S = 1.0
# Lines through plans break where the next one is further off than so many of the usual times between two.
BREAK_INTERVALS = 2.0
WIDTH_PX, STRIP_PX, LOW_PX = 1080, 26, 150
DECISIONS = ("keep", "accelerate", "slow", "stop", "left", "right", "unknown")
MOST_WORDS = 200

Row = Mapping[str, Any]


def shown(row: Row) -> dict[str, Any]:
    """What is shown of a row: of a bag of hours the rest would be gigabytes."""
    kept = ("t0_s", "drive", "rationale", "decision")
    return {
        **{name: row[name] for name in kept},
        "speed_mps": np.array(row["speed_mps"][: round(SHOWN_PLAN_S / FUTURE_PERIOD_S)], dtype=np.float64),
        # For how long the drive goes on from t0, and for how long it was looked at.
        "driven_s": known_points(row) * FUTURE_PERIOD_S,
        "seen_s": len(row["driven_m"]) * FUTURE_PERIOD_S,
        "ade_m": row["errors"]["3s"].get("ade_m", np.nan),
        "committed": row["speculation"]["committed"],
        "rounds": row["speculation"]["rounds"],
    }


def bag_timeline(rows: Sequence[Row], driven: Sequence[Sequence[float]], duration_s: float) -> str:
    """Charts of what is `shown` one below the other with the same seconds, and the words as they change."""
    span = (0.0, max(duration_s, 1.0))
    key = "".join(f'<i class="{decision}"></i>{decision}' for decision in DECISIONS)
    return (
        '<div class="legend"><i class="d"></i>driven<i class="p"></i>planned, each plan\'s first seconds</div>'
        f"{_speed(rows, driven, span)}{_strip(rows, span)}"
        f'<p class="key">what the rationale decides:{key}</p>'
        f"{_errors(rows, span)}{_acceptance(rows, span)}{_words(rows)}"
    )


def _speed(rows: Sequence[Row], driven: Sequence[Sequence[float]], span: tuple[float, float]) -> str:
    time_s, speed_mps = np.array(driven, dtype=np.float64).reshape(-1, 2).T
    breaks = np.flatnonzero(np.abs(np.diff(time_s)) > BREAK_S) + 1
    planned = [row["speed_mps"] for row in rows]
    top = max([1.0, *(float(plan.max()) for plan in planned), float(speed_mps.max(initial=0.0))])
    chart = Chart(span, (0.0, top * 1.08), "time, s", "speed, m/s", WIDTH_PX)
    for row, plan in zip(rows, planned, strict=True):
        chart.line(row["t0_s"] + FUTURE_PERIOD_S * np.arange(1, len(plan) + 1), plan, "planned")
    chart.line(np.insert(time_s, breaks, np.nan), np.insert(speed_mps, breaks, np.nan), "driven")
    return chart.svg()


def _strip(rows: Sequence[Row], span: tuple[float, float]) -> str:
    """A coloured bar: pointing at it shows the rationale."""
    width_px = WIDTH_PX - LEFT_PX - RIGHT_PX
    bars = []
    for row, end_s in zip(rows, _ends_s(rows, span[1]), strict=True):
        left = LEFT_PX + width_px * row["t0_s"] / span[1]
        wide = max(width_px * (end_s - row["t0_s"]) / span[1], 0.5)
        bars.append(
            f'<rect class="say {row["decision"] or "unknown"}" x="{left:.1f}" y="2" width="{wide:.1f}" '
            f'height="{STRIP_PX - 4}"><title>{row["t0_s"]:.1f} s: {escape(row["rationale"])}</title></rect>'
        )
    return f'<svg class="chart" viewBox="0 0 {WIDTH_PX} {STRIP_PX}">{"".join(bars)}</svg>'


def _ends_s(rows: Sequence[Row], end_s: float) -> list[float]:
    starts_s = [row["t0_s"] for row in rows]
    followers_s = [*starts_s[1:], end_s]
    return [
        after if 0.0 < after - start <= BREAK_S else start + BREAK_S / 2.0
        for start, after in zip(starts_s, followers_s, strict=True)
    ]


def _errors(rows: Sequence[Row], span: tuple[float, float]) -> str:
    return _line(rows, [row["ade_m"] for row in rows], span, ("ADE over 3 s, m", "error"))


def _acceptance(rows: Sequence[Row], span: tuple[float, float]) -> str:
    lengths = [row["committed"] / row["rounds"] if row["rounds"] else np.nan for row in rows]
    return _line(rows, lengths, span, ("tokens a round", "length"))


def _line(rows: Sequence[Row], values: Sequence[float], span: tuple[float, float], style: tuple[str, str]) -> str:
    known = [value for value in values if np.isfinite(value)]
    label, name = style
    chart = Chart(span, (0.0, max(max(known, default=1.0) * 1.1, 0.1)), "time, s", label, WIDTH_PX, LOW_PX)
    t0_s, breaks = np.array([row["t0_s"] for row in rows]), breaks_before(rows)
    chart.line(np.insert(t0_s, breaks, np.nan), np.insert(np.array(values, dtype=np.float64), breaks, np.nan), name)
    return chart.svg()


def breaks_before(rows: Sequence[Row]) -> list[int]:
    """Which rows no line leads to from the one before: the drive began anew or jumped, or plans are missing between."""
    apart_s: Floats = np.diff([row["t0_s"] for row in rows])
    longest_s = BREAK_INTERVALS * float(np.median(apart_s)) if len(apart_s) else 0.0
    return [
        index
        for index, (last, row) in enumerate(pairwise(rows), start=1)
        if last["drive"] != row["drive"]
        or row["t0_s"] - last["t0_s"] > longest_s
        or last["driven_s"] < min(row["t0_s"] - last["t0_s"], last["seen_s"]) - FUTURE_PERIOD_S
    ]


def _words(rows: Sequence[Row]) -> str:
    """The rationale whenever it changes."""
    changed = [
        row for last, row in zip([None, *rows], rows, strict=False) if not last or last["rationale"] != row["rationale"]
    ]
    shown = changed[:MOST_WORDS]
    lines = [f"<tr><td>{row['t0_s']:.1f} s</td><td>{escape(row['rationale'])}</td></tr>" for row in shown]
    more = len(changed) - len(shown)
    lines += [f"<tr><td></td><td>and {more} more</td></tr>"] if more else []
    return f'<div class="words"><table>{"".join(lines)}</table></div>'
