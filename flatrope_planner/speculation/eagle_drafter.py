"""Drafts with an EAGLE-3 network: keeps its pairs in step with the target, and writes on along any path."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from flatrope_planner.speculation.block_draft import ContextLayer, Places
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.eagle_draft import EagleDraft
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess, grow_chain, grow_tree

# Tokens behind the last committed one that are guessed at most, as in EAGLE-3.
MAX_DEPTH = 7


@dataclass(frozen=True)
class _Written:
    """A path: the state behind it, and what the next token sees."""

    state: Tensor
    context: ContextLayer


class EagleDrafter:
    """Guesses token by token."""

    def __init__(self, draft: EagleDraft, parts: BorrowedParts, shape: Shape = Shape.CHAIN) -> None:
        """Draft for the target that the parts belong to."""
        self.name = f"eagle3-{draft.config.scheme.value}"
        self._draft, self._parts, self._shape = draft.eval(), parts, shape
        self._context: ContextLayer | None = None
        self._state: Tensor | None = None
        self._index = self._delta = 0

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """Nothing: there is no state yet to guess from."""
        del prompt, nodes, depth
        return Candidates()

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Take in what the target has read of the prompt."""
        self._context = self._state = None
        self._index, self._delta = 0, prompt.rope_delta
        self._read(list(prompt.token_ids[1:]), tapped, prompt.rotary_positions()[:, None, :-1])

    def propose(self, nodes: int, depth: int) -> Candidates:
        """A chain or a tree of guesses."""
        guesses, depth = self.guesses(), min(depth, MAX_DEPTH)
        if self._shape is Shape.CHAIN:
            return grow_chain(guesses, min(nodes, depth))
        return grow_tree(guesses, nodes, depth)

    def guesses(self) -> "EagleGuesses":
        """What may follow, by path."""
        if self._state is None or self._context is None:
            msg = "the draft has read nothing yet"
            raise RuntimeError(msg)
        root = _Written(self._state, self._context)
        return EagleGuesses(self._draft, self._parts, root, (self._index, self._delta), self.name)

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """Take in what the target has read since: behind each of these rows it has chosen the token of its place."""
        index = torch.arange(self._index, self._index + tapped.shape[1], device=tapped.device) + self._delta
        self._read(tokens, tapped, index.expand(3, 1, -1))

    def reset(self) -> None:
        """Nothing is learnt while driving."""

    @torch.inference_mode()
    def _read(self, following: Sequence[int], tapped: Tensor, target_positions: Tensor) -> None:
        """Pairs of the tokens that follow, and the target's states before them."""
        count = len(following)
        if not count:
            return
        embeds, states = self._parts.embed_chain(following), self._draft.fuse(tapped[:, None].float())
        index = torch.arange(self._index, self._index + count, device=tapped.device)
        places = Places(index[None], target_positions.to(tapped.device))
        context = _joined(self._context, self._draft.keys_and_values(embeds, states, places))
        # Only the state behind the last token is drafted from; it sees all pairs.
        last = Places(places.index[:, -1:], places.target[..., -1:])
        self._state = self._draft(embeds[:, -1:], states[:, -1:], last, context, None)
        self._context, self._index = context, self._index + count


class EagleGuesses:
    """Probabilities along paths, each written on once."""

    def __init__(
        self,
        draft: EagleDraft,
        parts: BorrowedParts,
        root: _Written,
        place: tuple[int, int],
        source: str,
    ) -> None:
        """Start behind the last committed token; `place` is the next pair's index and the prompt's rope delta."""
        self._draft, self._parts = draft, parts
        self._index, self._delta = place
        self._source = source
        self._written: dict[tuple[int, ...], _Written] = {(): root}

    @torch.inference_mode()
    def __call__(self, path: tuple[int, ...]) -> list[Guess]:
        """The likeliest tokens behind a path."""
        state = self._follow(path).state
        probability = self._draft.logits(state[0, 0], self._parts.logits).softmax(-1)
        likeliest, tokens = probability.topk(min(MAX_CHILDREN, len(probability)))
        pairs = zip(tokens.tolist(), likeliest.tolist(), strict=True)
        return [Guess(token, chance, self._source) for token, chance in pairs]

    def _follow(self, path: tuple[int, ...]) -> _Written:
        if path not in self._written:
            before = self._follow(path[:-1])
            embeds = self._parts.embed_chain(path[-1:])
            index = torch.tensor([[self._index + len(path) - 1]], device=self._parts.device)
            places = Places(index, (index + self._delta).expand(3, 1, -1))
            context = _joined(before.context, self._draft.keys_and_values(embeds, before.state, places))
            self._written[path] = _Written(self._draft(embeds, before.state, places, context, None), context)
        return self._written[path]


def _joined(before: ContextLayer | None, new: ContextLayer) -> ContextLayer:
    if before is None:
        return new
    return torch.cat([before[0], new[0]], dim=2), torch.cat([before[1], new[1]], dim=2)
