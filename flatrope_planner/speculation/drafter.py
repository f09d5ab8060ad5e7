"""Whoever proposes tokens: knows the target by token ids and tapped states only, and never alters the output."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.target import Prompt


class Drafter(Protocol):
    """Proposes what the target may write next."""

    name: str

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """A new request: what may its text begin with, before the target has read anything of it?"""
        ...

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """The request's prompt has been read. `tapped` (taps, n - 1, hidden) belongs to all tokens but the last.

        Comes again when the request has to be started over: what was observed of it is to be forgotten.
        """
        ...

    def propose(self, nodes: int, depth: int) -> Candidates:
        """At most so many tokens, at most so deep, that may follow what has been observed; the likeliest first."""
        ...

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """The target has chosen these n tokens, at least one, each from the state of `tapped` (taps, n, hidden)."""
        ...

    def reset(self) -> None:
        """Forget everything that was learnt while driving."""
        ...


class NoDrafter:
    """Proposes nothing: plain greedy decoding."""

    name = ""

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """No candidates."""
        del prompt, nodes, depth
        return Candidates()

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Nothing to prepare."""

    def propose(self, nodes: int, depth: int) -> Candidates:
        """No candidates."""
        del nodes, depth
        return Candidates()

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to forget."""
