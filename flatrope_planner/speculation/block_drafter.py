"""Drafts with a block-diffusion network: keeps its context in step with the target, turns guesses into trees."""

from collections.abc import Sequence
from enum import Enum

import torch
from torch import Tensor

from flatrope_planner.speculation.block_draft import BlockDraft, ContextLayer, Places
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess, grow_chain, grow_tree


class Shape(Enum):
    """What is proposed."""

    CHAIN = "chain"
    TREE = "tree"


class BlockDrafter:
    """Guesses the next block from the target's hidden states."""

    def __init__(self, draft: BlockDraft, parts: BorrowedParts, shape: Shape = Shape.CHAIN) -> None:
        """Draft for the target that the parts belong to, a chain or a tree of the likeliest paths."""
        self.name = f"block-{draft.config.scheme.value}"
        self._draft, self._parts = draft.eval(), parts
        self._shape = shape
        self._context: list[ContextLayer] = []
        self._anchor = self._index = self._delta = 0

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """Nothing: there is no state yet to guess from."""
        del prompt, nodes, depth
        return Candidates()

    @torch.inference_mode()
    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Take in what the target has read of the prompt."""
        self._anchor, self._index, self._delta = prompt.token_ids[-1], tapped.shape[1], prompt.rope_delta
        seen = self._window(prompt, tapped.shape[1])
        index = torch.tensor(seen, device=tapped.device)
        places = Places(index[None], prompt.rotary_positions()[:, None, seen].to(tapped.device))
        self._context = self._draft.context(tapped[:, None, seen].float(), places)

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
        masks = self._draft.mask(self._parts.embed).expand(1, size - 1, -1)
        block = torch.cat([self._parts.embed_chain([self._anchor]), masks], dim=1)
        hidden = self._draft(block, self._places(size), self._context, None)
        return BlockGuesses(self._draft, self._parts.logits(hidden[0, 1:]), self._anchor, self.name)

    @torch.inference_mode()
    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Take in what the target has read since; the last of `tokens` is the new anchor."""
        count = tapped.shape[1]
        read = self._draft.context(tapped[:, None].float(), self._places(count))
        self._context = [
            (torch.cat([k, new_k], dim=2), torch.cat([v, new_v], dim=2))
            for (k, v), (new_k, new_v) in zip(self._context, read, strict=True)
        ]
        self._anchor, self._index = tokens[-1], self._index + count

    def reset(self) -> None:
        """Nothing is learnt while driving."""

    def _places(self, count: int) -> Places:
        """Of so many tokens from the next one on."""
        index = torch.arange(self._index, self._index + count, device=self._parts.device)[None]
        return Places(index, (index + self._delta).expand(3, 1, -1))

    def _window(self, prompt: Prompt, length: int) -> list[int]:
        """Tokens of the prompt that the draft sees."""
        window = self._draft.config.context_tokens
        if window is None:
            return list(range(length))
        return sorted({*prompt.pinned, *range(max(length - window, 0), length)})


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
        known = torch.tensor(before, device=self._logits.device)
        logits = self._logits[place] + self._draft.predecessor_logits(known)
        likeliest, tokens = logits.softmax(-1).topk(min(MAX_CHILDREN, len(logits)))
        pairs = zip(tokens.tolist(), likeliest.tolist(), strict=True)
        return [Guess(token, probability, self._source) for token, probability in pairs]
