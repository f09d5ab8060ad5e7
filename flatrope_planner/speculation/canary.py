"""Notices a draft that does nothing: not asked, or never right. Such a fault changes no text, so nobody else would."""

from collections import deque

from flatrope_planner.domain import SpeculationStats

# Rationales looked back on, and the least that must have happened in them.
WINDOW = 20
LEAST_ACCEPTANCE_LENGTH = 1.1


class Canary:
    """Watches the statistics of a planner that is meant to speculate."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._seen: deque[SpeculationStats] = deque(maxlen=WINDOW)

    def watch(self, statistics: SpeculationStats) -> None:
        """Take in a rationale."""
        self._seen.append(statistics)

    def complaint(self) -> str:
        """What is wrong, "" for nothing; nothing is said before the window is full."""
        if len(self._seen) < WINDOW:
            return ""
        proposed = sum(each.proposed + each.prefill_proposed for each in self._seen)
        if not proposed:
            return f"the draft has proposed nothing in {WINDOW} rationales"
        rounds = sum(each.rounds for each in self._seen)
        length = sum(each.committed for each in self._seen) / max(rounds, 1)
        if length < LEAST_ACCEPTANCE_LENGTH:
            return f"the draft is hardly ever right: {length:.2f} tokens a round over {WINDOW} rationales"
        return ""
