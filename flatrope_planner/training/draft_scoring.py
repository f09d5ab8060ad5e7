"""How a draft's guesses are scored against what the target wrote."""

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor
from torch.nn import functional as F

from flatrope_planner.training.objective import IGNORED

# Place k of a block weighs exp(-(k - 1) / gamma), as a wrong token makes all behind it worthless; gamma is this share
# of the block (DFlash: 4 for 8 tokens, 7 for 16).
GAMMA_SHARE = 0.5


class DraftLoss(Enum):
    """How the draft's probabilities q are compared with the target's."""

    # Cross entropy with the token the target has written.
    CE = "ce"
    # Kullback-Leibler divergence from the target's likeliest tokens p.
    KL = "kl"
    # -log sum min(p, q): the chance that sampling from both agrees (LK losses, arXiv:2602.23881).
    LK = "lk"


@dataclass(frozen=True)
class Truth:
    """What the target wrote at places (...): IGNORED behind the end of a text."""

    # int64 (...).
    labels: Tensor
    # int64 and float (..., k): its likeliest tokens there and their log probabilities.
    likeliest: Tensor
    log_probability: Tensor


@dataclass(frozen=True)
class DraftScore:
    """How a batch went."""

    loss: Tensor
    # Expected accepted length of a block, bonus token included: 1 + sum over k of the product of hits up to k; NaN
    # where there is no block, as nothing follows the texts' first tokens.
    expected_length: Tensor


def score_guesses(logits: Tensor, truth: Truth, kind: DraftLoss) -> DraftScore:
    """Loss and expected accepted length of logits (..., places, vocabulary), places in the order they are verified."""
    places = logits.shape[-2]
    known = truth.labels != IGNORED
    weight = torch.exp(-torch.arange(places, device=known.device) / (GAMMA_SHARE * (places + 1))) * known
    each = _losses(logits.float(), truth, kind)
    hits = (logits.argmax(-1) == truth.labels) & known
    # Blocks behind the end of a text are none.
    begun = known[..., 0]
    accepted = hits.long().cumprod(-1).sum(-1)[begun].float()
    return DraftScore(
        (each * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny), 1.0 + accepted.mean()
    )


def _losses(logits: Tensor, truth: Truth, kind: DraftLoss) -> Tensor:
    """Loss of each place."""
    if kind is DraftLoss.CE:
        flat = F.cross_entropy(logits.flatten(0, -2), truth.labels.flatten(), ignore_index=IGNORED, reduction="none")
        return flat.view(truth.labels.shape)
    q = logits.log_softmax(-1).gather(-1, truth.likeliest)
    p = truth.log_probability
    if kind is DraftLoss.KL:
        return (p.exp() * (p - q)).sum(-1)
    return -torch.minimum(p.exp(), q.exp()).sum(-1).clamp(min=1e-6).log()
