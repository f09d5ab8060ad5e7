"""What a block draft is trained for: that the target's own tokens are the ones it guesses, early places first."""

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.training.draft_batches import DraftBatch
from flatrope_planner.training.objective import IGNORED

# Place k of a block weighs exp(-(k - 1) / gamma): a wrong token makes all behind it worthless (DFlash's 4 for 8
# tokens, 7 for 16).
GAMMA_PER_TOKEN = 0.5


class DraftLoss(Enum):
    """How the draft's probabilities q are compared with the target's."""

    # Cross entropy with the token the target has written.
    CE = "ce"
    # Kullback-Leibler divergence from the target's likeliest tokens p.
    KL = "kl"
    # -log sum min(p, q): the chance that sampling from both agrees (LK losses, arXiv:2602.23881).
    LK = "lk"


@dataclass(frozen=True)
class DraftScore:
    """How a batch went."""

    loss: Tensor
    # Expected accepted length of a block, bonus token included: 1 + sum over k of the product of hits up to k.
    expected_length: Tensor


def score_draft(
    draft: BlockDraft, embeddings: nn.Embedding, head: nn.Module, batch: DraftBatch, kind: DraftLoss
) -> DraftScore:
    """Loss and expected accepted length of a batch."""
    logits = draft_logits(draft, embeddings, head, batch)
    known = batch.labels != IGNORED
    weight = torch.exp(-torch.arange(logits.shape[2]) / (GAMMA_PER_TOKEN * draft.config.block_size)) * known
    each = _losses(logits, batch, kind)
    hits = (logits.argmax(-1) == batch.labels) & known
    # Places behind the end neither gain nor lose anything.
    accepted = hits.long().cumprod(-1).sum(-1).float()
    return DraftScore((each * weight).sum() / weight.sum(), 1.0 + accepted.mean())


def draft_logits(draft: BlockDraft, embeddings: nn.Embedding, head: nn.Module, batch: DraftBatch) -> Tensor:
    """Logits (S, A, B - 1, vocabulary), each place told the token before it."""
    size = draft.config.block_size
    anchors = embeddings(batch.anchors)[:, :, None]
    masks = draft.mask_embedding.expand(*batch.anchors.shape, size - 1, -1).to(anchors.dtype)
    block = torch.cat([anchors, masks], dim=2).flatten(1, 2)
    context = draft.context(batch.tapped, batch.context)
    hidden = draft(block, batch.block, context, batch.mask).unflatten(1, (-1, size))[:, :, 1:]
    logits: Tensor = head(hidden).float() + draft.predecessor_logits(batch.before)
    return logits


def _losses(logits: Tensor, batch: DraftBatch, kind: DraftLoss) -> Tensor:
    """Loss of each place, (S, A, B - 1)."""
    if kind is DraftLoss.CE:
        return F.cross_entropy(
            logits.flatten(0, 2), batch.labels.flatten(), ignore_index=IGNORED, reduction="none"
        ).view(batch.labels.shape)
    q = logits.log_softmax(-1).gather(-1, batch.likeliest)
    p = batch.log_probability
    if kind is DraftLoss.KL:
        return (p.exp() * (p - q)).sum(-1)
    return -torch.minimum(p.exp(), q.exp()).sum(-1).clamp(min=1e-6).log()
