"""Stretches of a drive for which nothing was planned, and why; not those in which nothing was recorded."""

from collections import Counter
from collections.abc import Sequence

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.evaluation.replay.recorded_time import EVERYTHING, Silence

# Recorded time without a plan that is worth a word: periods, and seconds beyond them.
HOLE_PERIODS, LATE_S = 3.0, 1.0
NAMED_HOLES = 3


class Holes:
    """Hears of every plan, in the order of time."""

    def __init__(self, period_s: float, silences: Sequence[Silence]) -> None:
        """Plans are due every `period_s`; `silences` may grow until the holes are asked for."""
        self._period_s, self._silences = period_s, silences
        self._last_s = 0.0
        # From, until, why there was no observation meanwhile.
        self._suspects: list[tuple[float, float, str]] = []

    def planned(self, t0_s: float, refused: Counter[str]) -> None:
        """There is a plan; before it there was no observation, for these reasons."""
        if t0_s - self._last_s > HOLE_PERIODS * self._period_s + LATE_S:
            self._suspects.append((self._last_s, t0_s, _first(refused.most_common(1))))
        self._last_s = max(self._last_s, t0_s)

    def lines(self, end_s: float, refused: Counter[str]) -> list[str]:
        """A line for each hole; the recording ends at `end_s`, with no observation since the last plan."""
        self.planned(end_s, refused)
        found = [line for suspect in self._suspects for line in self._judged(*suspect)]
        more = len(found) - NAMED_HOLES
        return [*found[:NAMED_HOLES], *([f"and {more} more stretches without a plan"] if more > 0 else [])]

    def _judged(self, since_s: float, until_s: float, reason: str) -> list[str]:
        silent_s = self._overlap(EVERYTHING, since_s, until_s)
        # A history has to follow before there can be a plan.
        history_s = HISTORY_SPAN_S if silent_s or since_s == 0.0 else 0.0
        if until_s - since_s - silent_s <= history_s + HOLE_PERIODS * self._period_s + LATE_S:
            return []
        reason = reason or self._silent_sources(since_s, until_s)
        return [f"no plan from {since_s:.1f} s to {until_s:.1f} s{f' ({reason})' if reason else ''}"]

    def _silent_sources(self, since_s: float, until_s: float) -> str:
        """The topics that gave nothing for most of the time, in words."""
        topics = sorted({silence.topic for silence in self._silences} - {EVERYTHING})
        half_s = (until_s - since_s) / 2.0
        silent = [topic for topic in topics if self._overlap(topic, since_s, until_s) > half_s]
        return f"nothing on {', '.join(silent)}" if silent else ""

    def _overlap(self, topic: str, since_s: float, until_s: float) -> float:
        """How long the topic was silent meanwhile (s)."""
        own = [silence for silence in self._silences if silence.topic == topic]
        return sum(max(min(each.until_s, until_s) - max(each.since_s, since_s), 0.0) for each in own)


def _first(counted: Sequence[tuple[str, int]]) -> str:
    return counted[0][0] if counted else ""
