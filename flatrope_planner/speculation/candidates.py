"""What a drafter proposes: tokens as a tree whose root is the last committed token (a chain has no branches)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    # bool (n, n): whether a row's token sees a column's: itself and its ancestors.
    mask: NDArray[np.bool_]

    @classmethod
    def of(cls, anchor: int, candidates: Candidates) -> "Block":
        """The block of an anchor and the candidates that may follow it."""
        n = len(candidates.tokens) + 1
        mask = np.eye(n, dtype=np.bool_)
        for row, parent in enumerate(candidates.parents, start=1):
            mask[row] |= mask[parent + 1]
        offsets = np.array([0, *candidates.depths()], dtype=np.int64)
        return cls((anchor, *candidates.tokens), offsets, mask)
