"""nano's network: a Qwen3-VL target and the action expert that reads its keys and values."""

import math

import torch
from torch import Tensor, nn
from transformers import Qwen3VLForConditionalGeneration

from flatrope_planner.errors import SetupError
from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.config import NanoConfig, vlm_config
from flatrope_planner.vla.expert import ActionExpert
from flatrope_planner.vla.reading import Reader
from flatrope_planner.vla.tokenizer import NanoTokenizer
from flatrope_planner.vla.vision import VisionEncoder

# Highest frequency (cycles over all bins) in the first embeddings of the ego-history bins.
HISTORY_MAX_FREQUENCY = 60.0


class NanoModel(nn.Module):
    """All weights of nano."""

    def __init__(self, config: NanoConfig, tokenizer: NanoTokenizer) -> None:
        """Random weights from torch's global generator; the embeddings of neighbouring history bins start alike.

        Raises:
            SetupError: when configuration and tokenizer are not of one model.
        """
        super().__init__()
        self.config = config
        self.image_pad = tokenizer.special(tok.IMAGE_PAD)
        self.vlm, self.expert = _networks(config, tokenizer)
        self.vision = VisionEncoder(self.vlm.model.visual)
        _start_history_embeddings(self.vlm.get_input_embeddings(), tokenizer.history_ids)

    @property
    def reader(self) -> Reader:
        """Reads tokens and pictures."""
        return Reader(self.vlm, self.image_pad)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., hidden) -> (..., vocabulary)."""
        logits: Tensor = self.vlm.lm_head(hidden)
        return logits


def parameter_shapes(config: NanoConfig, tokenizer: NanoTokenizer) -> dict[str, tuple[int, ...]]:
    """Shape of every weight of a nano by its name; takes no memory for them.

    Raises:
        SetupError: when configuration and tokenizer are not of one model.
    """
    with torch.device("meta"):
        vlm, expert = _networks(config, tokenizer)
    parts = nn.ModuleDict({"vlm": vlm, "expert": expert})
    return {name: tuple(weight.shape) for name, weight in parts.named_parameters()}


def _networks(config: NanoConfig, tokenizer: NanoTokenizer) -> tuple[Qwen3VLForConditionalGeneration, ActionExpert]:
    if config.vocab_size != tokenizer.size:
        msg = f"config.json: vocab_size is {config.vocab_size}, but tokenizer.json has {tokenizer.size} tokens"
        raise SetupError(msg)
    image, start, end = (tokenizer.special(token) for token in (tok.IMAGE_PAD, tok.VISION_START, tok.VISION_END))
    return Qwen3VLForConditionalGeneration(vlm_config(config, image, start, end)), ActionExpert(config)


def _start_history_embeddings(embedding: nn.Embedding, ids: range) -> None:
    """Fourier features of the bin's place in the range, scaled like the other embeddings."""
    weight = embedding.weight
    steps = weight.shape[1] // 2
    frequencies = torch.logspace(math.log10(0.25), math.log10(HISTORY_MAX_FREQUENCY), steps) * 2.0 * math.pi
    angle = torch.arange(len(ids))[:, None] / len(ids) * frequencies
    features = torch.cat([angle.sin(), angle.cos()], dim=1) * math.sqrt(2.0)
    with torch.no_grad():
        scale = weight.std()
        weight[ids.start : ids.stop] = features * scale
