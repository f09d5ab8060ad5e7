"""What a drafter proposes: tokens as a tree whose root is the last committed token (a chain has no branches)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from flatrope_planner.errors import InputError

# Parent of tokens that follow the last committed token directly.
ROOT = -1


@dataclass(frozen=True)
class Candidates:
    """Proposed tokens; a parent stands before its children."""

    tokens: tuple[int, ...] = ()
    # Index of each token's predecessor in `tokens`, or ROOT.
    parents: tuple[int, ...] = ()
    # Name of the drafter each token comes from.
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fits = len(self.tokens) == len(self.parents) == len(self.sources)
        if not fits or any(not ROOT <= parent < index for index, parent in enumerate(self.parents)):
            msg = f"candidates: parents {self.parents} do not make a tree of {len(self.tokens)} tokens"
            raise InputError(msg)

    @classmethod
    def chain(cls, tokens: Sequence[int], source: str) -> "Candidates":
        """Tokens of which each follows the one before."""
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)), (source,) * len(tokens))

    def pruned(self, nodes: int, depth: int, forbidden: Tensor) -> "Candidates":
        """The tree without forbidden tokens and what follows them, cut to a number of nodes, in order, and a depth."""
        place: dict[int, int] = {ROOT: ROOT}
        kept: list[int] = []
        for index, (token, parent, deep) in enumerate(zip(self.tokens, self.parents, self.depths(), strict=True)):
            if len(kept) < nodes and deep <= depth and parent in place and not forbidden[token]:
                place[index] = len(kept)
                kept.append(index)
        return Candidates(
            tuple(self.tokens[i] for i in kept),
            tuple(place[self.parents[i]] for i in kept),
            tuple(self.sources[i] for i in kept),
        )

    def followed_by(self, more: "Candidates") -> "Candidates":
        """This chain, and behind its last token another tree."""
        offset = len(self.tokens)
        parents = (parent + offset if parent != ROOT else offset - 1 for parent in more.parents)
        return Candidates(self.tokens + more.tokens, (*self.parents, *parents), self.sources + more.sources)

    def depths(self) -> list[int]:
        """Distance of each token from the root: 1 for its children."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return depths


@dataclass(frozen=True)
class Block:
    """What one verification pass reads: the anchor, a token the target has chosen but not yet read, and candidates."""

    # (n,): the anchor first.
    tokens: tuple[int, ...]
    # int64 (n,): how many places behind the anchor each token stands; sequence index = committed length + offset.
    offsets: NDArray[np.int64]
    # Row of each token's predecessor; ROOT for the anchor, and for rows that only fill the block up.
    parents: tuple[int, ...]

    @classmethod
    def of(cls, anchor: int, candidates: Candidates) -> "Block":
        """The block of an anchor and the candidates that may follow it."""
        offsets = np.array([0, *candidates.depths()], dtype=np.int64)
        return cls((anchor, *candidates.tokens), offsets, (ROOT, *(parent + 1 for parent in candidates.parents)))

    def padded(self, width: int) -> "Block":
        """The block with rows that nothing else sees, so that it has `width` rows.

        Raises:
            InputError: when it has more already.
        """
        missing = width - len(self.tokens)
        if missing < 0:
            msg = f"block: {len(self.tokens)} tokens do not fit into {width} rows"
            raise InputError(msg)
        filling = (self.tokens[0],) * missing
        offsets = np.concatenate([self.offsets, np.zeros(missing, dtype=np.int64)])
        return Block((*self.tokens, *filling), offsets, (*self.parents, *(ROOT,) * missing))

    def paths(self) -> list[list[int]]:
        """The rows that each row sees: its ancestors, the anchor first, and itself."""
        paths: list[list[int]] = []
        for row, parent in enumerate(self.parents):
            paths.append([*(paths[parent] if parent != ROOT else []), row])
        return paths
