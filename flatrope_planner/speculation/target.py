"""The little that decoding knows of a target: it reads blocks of tokens, and keeps those that it is told to keep.

A request lives in its state: nothing of it is left in the target. Slots of the state are sequence indices; rotary
positions are the target's own business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from flatrope_planner.speculation.candidates import Block


class Prompt(Protocol):
    """A request, ready to be read."""

    @property
    def token_ids(self) -> Sequence[int]:
        """Tokens of the prompt, images as their placeholder tokens."""
        ...

    @property
    def pinned(self) -> Sequence[int]:
        """Indices of tokens that a draft always sees, however short its window: the ego history."""
        ...

    @property
    def rope_delta(self) -> int:
        """Rotary position of a token behind the prompt minus its sequence index."""
        ...

    def rotary_positions(self) -> Tensor:
        """int64 (3, tokens): the target's rotary positions; three equal rows where it has but one."""
        ...


class DecodingState(Protocol):
    """What the target has read of one request."""

    # Tokens behind the committed ones that are written but never read: 1 where a text ended with its `ending` missing
    # and nothing was to be appended.
    unread: int

    @property
    def length(self) -> int:
        """Committed tokens, the prompt's included."""
        ...


@dataclass(frozen=True)
class StepResult:
    """What a pass computed for each of the n tokens it read."""

    # (n, vocabulary), before any mask.
    logits: Tensor
    # (taps, n, hidden): hidden states behind the target's tapped layers.
    tapped: Tensor


@dataclass(frozen=True)
class Prefill:
    """What the first pass computed."""

    # (taps, n - 1, hidden): hidden states of the prompt's tokens but for the last.
    tapped: Tensor
    # Of the block: the prompt's last token and the candidates behind it.
    block: StepResult


P_contra = TypeVar("P_contra", bound=Prompt, contravariant=True)
S = TypeVar("S", bound=DecodingState)


class Target(Protocol[P_contra, S]):
    """A model whose greedy output is the truth. One that plans also sees and acts: `planning.planner.SeesAndActs`."""

    # The token that ends a rationale, and what is appended when something else ends it: the end marks, stop token last;
    # () where a text stays as it was cut off, and its last token unread, as `generate` leaves it.
    stop_token: int
    ending: tuple[int, ...]
    # Other tokens that end a text, and leave it incomplete: the end of a sequence, as the backbone knows it.
    eos_tokens: frozenset[int]
    # bool (vocabulary,): tokens that are never written; masked in proposals and in verification.
    forbidden: Tensor
    # Most tokens that a rationale may have, end marks not counted.
    token_budget: int

    def prefill(self, prompt: P_contra, block: Block) -> tuple[S, Prefill]:
        """Read the prompt, and in the same pass the block whose anchor is the prompt's last token.

        Returns:
            The state, with the prompt committed and nothing of the candidates, and what was computed.
        """
        ...

    def step(self, state: S, block: Block) -> StepResult:
        """Read a block behind the committed tokens; nothing is committed."""
        ...

    def commit(self, state: S, kept: Sequence[int]) -> None:
        """Keep these rows of the last block, in order; the others are forgotten."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Readable text, end marks left out."""
        ...

    def token_text(self, token: int) -> str:
        """One token as it is, end marks included."""
        ...
