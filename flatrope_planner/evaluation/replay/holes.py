"""Stretches of a drive for which nothing was planned, and why; not those in which nothing was recorded.

A stretch counts when another plan would have fallen due in it: when it is longer than the interval between plans, the
tolerance of `late_s` and the time between two pictures together. Where inputs begin, a history has to follow first.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.domain import ObservationSpec
from flatrope_planner.evaluation.replay.recorded_time import EVERYTHING, Silence

# How late a plan may be: a share of the interval, and at least so many seconds.
LATE_SHARE, LEAST_LATE_S = 0.25, 0.25
# Times are multiples of 0.1 s that floats do not hold exactly.
ROUNDING_S = 1e-6
NAMED_HOLES = 3


def late_s(period_s: float) -> float:
    """How much later than after `period_s` a plan may come before its lateness is worth a word."""
    return max(LATE_SHARE * period_s, LEAST_LATE_S)


def needed_s(spec: ObservationSpec) -> float:
    """How long inputs have to be there before the first plan."""
    return max(HISTORY_SPAN_S, (spec.frames_per_camera - 1) * spec.frame_period_s)


@dataclass(frozen=True)
class Hole:
    """One stretch without a plan."""

    since_s: float
    until_s: float
    # In words; empty where it is not known.
    why: str

    def __str__(self) -> str:
        return f"no plan from {self.since_s:.1f} s to {self.until_s:.1f} s{f' ({self.why})' if self.why else ''}"


def holes_in_words(holes: Sequence[Hole]) -> list[str]:
    """A line for each of the first ones, and one for all others."""
    more = len(holes) - NAMED_HOLES
    return [*map(str, holes[:NAMED_HOLES]), *([f"and {more} more stretches without a plan"] if more > 0 else [])]


class Holes:
    """Hears of every plan, in the order of time."""

    def __init__(self, period_s: float, silences: Sequence[Silence], history_s: float = HISTORY_SPAN_S) -> None:
        """Listen.

        Args:
            period_s: when plans are due.
            silences: may grow until the holes are asked for.
            history_s: how long inputs have to be there before the first plan.
        """
        self._longest_s, self._silences = period_s + late_s(period_s) + ROUNDING_S, silences
        self._history_s, self._last_s, self._begins = history_s, 0.0, True
        # From, until, how much history had to come first, why there was no observation meanwhile.
        self._suspects: list[tuple[float, float, float, str]] = []

    def begin_anew(self) -> None:
        """A history has to follow before there can be a plan."""
        self._begins = True

    def planned(self, t0_s: float, refused: str) -> None:
        """There is a plan; before it there was no observation, for this reason most often."""
        if t0_s - self._last_s > self._longest_s:
            history_s = self._history_s if self._begins else 0.0
            self._suspects.append((self._last_s, t0_s, history_s, refused))
        self._last_s, self._begins = max(self._last_s, t0_s), False

    def lines(self, end_s: float, refused: str, spacing_s: float = 0.0) -> list[str]:
        """A line for each hole.

        Args:
            end_s: when the recording ends.
            refused: why there was no observation since the last plan, most often.
            spacing_s: between two pictures.
        """
        self.planned(end_s, refused)
        silences: dict[str, list[Silence]] = {}
        for silence in self._silences:
            silences.setdefault(silence.topic, []).append(silence)
        found: list[Hole] = []
        for since_s, until_s, history_s, reason in self._suspects:
            silent_s = _overlap(silences.get(EVERYTHING, []), since_s, until_s)
            first_s = self._history_s if silent_s else history_s
            if until_s - since_s - silent_s > first_s + self._longest_s + spacing_s:
                found.append(Hole(since_s, until_s, reason or _silent_sources(silences, since_s, until_s)))
        return holes_in_words(found)


def _silent_sources(silences: Mapping[str, Sequence[Silence]], since_s: float, until_s: float) -> str:
    """The topics that gave nothing for most of the time, in words."""
    half_s = (until_s - since_s) / 2.0
    silent = [topic for topic, own in sorted(silences.items()) if topic and _overlap(own, since_s, until_s) > half_s]
    return f"nothing on {', '.join(silent)}" if silent else ""


def _overlap(silences: Sequence[Silence], since_s: float, until_s: float) -> float:
    """How long it was silent meanwhile (s), of silences one after the other."""
    total_s = 0.0
    for each in silences[bisect_right(silences, since_s, key=lambda silence: silence.until_s) :]:
        if each.since_s >= until_s:
            break
        total_s += min(each.until_s, until_s) - max(each.since_s, since_s)
    return total_s
