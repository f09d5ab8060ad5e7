"""The action expert: a narrow text model that reads the target's keys and values and denoises 64 actions at once."""

import math

import torch
from torch import Tensor, nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

from flatrope_planner.dimensions import ACTION_SIZE, FUTURE_POINTS
from flatrope_planner.speculation.slots import cache_argument
from flatrope_planner.vla.attention_mask import additive
from flatrope_planner.vla.cache import JoinedCache, KeyValues
from flatrope_planner.vla.config import NanoConfig, expert_config

FOURIER_FEATURES = 20
FOURIER_MAX_FREQUENCY = 100.0


class FourierFeatures(nn.Module):
    """Sines and cosines of a number at logarithmically spaced frequencies."""

    frequencies: Tensor

    def __init__(self) -> None:
        """Fix the frequencies."""
        super().__init__()
        steps = FOURIER_FEATURES // 2
        frequencies = torch.logspace(0.0, math.log10(FOURIER_MAX_FREQUENCY), steps) * 2.0 * math.pi
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, value: Tensor) -> Tensor:
        """(...,) -> (..., 20), unit variance."""
        angle = value[..., None] * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=-1) * math.sqrt(2.0)


class ActionExpert(nn.Module):
    """Velocity of the flow at noisy actions, given what the target has read and written."""

    def __init__(self, config: NanoConfig) -> None:
        """Random weights."""
        super().__init__()
        hidden = config.expert_hidden
        self.fourier = FourierFeatures()
        self.in_proj = nn.Sequential(
            nn.Linear(FOURIER_FEATURES * (ACTION_SIZE + 1) + ACTION_SIZE, hidden),
            nn.SiLU(),
            nn.LayerNorm(hidden),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden),
        )
        self.trunk = Qwen3VLTextModel(expert_config(config))
        # It never sees a token.
        self.trunk.embed_tokens = None
        self.out_proj = nn.Linear(hidden, ACTION_SIZE)

    def forward(self, action: Tensor, time: Tensor, memory: KeyValues, offset: Tensor, rope_delta: Tensor) -> Tensor:
        """Velocity (S, 64, 2).

        Args:
            action: (S, 64, 2), normalised.
            time: (S,), flow time in [0, 1).
            memory: keys and values of the target, (S, kv_heads, L, head_dim) a layer.
            offset: (S,), slots of the memory that count: up to and including `<|traj_future_start|>`.
            rope_delta: (S,), of the request.
        """
        hidden = run_expert(self.trunk, self._embed(action, time), memory, offset, rope_delta)
        velocity: Tensor = self.out_proj(hidden)
        return velocity

    def _embed(self, action: Tensor, time: Tensor) -> Tensor:
        features = [self.fourier(action).flatten(2), self.fourier(time)[:, None].expand(-1, FUTURE_POINTS, -1), action]
        embedded: Tensor = self.in_proj(torch.cat(features, dim=-1).to(self.out_proj.weight.dtype))
        return embedded


def run_expert(
    trunk: Qwen3VLTextModel, embedded: Tensor, memory: KeyValues, offset: Tensor, rope_delta: Tensor
) -> Tensor:
    """States (S, points, hidden) of embedded points of that shape that read the target's memory and one another."""
    length, points = memory.keys[0].shape[2], embedded.shape[1]
    mask = additive(expert_mask(offset, length, points)).to(embedded)
    hidden: Tensor = trunk(
        inputs_embeds=embedded,
        attention_mask=mask,
        position_ids=expert_positions(offset, rope_delta, points),
        **{cache_argument(type(trunk).forward): JoinedCache(memory.keys, memory.values)},
    ).last_hidden_state
    return hidden


def expert_positions(offset: Tensor, rope_delta: Tensor, points: int = FUTURE_POINTS) -> Tensor:
    """Positions (3, S, points): they count on behind the last token of the rationale, equal on all axes."""
    return (torch.arange(points, device=offset.device) + (offset + rope_delta)[:, None]).expand(3, -1, -1)


def expert_mask(offset: Tensor, length: int, points: int = FUTURE_POINTS) -> Tensor:
    """Bool (S, 1, points, length + points), True where attended: the memory before the offset, and all points."""
    slots = torch.arange(length + points, device=offset.device)
    seen = (slots < offset[:, None]) | (slots >= length)
    return seen[:, None, None].expand(-1, 1, points, -1)
