"""Drafts from texts the target wrote before: a corpus, and the rationales of this drive, the latest weighing most."""

from collections.abc import Sequence

from torch import Tensor

from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.context_counts import ContextCounts
from flatrope_planner.speculation.contexts import Text
from flatrope_planner.speculation.retrieval_guesses import RetrievalGuesses, Source
from flatrope_planner.speculation.retrieval_trust import CORPUS_TRUST, DRIVE_TRUST
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import grow_chain, grow_tree

# Rationales of the drive that are remembered, and tokens of each.
MOST_RATIONALES, MOST_TOKENS = 128, 64
# A rationale weighs so much more than the one before it.
RECENCY = 1.02


class DriveMemory:
    """The latest rationales of a drive and what follows what in them."""

    def __init__(self) -> None:
        """Nothing remembered."""
        self._rationales: list[Text] = []
        self._forget_all()

    def __len__(self) -> int:
        """Number of rationales."""
        return len(self._rationales)

    def learn(self, rationale: Text) -> None:
        """Remember a rationale; when there are too many, only the later half of them."""
        kept = self._rationales
        if len(kept) == MOST_RATIONALES:
            self._forget_all()
            for earlier in kept[MOST_RATIONALES // 2 :]:
                self._count(earlier)
        self._count(rationale[:MOST_TOKENS])

    def _count(self, rationale: Text) -> None:
        self.weight *= RECENCY
        self.counts.add(rationale, self.weight)
        self._rationales.append(rationale)

    def _forget_all(self) -> None:
        self._rationales = []
        self.counts = ContextCounts()
        # Weight of the latest rationale.
        self.weight = 1.0


class RetrievalDrafter:
    """Guesses what texts like this one went on with."""

    name = "retrieval"

    def __init__(self, corpus: ContextCounts, shape: Shape = Shape.TREE) -> None:
        """Draft from a corpus (`RationaleCorpus.context_counts`), which never changes, and from the drive.

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
        self._guesses.start_over()

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
