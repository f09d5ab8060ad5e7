"""Drafts from texts the target wrote before: a corpus, and the rationales of this drive, the latest weighing most."""

from collections import deque
from collections.abc import Sequence

from torch import Tensor

from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.rationale_corpus import LONGEST_CONTEXT
from flatrope_planner.speculation.retrieval_guesses import CORPUS_TRUST, DRIVE_TRUST, RetrievalGuesses, Source
from flatrope_planner.speculation.suffix_counts import SuffixCounts
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import grow_chain, grow_tree

# Rationales of the drive that are remembered, and tokens of each.
MOST_RATIONALES, MOST_TOKENS = 128, 64
# A rationale weighs so much more than the one before it.
RECENCY = 1.02
# Weights grow with the drive; behind this they are counted anew, from 1.
MOST_WEIGHT = 1e9


class DriveMemory:
    """The latest rationales of a drive and what follows what in them."""

    def __init__(self) -> None:
        """Nothing remembered."""
        self.counts = SuffixCounts(LONGEST_CONTEXT)
        # Weight of the latest rationale.
        self.weight = 1.0
        self._rationales: deque[tuple[tuple[int, ...], float]] = deque()

    def __len__(self) -> int:
        """Number of rationales."""
        return len(self._rationales)

    def learn(self, rationale: Sequence[int]) -> None:
        """Remember a rationale, forget the oldest when there are too many."""
        if self.weight > MOST_WEIGHT:
            self._weigh_anew()
        self.weight *= RECENCY
        self._add(tuple(rationale[:MOST_TOKENS]), self.weight)
        if len(self._rationales) > MOST_RATIONALES:
            self.counts.remove(*self._rationales.popleft())

    def _add(self, rationale: tuple[int, ...], weight: float) -> None:
        self._rationales.append((rationale, weight))
        self.counts.add(rationale, weight)

    def _weigh_anew(self) -> None:
        before, self._rationales, self.counts = self._rationales, deque(), SuffixCounts(LONGEST_CONTEXT)
        for rationale, weight in before:
            self._add(rationale, weight / self.weight)
        self.weight = 1.0


class RetrievalDrafter:
    """Guesses what texts like this one went on with."""

    name = "retrieval"

    def __init__(self, corpus: SuffixCounts, shape: Shape = Shape.TREE) -> None:
        """Draft from a corpus (`RationaleCorpus.suffix_counts`), which never changes, and from the drive.

        Args:
            corpus: of texts with their end token; an empty one leaves the drive alone to draft from.
            shape: a chain, or a tree of the likeliest paths.
        """
        self._corpus, self._shape = Source(corpus, CORPUS_TRUST), shape
        self._drive = DriveMemory()
        self._guesses: RetrievalGuesses = self._fresh_guesses()

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """A new text: learn the one before, say what this one may begin with."""
        del prompt
        if self._guesses.written:
            self._drive.learn(self._guesses.written)
        self._guesses = self._fresh_guesses()
        return self.propose(nodes, depth)

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Nothing of this text is written yet."""
        del prompt, tapped
        self._guesses = self._fresh_guesses()

    def propose(self, nodes: int, depth: int) -> Candidates:
        """A chain or a tree of guesses."""
        if self._shape is Shape.CHAIN:
            return grow_chain(self._guesses, min(nodes, depth))
        return grow_tree(self._guesses, nodes, depth)

    def guesses(self) -> RetrievalGuesses:
        """What may follow, by path, and the evidence for it; before the first token, what a text may begin with."""
        return self._guesses

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """The text goes on with these."""
        del tapped
        self._guesses.write(tuple(tokens))

    def reset(self) -> None:
        """Forget the drive; the corpus stays."""
        self._drive = DriveMemory()
        self._guesses = self._fresh_guesses()

    def _fresh_guesses(self) -> RetrievalGuesses:
        drive = Source(self._drive.counts, DRIVE_TRUST, self._drive.weight)
        return RetrievalGuesses(self._corpus, drive, self.name)
