"""Ego history as tokens, to the bit as Alpamayo's tokenizer cuts it: in single precision, halves to the even bin."""

import torch
from torch import Tensor

from flatrope_planner.vla.alpamayo.config import DeltaConfig


def encode_steps(position_m: Tensor, config: DeltaConfig) -> Tensor:
    """Bins of the steps between poses; the first leads from the origin to the oldest pose.

    Args:
        position_m: (..., T, 3) in any one frame, m.
        config: range and number of the bins.

    Returns:
        int64 (..., 3 T), flattened over (pose, xyz).
    """
    steps = torch.diff(position_m, dim=-2, prepend=torch.zeros_like(position_m[..., :1, :]))
    low, high = (steps.new_tensor(bound) for bound in (config.minimum_m, config.maximum_m))
    bins = ((steps - low) / (high - low) * (config.bins - 1)).round().long()
    return bins.clamp(0, config.bins - 1).flatten(-2)


def decode_steps(bins: Tensor, config: DeltaConfig) -> Tensor:
    """Positions (..., T, 3) whose steps are the middles of the bins (..., 3 T)."""
    low, high = (torch.tensor(bound) for bound in (config.minimum_m, config.maximum_m))
    share = bins.reshape(*bins.shape[:-1], -1, 3) / (config.bins - 1)
    return (share * (high - low) + low).cumsum(-2)
