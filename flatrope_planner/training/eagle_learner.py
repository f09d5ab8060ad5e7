"""Teaches an EAGLE-3 draft by training-time test: it goes on from its own states as it will when it drafts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.speculation.block_draft import Places
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.eagle_draft import EagleDraft
from flatrope_planner.speculation.eagle_drafter import MAX_DEPTH
from flatrope_planner.training.block_batches import padded
from flatrope_planner.training.draft_scoring import DraftLoss, DraftScore, Truth, score_guesses
from flatrope_planner.training.objective import IGNORED
from flatrope_planner.training.traces import Trace
from flatrope_planner.vla.attention_mask import additive


@dataclass(frozen=True)
class EagleBatch:
    """S texts of up to T read tokens, with Q places each from which the draft writes on for K tokens."""

    # float (taps, S, T, hidden): the states before the tokens that follow them, int64 (S, T); and where they stand.
    tapped: Tensor
    following: Tensor
    context: Places
    # int64 (S, Q): the pair each place begins with; int64 (S, Q, K): the token of each of its pairs.
    first: Tensor
    tokens: Tensor
    # int64 (S, 1): rotary position minus index, behind the prompt.
    delta: Tensor
    truth: Truth


class EagleLearner:
    """An EAGLE-3 draft and the parts of the target that it borrows."""

    def __init__(self, draft: EagleDraft, parts: BorrowedParts) -> None:
        """Teach `draft`."""
        self.network = draft
        self._parts = parts

    def batch(self, traces: Sequence[Trace], rng: np.random.Generator) -> EagleBatch:
        """All places of each text."""
        del rng
        longest = max(len(trace.tokens) for trace in traces) - 1
        places = max(len(trace.tokens) - trace.prompt for trace in traces)
        rows = [_row(trace, longest, places) for trace in traces]
        parts = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        return EagleBatch(
            tapped=torch.stack([padded(trace.tapped.float(), longest, 1) for trace in traces], dim=1),
            following=parts["following"],
            context=Places(torch.arange(longest).expand(len(traces), -1), parts["positions"].movedim(1, 0)),
            first=parts["first"],
            tokens=parts["tokens"],
            delta=parts["delta"],
            truth=Truth(parts["labels"], parts["likeliest"], parts["log_probability"]),
        )

    def disturbed(self, trace: Trace, rng: np.random.Generator) -> Trace:
        """The text as it is."""
        del rng
        return trace

    def score(self, batch: EagleBatch, kind: DraftLoss) -> DraftScore:
        """How well it writes on."""
        return score_guesses(self.logits(batch), batch.truth, kind)

    def logits(self, batch: EagleBatch) -> Tensor:
        """Logits (S, Q, K, vocabulary)."""
        draft = self.network
        fused = draft.fuse(batch.tapped)
        key, value = draft.keys_and_values(self._parts.embed(batch.following), fused, batch.context)
        device = batch.first.device
        mask = additive(torch.arange(key.shape[2], device=device) <= batch.first[:, :, None])
        own = additive(torch.eye(batch.first.shape[1], dtype=torch.bool, device=device)).expand(len(mask), -1, -1)
        states = fused.gather(1, batch.first[..., None].expand(-1, -1, fused.shape[-1]))
        guessed = []
        for step in range(batch.tokens.shape[2]):
            embeds, index = self._parts.embed(batch.tokens[:, :, step]), batch.first + step
            places = Places(index, (index + batch.delta).expand(3, -1, -1))
            if step:
                new_key, new_value = draft.keys_and_values(embeds, states, places)
                key, value = torch.cat([key, new_key], dim=2), torch.cat([value, new_value], dim=2)
                mask = torch.cat([mask, own], dim=2)
            states = draft(embeds, states, places, (key, value), mask[:, None])
            guessed.append(draft.logits(states, self._parts.logits))
        return torch.stack(guessed, dim=2)


def _row(trace: Trace, longest: int, places: int) -> dict[str, Tensor]:
    tokens, prompt = trace.tokens.long(), trace.prompt
    last = len(tokens) - 1
    # The pair before the prompt's last token guesses the text's first one.
    first = torch.arange(prompt - 2, prompt - 2 + places)
    index = first[:, None] + torch.arange(1, MAX_DEPTH + 1)
    answer = index + 1
    within = (answer - prompt).clamp(max=last - prompt)
    return {
        "following": padded(tokens[1:], longest, 0),
        "positions": padded(trace.positions.long(), longest, 1),
        "first": first.clamp(max=last - 1),
        "tokens": tokens[index.clamp(max=last)],
        "delta": trace.positions[0, -1:].long() - last,
        "labels": tokens[answer.clamp(max=last)].masked_fill(answer > last, IGNORED),
        "likeliest": trace.likeliest.long()[within],
        "log_probability": trace.log_probability[within],
    }
