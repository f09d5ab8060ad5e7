"""Whoever proposes tokens: knows the target by token ids and tapped states only, and never alters the output."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from flatrope_planner.speculation.candidates import Candidates


class Drafter(Protocol):
    """Proposes what the target may write next."""

    name: str

    def begin(self, prompt: Sequence[int]) -> None:
        """A new request: forget the one before."""
        ...

    def propose(self, budget: int) -> Candidates:
        """At most `budget` tokens that may follow what has been observed."""
        ...

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """The target has chosen these tokens; `tapped` (taps, n, hidden) belongs to the n tokens it has read since."""
        ...

    def reset(self) -> None:
        """Forget everything that was learnt while driving."""
        ...


class NoDrafter:
    """Proposes nothing: plain greedy decoding."""

    name = "none"

    def begin(self, prompt: Sequence[int]) -> None:
        """Nothing to prepare."""

    def propose(self, budget: int) -> Candidates:
        """No candidates."""
        del budget
        return Candidates()

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to forget."""
