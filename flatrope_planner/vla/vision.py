"""Qwen3-VL's vision tower for pictures of one size: whole batches at once instead of picture by picture.

The weights and the result are those of `Qwen3VLVisionModel`; only the loop over pictures is gone, and the patch
embedding, which sees each still picture twice (temporal patch 2), is summed over time beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    Qwen3VLVisionAttention,
    Qwen3VLVisionModel,
    Qwen3VLVisionPatchMerger,
    apply_rotary_pos_emb_vision,
    eager_attention_forward,
)
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

from flatrope_planner.vla.config import MERGE, PATCH_PX
from flatrope_planner.vla.pictures import PICTURE_HEIGHT, PICTURE_WIDTH

GRID = (PICTURE_HEIGHT // PATCH_PX, PICTURE_WIDTH // PATCH_PX)


@dataclass(frozen=True)
class VisionFeatures:
    """What the text model gets of N pictures."""

    # (N, tokens, hidden): take the place of the image tokens.
    tokens: Tensor
    # One (N, tokens, hidden) for each of the first text layers.
    deepstack: tuple[Tensor, ...]

    @staticmethod
    def joined(pictures: "Sequence[VisionFeatures]") -> "VisionFeatures":
        """Those of all pictures of a prompt, whatever their sizes, in its order: tokens are (1, all tokens, hidden)."""
        levels = zip(*(picture.deepstack for picture in pictures), strict=True)
        # (N, tokens, hidden) -> (1, N * tokens, hidden)
        tokens, *deepstack = (
            torch.cat([part.flatten(0, 1) for part in level])[None]
            for level in ([picture.tokens for picture in pictures], *levels)
        )
        return VisionFeatures(tokens, tuple(deepstack))


class VisionEncoder(nn.Module):
    """Runs a vision tower on batches of pictures; has no weights of its own."""

    pos_indices: Tensor
    pos_weights: Tensor
    rotary_positions: Tensor

    def __init__(self, tower: Qwen3VLVisionModel, grid: tuple[int, int] = GRID) -> None:
        """Prepare the position tables for the one picture size, given as rows and columns of patches."""
        super().__init__()
        # Kept out of the module tree: the tower belongs to the target.
        object.__setattr__(self, "tower", tower)
        place = torch.tensor([[1, *grid]])
        indices, weights = get_vision_interpolation_indices_and_weights(
            place,
            num_grid_per_side=tower.num_grid_per_side,
            mode=tower.interpolation_mode,
            align_corners=tower.interpolation_align_corners,
            spatial_merge_size=MERGE,
        )
        self.register_buffer("pos_indices", indices, persistent=False)
        self.register_buffer("pos_weights", weights[:, :, None], persistent=False)
        self.register_buffer("rotary_positions", get_vision_position_ids(place, MERGE), persistent=False)

    def forward(self, pictures: Tensor) -> VisionFeatures:
        """Encode uint8 (N, H, W, 3) RGB pictures of the grid's size."""
        tower: Qwen3VLVisionModel = self.tower
        hidden = self._embed(patchify(pictures))
        cos, sin = tower.rotary_pos_emb(hidden, self.rotary_positions)
        deepstack = []
        for index, block in enumerate(tower.blocks):
            hidden = hidden + _attention(block.attn, block.norm1(hidden), cos, sin)
            hidden = hidden + block.mlp(block.norm2(hidden))
            if index in tower.deepstack_visual_indexes:
                merger = tower.deepstack_merger_list[tower.deepstack_visual_indexes.index(index)]
                deepstack.append(_merge(merger, hidden))
        return VisionFeatures(_merge(tower.merger, hidden), tuple(deepstack))

    def _embed(self, patches: Tensor) -> Tensor:
        # patches: (N, P, 768)
        tower: Qwen3VLVisionModel = self.tower
        conv = tower.patch_embed.proj
        position = (tower.pos_embed(self.pos_indices) * self.pos_weights).sum(1)
        weight = conv.weight.sum(2).flatten(1)
        embedded: Tensor = F.linear(patches.to(weight.dtype), weight, conv.bias) + position.to(weight.dtype)
        return embedded


def patchify(pictures: Tensor) -> Tensor:
    """uint8 (N, H, W, 3) -> float (N, patches, 768) in [-1, 1]: in Qwen's order, merged blocks together."""
    rows, columns = (size // PATCH_PX // MERGE for size in pictures.shape[1:3])
    blocks = pictures.reshape(-1, rows, MERGE, PATCH_PX, columns, MERGE, PATCH_PX, 3)
    # (N, row, column, row in block, column in block, channel, y, x)
    patches = blocks.permute(0, 1, 4, 2, 5, 7, 3, 6).reshape(len(pictures), rows * columns * MERGE**2, -1)
    return patches.to(torch.float32) / 127.5 - 1.0


def _attention(attn: Qwen3VLVisionAttention, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    n, patches, _ = hidden.shape
    # Each (N, P, heads, head_dim).
    query, key, value = attn.qkv(hidden).reshape(n, patches, 3, attn.num_heads, -1).unbind(2)
    query, key = apply_rotary_pos_emb_vision(query, key, cos, sin)
    chosen = attn.config._attn_implementation  # noqa: SLF001  # transformers offers no public way to ask
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(chosen, eager_attention_forward)
    heads_first = (part.transpose(1, 2) for part in (query, key, value))
    mixed, _ = attend(attn, *heads_first, attention_mask=None, scaling=attn.scaling, is_causal=False)
    projected: Tensor = attn.proj(mixed.reshape(n, patches, -1))
    return projected


def _merge(merger: Qwen3VLVisionPatchMerger, hidden: Tensor) -> Tensor:
    merged: Tensor = merger(hidden).reshape(len(hidden), -1, merger.linear_fc2.out_features)
    return merged
