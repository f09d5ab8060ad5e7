"""The FlatRoPE block-diffusion draft: guesses a whole block at once from the target's hidden states.

After DFlash (arXiv:2602.06036): every layer's keys and values begin with projections of the target's tapped states,
the block is an anchor and mask tokens that see each other both ways, embeddings and head are the target's. Ours: each
tap is normalised by itself before they are fused (EAGLE 3.1, arXiv:2605.09992), positions are flat or the target's by
choice, and a low-rank term adds what the token before a place says about it, so that a path through a tree fits
together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from flatrope_planner.speculation.draft_attention import attend
from flatrope_planner.speculation.draft_config import DraftConfig
from flatrope_planner.speculation.rotary import DraftRotary, rotate


@dataclass(frozen=True, kw_only=True)
class BlockDraftConfig(DraftConfig):
    """Sizes of a block draft, and which target it is for."""

    # The anchor and the tokens guessed behind it.
    block_size: int = 8
    layers: int = 2
    # Rank of what the token before adds to the logits; 0 for none.
    predecessor_rank: int = 32
    # The token of the target whose embedding stands for a place to be guessed; None where the draft has learnt one.
    mask_token: int | None = None
    # How many of the last prompt tokens the draft sees, besides the prompt's pinned ones; None for all.
    context_tokens: int | None = None


@dataclass(frozen=True)
class Places:
    """Where tokens stand: int (S, n) sequence indices and int (3, S, n) rotary positions of the target."""

    index: Tensor
    target: Tensor


# Keys and values of a layer, (S, kv_heads, T, head_dim) each.
ContextLayer = tuple[Tensor, Tensor]


def feature_norms(config: DraftConfig) -> nn.ModuleList:
    """What each tapped state goes through before they are fused."""
    taps = range(len(config.tapped_layers))
    if not config.feature_norm:
        return nn.ModuleList(nn.Identity() for _ in taps)
    return nn.ModuleList(Qwen3RMSNorm(config.hidden, config.norm_eps) for _ in taps)


class BlockDraft(nn.Module):
    """The network; knows tokens as embeddings and answers with hidden states for the target's head."""

    def __init__(self, config: BlockDraftConfig) -> None:
        """Random weights."""
        super().__init__()
        self.config = config
        taps = len(config.tapped_layers)
        self.feature_norms = feature_norms(config)
        self.fc = nn.Linear(taps * config.hidden, config.hidden, bias=False)
        self.hidden_norm = Qwen3RMSNorm(config.hidden, config.norm_eps)
        own_mask = config.mask_token is None
        self.mask_embedding = nn.Parameter(torch.randn(config.hidden) * 0.02) if own_mask else None
        self._layers = [_Layer(config) for _ in range(config.layers)]
        self.layers = nn.ModuleList(self._layers)
        self.norm = Qwen3RMSNorm(config.hidden, config.norm_eps)
        self.rotary = DraftRotary(config.scheme, config.head_dim, config.theta, config.mrope_section)
        rank = config.predecessor_rank
        self.before = nn.Embedding(config.vocab_size, rank) if rank else None
        self.after = nn.Linear(rank, config.vocab_size, bias=False) if rank else None
        if self.after is not None:
            nn.init.zeros_(self.after.weight)

    def mask(self, embed: Callable[[Tensor], Tensor]) -> Tensor:
        """What stands for a place to be guessed, (hidden,): learnt, or one of the target's embeddings."""
        if self.mask_embedding is not None:
            return self.mask_embedding
        return embed(torch.tensor(self.config.mask_token, device=self.fc.weight.device))

    def context(self, tapped: Tensor, places: Places) -> list[ContextLayer]:
        """What each layer keeps of tokens that the target has read: (taps, S, T, hidden) tapped states."""
        normed = [norm(level) for norm, level in zip(self.feature_norms, tapped, strict=True)]
        fused = self.hidden_norm(self.fc(torch.cat(normed, dim=-1)))
        turn = self.rotary(places.index, places.target)
        return [layer.attention.keys_and_values(fused, turn) for layer in self._layers]

    def forward(self, block: Tensor, places: Places, context: Sequence[ContextLayer], mask: Tensor | None) -> Tensor:
        """Hidden states (S, n, hidden) for the target's head.

        Args:
            block: embeddings (S, n, hidden) of anchors and masks.
            places: of the block.
            context: of the tokens before, layer by layer.
            mask: additive (S, 1, n, T + n); None: everything is seen.
        """
        turn = self.rotary(places.index, places.target)
        hidden = block
        for layer, kept in zip(self._layers, context, strict=True):
            hidden = layer(hidden, turn, kept, mask)
        normed: Tensor = self.norm(hidden)
        return normed

    def predecessor_logits(self, tokens: Tensor) -> Tensor | float:
        """What tokens (...) say about the ones behind them: (..., vocabulary)."""
        if self.before is None or self.after is None:
            return 0.0
        logits: Tensor = self.after(self.before(tokens))
        return logits


class _Attention(nn.Module):
    """Queries from the block; keys and values from what the target has read, and from the block."""

    def __init__(self, config: BlockDraftConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.q_proj = nn.Linear(config.hidden, config.heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden, config.kv_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden, config.kv_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.heads * config.head_dim, config.hidden, bias=False)
        self.q_norm = Qwen3RMSNorm(config.head_dim, config.norm_eps)
        self.k_norm = Qwen3RMSNorm(config.head_dim, config.norm_eps)

    def keys_and_values(self, hidden: Tensor, turn: tuple[Tensor, Tensor]) -> ContextLayer:
        key = self.k_norm(self._heads(self.k_proj(hidden)))
        return rotate(key, *turn), self._heads(self.v_proj(hidden))

    def forward(
        self, hidden: Tensor, turn: tuple[Tensor, Tensor], context: ContextLayer, mask: Tensor | None
    ) -> Tensor:
        query = rotate(self.q_norm(self._heads(self.q_proj(hidden))), *turn)
        key, value = self.keys_and_values(hidden, turn)
        key, value = torch.cat([context[0], key], dim=2), torch.cat([context[1], value], dim=2)
        mixed = attend(query, key, value, mask)
        projected: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return projected

    def _heads(self, value: Tensor) -> Tensor:
        return value.reshape(*value.shape[:2], -1, self.head_dim).transpose(1, 2)


class _Layer(nn.Module):
    def __init__(self, config: BlockDraftConfig) -> None:
        super().__init__()
        self.input_layernorm = Qwen3RMSNorm(config.hidden, config.norm_eps)
        self.attention = _Attention(config)
        self.post_attention_layernorm = Qwen3RMSNorm(config.hidden, config.norm_eps)
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(
        self, hidden: Tensor, turn: tuple[Tensor, Tensor], context: ContextLayer, mask: Tensor | None
    ) -> Tensor:
        hidden = hidden + self.attention(self.input_layernorm(hidden), turn, context, mask)
        normed = self.post_attention_layernorm(hidden)
        out: Tensor = hidden + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))
        return out
