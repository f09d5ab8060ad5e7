"""Drafts with a block-diffusion network: keeps its context in step with the target, turns guesses into trees."""

from collections.abc import Sequence
from enum import Enum

import torch
from torch import Tensor, nn

from flatrope_planner.speculation.block_draft import BlockDraft, ContextLayer, Places
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess, grow_chain, grow_tree


class Shape(Enum):
    """What is proposed."""

    CHAIN = "chain"
    TREE = "tree"


class BlockDrafter:
    """Guesses the next block from the target's hidden states."""

    def __init__(
        self,
        draft: BlockDraft,
        embeddings: nn.Embedding,
        head: nn.Module,
        shape: Shape = Shape.CHAIN,
        context_tokens: int | None = None,
    ) -> None:
        """Draft for the target that embeddings and head belong to.

        Args:
            draft: the network.
            embeddings: the target's.
            head: the target's, hidden states -> logits.
            shape: a chain, or a tree of the likeliest paths.
            context_tokens: how many of the last prompt tokens the draft sees, besides the prompt's pinned ones; None
                for all.
        """
        self.name = f"block-{draft.config.scheme.value}"
        self._draft, self._embeddings, self._head = draft.eval(), embeddings, head
        self._shape, self._context_tokens = shape, context_tokens
        self._context: list[ContextLayer] = []
        self._anchor = self._index = self._delta = 0

    @torch.inference_mode()
    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Take in what the target has read of the prompt."""
        self._anchor, self._index, self._delta = prompt.token_ids[-1], tapped.shape[1], prompt.rope_delta
        seen = self._window(prompt, tapped.shape[1])
        index = torch.tensor(seen)
        places = Places(index[None], prompt.rotary_positions()[:, None, seen])
        self._context = self._draft.context(tapped[:, None, seen], places)

    def propose(self, nodes: int, depth: int) -> Candidates:
        """A chain or a tree of guesses."""
        guesses = self.guesses()
        depth = min(depth, self._draft.config.block_size - 1)
        if self._shape is Shape.CHAIN:
            return grow_chain(guesses, min(nodes, depth))
        return grow_tree(guesses, nodes, depth)

    @torch.inference_mode()
    def guesses(self) -> "BlockGuesses":
        """What may follow, by path."""
        size = self._draft.config.block_size
        masks = self._draft.mask(self._embeddings).expand(size - 1, -1)
        block = torch.cat([self._embeddings(torch.tensor([self._anchor])), masks])[None]
        index = torch.arange(self._index, self._index + size)[None]
        hidden = self._draft(block, Places(index, (index + self._delta).expand(3, 1, -1)), self._context, None)
        return BlockGuesses(self._draft, self._head(hidden[0, 1:]).float(), self._anchor, self.name)

    @torch.inference_mode()
    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Take in what the target has read since; the last of `tokens` is the new anchor."""
        count = tapped.shape[1]
        index = torch.arange(self._index, self._index + count)[None]
        read = self._draft.context(tapped[:, None], Places(index, (index + self._delta).expand(3, 1, -1)))
        self._context = [
            (torch.cat([k, new_k], dim=2), torch.cat([v, new_v], dim=2))
            for (k, v), (new_k, new_v) in zip(self._context, read, strict=True)
        ]
        self._anchor, self._index = tokens[-1], self._index + count

    def reset(self) -> None:
        """Nothing is learnt while driving."""

    def _window(self, prompt: Prompt, length: int) -> list[int]:
        """Tokens of the prompt that the draft sees."""
        if self._context_tokens is None:
            return list(range(length))
        return sorted({*prompt.pinned, *range(max(length - self._context_tokens, 0), length)})


class BlockGuesses:
    """Probabilities of a block's places, each given the token before it."""

    def __init__(self, draft: BlockDraft, logits: Tensor, anchor: int, source: str) -> None:
        """Remember the logits (places, vocabulary) behind an anchor."""
        self._draft, self._logits, self._anchor, self._source = draft, logits, anchor, source
        self._known: dict[tuple[int, int], list[Guess]] = {}

    def __call__(self, path: tuple[int, ...]) -> list[Guess]:
        """The likeliest tokens behind a path."""
        place, before = len(path), path[-1] if path else self._anchor
        if place >= len(self._logits):
            return []
        if (place, before) not in self._known:
            self._known[place, before] = self._guess(place, before)
        return self._known[place, before]

    @torch.inference_mode()
    def _guess(self, place: int, before: int) -> list[Guess]:
        logits = self._logits[place] + self._draft.predecessor_logits(torch.tensor(before))
        likeliest, tokens = logits.softmax(-1).topk(min(MAX_CHILDREN, len(logits)))
        pairs = zip(tokens.tolist(), likeliest.tolist(), strict=True)
        return [Guess(token, probability, self._source) for token, probability in pairs]
