"""A rationale in the making, and what is counted while it grows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from flatrope_planner.domain import SpeculationStats

TARGET_SOURCE = "target"


@dataclass(frozen=True)
class Choice:
    """A token the target has chosen."""

    token: int
    # Name of the drafter that had proposed it, `TARGET_SOURCE` for none.
    source: str
    # Logit of the token minus that of the runner-up.
    margin: float


@dataclass
class Writing:
    """Tokens so far, and the passes that brought them."""

    # With the round that brought each.
    written: list[tuple[Choice, int]] = field(default_factory=list)
    # Verification passes behind the prefill.
    round: int = 0
    # Of each pass, the prefill first: tokens proposed and tokens accepted.
    passes: list[tuple[int, int]] = field(default_factory=list)
    # Tokens that no pass chose.
    forced: int = 0

    @property
    def tokens(self) -> list[int]:
        """Token ids so far."""
        return [choice.token for choice, _ in self.written]

    def add(self, choices: Sequence[Choice], proposed: int, accepted: int) -> None:
        """Take in what a pass brought."""
        self.written += [(choice, self.round) for choice in choices]
        self.passes.append((proposed, accepted))

    def force(self, choices: Sequence[Choice]) -> None:
        """Take in tokens that no pass chose: they are written, but nobody won a round by them."""
        self.written += [(choice, self.round) for choice in choices]
        self.forced += len(choices)

    def statistics(self, drafter: str) -> SpeculationStats:
        """What speculation did so far."""
        first, rounds = self.passes[0], self.passes[1:]
        longest = max((accepted for _, accepted in rounds), default=0)
        histogram = [0] * (longest + 1) if rounds else []
        for _, accepted in rounds:
            histogram[accepted] += 1
        return SpeculationStats(
            rounds=self.round,
            proposed=sum(proposed for proposed, _ in rounds),
            accepted=sum(accepted for _, accepted in rounds),
            committed=len(self.written) - 1 - self.forced,
            drafter=drafter,
            prefill_proposed=first[0],
            prefill_accepted=first[1],
            acceptance_histogram=tuple(histogram),
        )
