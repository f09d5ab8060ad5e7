"""Attention masks in the one form that every attention implementation of transformers understands alike."""

import torch
from torch import Tensor


def additive(mask: Tensor) -> Tensor:
    """Bool mask, True where attended -> float32 of the same shape, to be added to the attention's scores.

    Scaled-dot-product attention takes a bool mask as what it is; eager attention adds it, so that it hides nothing.
    """
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, torch.finfo(torch.float32).min)
