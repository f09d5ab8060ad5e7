"""Notices a draft that is of no use: not asked, never right, or slower than what it saves.

Such a fault changes no text, so nobody else would.
"""

from collections import deque
from collections.abc import Mapping

from flatrope_planner.domain import SpeculationStats

# Rationales looked back on, and the least that must have happened in them.
WINDOW = 20
LEAST_ACCEPTANCE_LENGTH = 1.1
# How much longer than alone the target may take to write (each token a pass like those of its rounds).
MOST_LOSS = 1.2


class Canary:
    """Watches the statistics of a planner that is meant to speculate."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._seen: deque[SpeculationStats] = deque(maxlen=WINDOW)
        self._stages_ms: deque[Mapping[str, float]] = deque(maxlen=WINDOW)

    def watch(self, statistics: SpeculationStats, stage_ms: Mapping[str, float]) -> None:
        """Take in a rationale, and what of its time went into "draft" and "verify"."""
        self._seen.append(statistics)
        self._stages_ms.append(stage_ms)

    def complaint(self) -> str:
        """What is wrong, "" for nothing; nothing is said before the window is full."""
        if len(self._seen) < WINDOW:
            return ""
        proposed = sum(each.proposed + each.prefill_proposed for each in self._seen)
        if not proposed:
            return f"the draft has proposed nothing in {WINDOW} rationales"
        rounds = sum(each.rounds for each in self._seen)
        committed = sum(each.committed for each in self._seen)
        length = committed / max(rounds, 1)
        if length < LEAST_ACCEPTANCE_LENGTH:
            return f"the draft is hardly ever right: {length:.2f} tokens a round over {WINDOW} rationales"
        return self._loss(committed, rounds)

    def _loss(self, committed: int, rounds: int) -> str:
        draft_ms, verify_ms = (sum(each[stage] for each in self._stages_ms) / WINDOW for stage in ("draft", "verify"))
        # Without a round all is written with the prompt.
        alone_ms = verify_ms * committed / max(rounds, 1)
        if not rounds or draft_ms + verify_ms <= MOST_LOSS * alone_ms:
            return ""
        spent = f"{draft_ms:.0f} ms of drafting and {verify_ms:.0f} ms of verifying a rationale"
        return f"drafting costs more than it saves: {spent}, alone it would be about {alone_ms:.0f} ms"
