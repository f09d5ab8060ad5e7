"""Alpamayo's action expert: its embedding of noisy actions, its text model and its head, named as in checkpoints."""

import math

import torch
from torch import Tensor, nn
from transformers import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

from flatrope_planner.dimensions import ACTION_SIZE
from flatrope_planner.vla.alpamayo.config import EmbeddingConfig

NORM_EPSILON = 1e-5


class RootMeanSquareNorm(nn.Module):
    """Scales to unit mean square, in single precision, then by a weight."""

    def __init__(self, size: int) -> None:
        """Weights of one."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, value: Tensor) -> Tensor:
        """(..., size) -> the same."""
        wide = value.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + NORM_EPSILON)
        return normed.to(value) * self.weight


class FourierFeatures(nn.Module):
    """Sines and cosines of a number at logarithmically spaced frequencies."""

    freqs: Tensor

    def __init__(self, config: EmbeddingConfig) -> None:
        """Frequencies of the configuration, until those of the checkpoint are read."""
        super().__init__()
        freqs = torch.logspace(0.0, math.log10(config.max_frequency), config.fourier_features // 2)
        self.register_buffer("freqs", freqs[None])

    def forward(self, value: Tensor) -> Tensor:
        """(...,) -> (..., features), unit variance."""
        angle = value[..., None] * self.freqs * 2 * torch.pi
        return torch.cat([angle.sin(), angle.cos()], dim=-1) * math.sqrt(2)


class PointEncoder(nn.Module):
    """A perceptron with a norm before every layer but the first."""

    def __init__(self, inputs: int, config: EmbeddingConfig, outputs: int) -> None:
        """Random weights."""
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(inputs, config.hidden), nn.SiLU()]
        for _ in range(config.layers - 1):
            layers += [RootMeanSquareNorm(config.hidden), nn.Linear(config.hidden, config.hidden), nn.SiLU()]
        self.trunk = nn.Sequential(*layers, RootMeanSquareNorm(config.hidden), nn.Linear(config.hidden, outputs))

    def forward(self, features: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        encoded: Tensor = self.trunk(features)
        return encoded


class ActionEmbedding(nn.Module):
    """Noisy actions and flow time -> what the expert reads."""

    def __init__(self, config: EmbeddingConfig, outputs: int) -> None:
        """Random weights."""
        super().__init__()
        self.sinus = nn.ModuleList(FourierFeatures(config) for _ in range(ACTION_SIZE))
        self.timestep_fourier_encoder = FourierFeatures(config)
        self.encoder = PointEncoder(config.fourier_features * (ACTION_SIZE + 1), config, outputs)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, action: Tensor, time: Tensor) -> Tensor:
        """(S, 64, 2), (S,) -> (S, 64, outputs)."""
        features = [encode(action[..., axis].float()) for axis, encode in enumerate(self.sinus)]
        times = self.timestep_fourier_encoder(time.float())[:, None].expand(-1, action.shape[1], -1)
        embedded: Tensor = self.norm(self.encoder(torch.cat([*features, times], dim=-1).to(self.norm.weight)))
        return embedded


def new_trunk(config: Qwen3VLTextConfig) -> Qwen3VLTextModel:
    """The expert's text model, without embeddings: it never sees a token."""
    trunk = Qwen3VLTextModel(config)
    del trunk.embed_tokens
    trunk.embed_tokens = None
    return trunk
