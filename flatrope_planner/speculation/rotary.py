"""Where a draft believes tokens to be: in a line (FlatRoPE), or where the target has them (M-RoPE).

The target turns most rotary pairs of neighbouring image patches almost alike, so a draft with the target's positions
sees the pictures as one blob. Counted in a line, every token has its own angle in every pair (arXiv:2606.31160).
"""

from enum import Enum

import torch
from torch import Tensor, nn


class RotaryScheme(Enum):
    """How positions are counted."""

    # The sequence index.
    FLAT = "flat"
    # Time, height and width of the target, interleaved over the pairs as in Qwen3-VL.
    MROPE = "mrope"


class DraftRotary(nn.Module):
    """Cosines and sines for a draft's queries and keys."""

    inverse: Tensor
    axis: Tensor

    def __init__(
        self, scheme: RotaryScheme, head_dim: int, theta: float, mrope_section: tuple[int, ...] | None = None
    ) -> None:
        """Fix the frequencies.

        Args:
            scheme: how positions are counted.
            head_dim: of queries and keys.
            theta: base of the frequencies.
            mrope_section: pairs of time, height and width; for `MROPE`.
        """
        super().__init__()
        self.scheme = scheme
        pairs = head_dim // 2
        self.register_buffer("inverse", theta ** (-torch.arange(pairs) / pairs), persistent=False)
        axis = torch.zeros(pairs, dtype=torch.int64)
        if scheme is RotaryScheme.MROPE:
            if mrope_section is None or len(mrope_section) != 3 or sum(mrope_section) != pairs:
                msg = f"mrope_section {mrope_section}, expected three numbers of pairs that add up to {pairs}"
                raise ValueError(msg)
            for place in (1, 2):
                axis[place : 3 * mrope_section[place] : 3] = place
        self.register_buffer("axis", axis, persistent=False)

    def forward(self, index: Tensor, target_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine, (..., head_dim) each.

        Args:
            index: int (...,), sequence index of each token.
            target_positions: int (3, ...), the target's rotary position of each.
        """
        if self.scheme is RotaryScheme.FLAT:
            angle = index[..., None] * self.inverse
        else:
            # Each pair turns with the position of its own axis.
            angle = target_positions.movedim(0, -1)[..., self.axis] * self.inverse
        doubled = torch.cat([angle, angle], dim=-1)
        return doubled.cos(), doubled.sin()


def rotate(value: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn (S, heads, n, head_dim) by (S, n, head_dim), halves against each other as in Qwen and Llama."""
    first, second = value.chunk(2, dim=-1)
    cos, sin = cos.to(value.dtype)[:, None], sin.to(value.dtype)[:, None]
    return value * cos + torch.cat([-second, first], dim=-1) * sin
