"""Teaches a block draft: that the target's own tokens are the ones it guesses, each told the token before it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.training.block_batches import BlockBatch, block_batch
from flatrope_planner.training.draft_scoring import DraftLoss, DraftScore, score_guesses
from flatrope_planner.training.traces import Trace

# Noise beside the root mean square of a token's states.
NOISE_SHARE = 0.15


class BlockLearner:
    """A block draft and the parts of the target that it borrows."""

    def __init__(self, draft: BlockDraft, parts: BorrowedParts) -> None:
        """Teach `draft`."""
        self.network = draft
        self._parts = parts

    def batch(self, traces: Sequence[Trace], rng: np.random.Generator) -> BlockBatch:
        """Blocks behind some anchors of each text."""
        config = self.network.config
        return block_batch(traces, config.block_size, rng, config.context_tokens)

    def disturbed(self, trace: Trace, rng: np.random.Generator) -> Trace:
        """The trace with noise on the target's states, so that the draft does not learn them by heart."""
        tapped = trace.tapped.float()
        scale = NOISE_SHARE * tapped.pow(2).mean(-1, keepdim=True).sqrt()
        noise = torch.from_numpy(rng.standard_normal(tapped.shape, dtype=np.float32))
        return replace(trace, tapped=tapped + scale * noise)

    def score(self, batch: BlockBatch, kind: DraftLoss) -> DraftScore:
        """How well the blocks are guessed."""
        return score_guesses(self.logits(batch), batch.truth, kind)

    def logits(self, batch: BlockBatch) -> Tensor:
        """Logits (S, A, B - 1, vocabulary)."""
        draft, size = self.network, self.network.config.block_size
        anchors = self._parts.embed(batch.anchors)[:, :, None]
        masks = draft.mask(self._parts.embed).expand(*batch.anchors.shape, size - 1, -1)
        block = torch.cat([anchors, masks], dim=2).flatten(1, 2)
        context = draft.context(batch.tapped, batch.context)
        hidden = draft(block, batch.block, context, batch.mask)
        guessed = hidden.reshape(*batch.anchors.shape, size, -1)[:, :, 1:]
        return self._parts.logits(guessed) + draft.predecessor_logits(batch.before)
