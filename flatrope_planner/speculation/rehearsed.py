"""A drafter that knows the text beforehand and is right as often as it is told to: for self-tests and benchmarks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from flatrope_planner.speculation.candidates import ROOT, Candidates
from flatrope_planner.speculation.target import Prompt


@dataclass(frozen=True)
class Rehearsal:
    """How well a text is known."""

    # Chance that a place's token is among its candidates.
    right: float
    # Candidates of a place; one of them is gone on from.
    branches: int = 1
    # The same seed errs at the same places.
    seed: int = 0
    # Whether something is proposed before the prompt has been read.
    anticipates: bool = True


class RehearsedDrafter:
    """Proposes the text, some of it wrong."""

    def __init__(self, text: Sequence[int], vocabulary: int, rehearsal: Rehearsal) -> None:
        """Draft for the one request that leads to `text`; wrong tokens are drawn from the vocabulary."""
        self.name = f"rehearsed-{round(100 * rehearsal.right)}"
        random = np.random.default_rng(rehearsal.seed)
        self._rehearsal, self._text = rehearsal, list(text)
        shape = (len(self._text), rehearsal.branches)
        # One of the other tokens.
        ahead = random.integers(1, vocabulary, shape)
        self._levels = (np.array(self._text, dtype=np.int64)[:, None] + ahead) % vocabulary
        self._lucky = random.integers(rehearsal.branches, size=len(self._text))
        right = random.uniform(size=len(self._text)) < rehearsal.right
        places = np.flatnonzero(right)
        self._levels[places, self._lucky[places]] = np.array(self._text, dtype=np.int64)[places]
        self._written = 0

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """The beginning."""
        del prompt
        self._written = 0
        return self.propose(nodes, depth) if self._rehearsal.anticipates else Candidates()

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Start at the beginning."""
        del prompt, tapped
        self._written = 0

    def propose(self, nodes: int, depth: int) -> Candidates:
        """The text's next tokens, as well as they are known."""
        tokens, parents = list[int](), list[int]()
        parent = ROOT
        for place in range(self._written, min(self._written + depth, len(self._text))):
            first = len(tokens)
            tokens += self._levels[place].tolist()
            parents += [parent] * self._rehearsal.branches
            parent = first + int(self._lucky[place])
        return Candidates(tuple(tokens[:nodes]), tuple(parents[:nodes]), (self.name,) * len(tokens[:nodes]))

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Go on behind these."""
        del tapped
        self._written += len(tokens)

    def reset(self) -> None:
        """Nothing outlives a request."""
