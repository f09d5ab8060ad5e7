"""Medusa heads: each guesses one place ahead from the target's last hidden state alone (arXiv:2401.10774)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess, grow_chain, grow_tree


@dataclass(frozen=True)
class MedusaConfig:
    """Sizes of the heads, and which target they are for."""

    hidden: int
    # The last of the target's layers.
    tapped_layers: tuple[int, ...]
    # Places ahead of the last committed token.
    heads: int = 7


class MedusaHeads(nn.Module):
    """One residual block a place, through the target's final norm and head."""

    def __init__(self, config: MedusaConfig) -> None:
        """Blocks that change nothing yet."""
        super().__init__()
        self.config = config
        blocks = [nn.Linear(config.hidden, config.hidden) for _ in range(config.heads)]
        for block in blocks:
            nn.init.zeros_(block.weight)
            nn.init.zeros_(block.bias)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, state: Tensor) -> Tensor:
        """(..., hidden) states that led to a token -> (..., heads, hidden), for the tokens behind it."""
        return torch.stack([state + F.silu(block(state)) for block in self.blocks], dim=-2)


class MedusaDrafter:
    """Guesses each place by itself."""

    name = "medusa"

    def __init__(self, heads: MedusaHeads, parts: BorrowedParts, shape: Shape = Shape.CHAIN) -> None:
        """Draft for the target that the parts belong to."""
        self._heads, self._parts, self._shape = heads.eval(), parts, shape
        self._state: Tensor | None = None

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """Nothing: there is no state yet to guess from."""
        del prompt, nodes, depth
        return Candidates()

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Heads guess from the state of the last token that was read; `observe` brings it."""
        del prompt, tapped
        self._state = None

    def propose(self, nodes: int, depth: int) -> Candidates:
        """A chain or a tree of guesses; nothing before the first token."""
        guesses, depth = self.guesses(), min(depth, self._heads.config.heads)
        if self._shape is Shape.CHAIN:
            return grow_chain(guesses, min(nodes, depth))
        return grow_tree(guesses, nodes, depth)

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """The state of the last token that was read has led to the last token chosen."""
        del tokens
        self._state = tapped[-1, -1]

    def reset(self) -> None:
        """Nothing is learnt while driving."""

    @torch.inference_mode()
    def guesses(self) -> "MedusaGuesses":
        """What may follow, by path; nothing before the first token."""
        if self._state is None:
            return MedusaGuesses([], [])
        state = self._state
        probability = self._parts.logits(self._parts.normed(self._heads(state.float()))).softmax(-1)
        likeliest, tokens = probability.topk(min(MAX_CHILDREN, probability.shape[-1]), dim=-1)
        return MedusaGuesses(tokens.tolist(), likeliest.tolist())


class MedusaGuesses:
    """Probabilities of each place, whatever stands before it."""

    def __init__(self, tokens: list[list[int]], likeliest: list[list[float]]) -> None:
        """Likeliest tokens of each place, and how likely they are."""
        rows = zip(tokens, likeliest, strict=True)
        self._places = [[Guess(t, p, MedusaDrafter.name) for t, p in zip(*row, strict=True)] for row in rows]

    def __call__(self, path: tuple[int, ...]) -> list[Guess]:
        """The likeliest tokens behind a path."""
        return self._places[len(path)] if len(path) < len(self._places) else []
