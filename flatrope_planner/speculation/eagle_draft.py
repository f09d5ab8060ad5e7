"""An EAGLE-3 draft: one layer that writes on token by token from the target's hidden states (arXiv:2503.01840).

The layer reads pairs: a token, and the state behind the token before it. Where the target has read that token the state
is the target's, fused over the tapped layers; beyond, it is the draft's own. Positions are flat or the target's by
choice, as for the block draft.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from flatrope_planner.speculation.block_draft import ContextLayer, Places, feature_norms
from flatrope_planner.speculation.draft_attention import attend
from flatrope_planner.speculation.draft_config import DraftConfig
from flatrope_planner.speculation.rotary import DraftRotary, rotate


@dataclass(frozen=True, kw_only=True)
class EagleDraftConfig(DraftConfig):
    """Sizes of an EAGLE-3 draft, and which target it is for."""

    # Tokens that the draft's own head knows; None where it borrows the target's head.
    own_vocab_size: int | None = None


class EagleDraft(nn.Module):
    """The network; its hidden states go through the target's head, or through one of its own."""

    def __init__(self, config: EagleDraftConfig) -> None:
        """Random weights."""
        super().__init__()
        self.config = config
        taps, hidden, wide = len(config.tapped_layers), config.hidden, config.heads * config.head_dim
        narrow = config.kv_heads * config.head_dim
        self.feature_norms = feature_norms(config)
        self.fc = nn.Linear(taps * hidden, hidden, bias=False)
        self.input_layernorm = Qwen3RMSNorm(hidden, config.norm_eps)
        self.hidden_norm = Qwen3RMSNorm(hidden, config.norm_eps)
        self.q_proj = nn.Linear(2 * hidden, wide, bias=False)
        self.k_proj = nn.Linear(2 * hidden, narrow, bias=False)
        self.v_proj = nn.Linear(2 * hidden, narrow, bias=False)
        self.o_proj = nn.Linear(wide, hidden, bias=False)
        self.post_attention_layernorm = Qwen3RMSNorm(hidden, config.norm_eps)
        self.gate_proj = nn.Linear(hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, hidden, bias=False)
        self.norm = Qwen3RMSNorm(hidden, config.norm_eps)
        self.rotary = DraftRotary(config.scheme, config.head_dim, config.theta, config.mrope_section)
        own = config.own_vocab_size
        self.own_head = nn.Linear(hidden, own, bias=False) if own else None
        # int64 (own,): the target's id of each token that the own head knows, minus its place.
        self.own_offset: Tensor | None
        self.register_buffer("own_offset", torch.zeros(own, dtype=torch.int64) if own else None)

    def logits(self, states: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """Logits (..., vocabulary) of states (..., hidden); `head` is the target's.

        Tokens that a head of the draft's own does not know get minus infinity.
        """
        normed = self.norm(states)
        if self.own_head is None or self.own_offset is None:
            return head(normed)
        known: Tensor = self.own_head(normed)
        ids = self.own_offset + torch.arange(len(self.own_offset), device=known.device)
        every = known.new_full((*known.shape[:-1], self.config.vocab_size), -torch.inf)
        return every.index_copy_(-1, ids, known)

    def fuse(self, tapped: Tensor) -> Tensor:
        """One state of the target's tapped ones: (taps, S, n, hidden) -> (S, n, hidden)."""
        normed = [norm(level) for norm, level in zip(self.feature_norms, tapped, strict=True)]
        fused: Tensor = self.fc(torch.cat(normed, dim=-1))
        return fused

    def keys_and_values(self, embeds: Tensor, states: Tensor, places: Places) -> ContextLayer:
        """What later pairs see of these: (S, n, hidden) token embeddings and states before them."""
        pair = self._pair(embeds, states)
        turn = self.rotary(places.index, places.target)
        return rotate(self._heads(self.k_proj(pair)), *turn), self._heads(self.v_proj(pair))

    def forward(
        self, embeds: Tensor, states: Tensor, places: Places, context: ContextLayer, mask: Tensor | None
    ) -> Tensor:
        """States (S, n, hidden) behind the pairs' tokens, not yet normalised for the head.

        Args:
            embeds: (S, n, hidden) of the tokens.
            states: (S, n, hidden) before them.
            places: of the pairs.
            context: keys and values of all pairs that may be seen, these included.
            mask: additive (S, 1, n, context); None: everything is seen.
        """
        query = rotate(self._heads(self.q_proj(self._pair(embeds, states))), *self.rotary(places.index, places.target))
        mixed = attend(query, *context, mask)
        hidden = states + self.o_proj(mixed.transpose(1, 2).flatten(2))
        normed = self.post_attention_layernorm(hidden)
        out: Tensor = hidden + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))
        return out

    def _pair(self, embeds: Tensor, states: Tensor) -> Tensor:
        return torch.cat([self.input_layernorm(embeds), self.hidden_norm(states)], dim=-1)

    def _heads(self, value: Tensor) -> Tensor:
        return value.reshape(*value.shape[:2], -1, self.config.head_dim).transpose(1, 2)
