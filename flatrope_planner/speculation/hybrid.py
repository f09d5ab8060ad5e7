"""One tree from two witnesses: a network that reads the target's states, and what earlier texts went on with.

The network knows what is seen now but guesses a fixed number of places; retrieval knows phrases, of any length and
before anything is read, but not which of them holds now. Each path is as likely as both say together.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.drafter import Drafter
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Continuations, Guess, grow_tree

# How much the network's word counts where both speak.
NETWORK_SHARE = 0.7


class GuessingDrafter(Drafter, Protocol):
    """A drafter that tells what it thinks of any path."""

    def guesses(self) -> Continuations:
        """What may follow what has been observed, by path."""
        ...


class HybridDrafter:
    """Merges the guesses of a network and of retrieval, best first."""

    def __init__(self, network: GuessingDrafter, retrieval: GuessingDrafter) -> None:
        """Ask both; the first proposal of a request is retrieval's alone."""
        self.name = f"hybrid-{network.name}"
        self._network, self._retrieval = network, retrieval

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """What earlier texts began with."""
        return self._retrieval.anticipate(prompt, nodes, depth)

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Both take in the prompt."""
        self._network.begin(prompt, tapped)
        self._retrieval.begin(prompt, tapped)

    def propose(self, nodes: int, depth: int) -> Candidates:
        """The likeliest paths."""
        return grow_tree(MergedGuesses(self._network.guesses(), self._retrieval.guesses()), nodes, depth)

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Both take in what was chosen."""
        self._network.observe(tokens, tapped)
        self._retrieval.observe(tokens, tapped)

    def reset(self) -> None:
        """Forget the drive."""
        self._network.reset()
        self._retrieval.reset()


class MergedGuesses:
    """Both witnesses' probabilities, mixed; where one is silent, the other's."""

    def __init__(self, network: Continuations, retrieval: Continuations) -> None:
        """Mix two."""
        self._network, self._retrieval = network, retrieval

    def __call__(self, path: tuple[int, ...]) -> Sequence[Guess]:
        """The likeliest tokens behind a path, each from whoever gives it the greater part of its probability."""
        seen, remembered = self._network(path), self._retrieval(path)
        if not seen or not remembered:
            return seen or remembered
        parts = [(guess, NETWORK_SHARE) for guess in seen] + [(guess, 1.0 - NETWORK_SHARE) for guess in remembered]
        merged: dict[int, Guess] = {}
        for guess, share in sorted(parts, key=lambda part: -part[0].probability * part[1]):
            known = merged.get(guess.token)
            probability = guess.probability * share + (known.probability if known else 0.0)
            merged[guess.token] = Guess(guess.token, probability, known.source if known else guess.source)
        return sorted(merged.values(), key=lambda guess: -guess.probability)[:MAX_CHILDREN]
