"""All weights of an Alpamayo, under the names that they have in its checkpoints."""

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLTextConfig

from flatrope_planner.dimensions import ACTION_SIZE
from flatrope_planner.vla.alpamayo.action_space import ActionSpace
from flatrope_planner.vla.alpamayo.config import AlpamayoConfig
from flatrope_planner.vla.alpamayo.expert import ActionEmbedding, new_trunk
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.checkpoint.weights import Naming, load_weights, new_network
from flatrope_planner.vla.expert import run_expert
from flatrope_planner.vla.flow_target import Memory

HEAD = "vlm.lm_head.weight"


class AlpamayoModel(nn.Module):
    """A Qwen3-VL and the action expert that reads its keys and values."""

    def __init__(self, config: AlpamayoConfig, vlm: Qwen3VLConfig, expert: Qwen3VLTextConfig) -> None:
        """Random weights."""
        super().__init__()
        self.vlm = Qwen3VLForConditionalGeneration(vlm)
        self.expert = new_trunk(expert)
        self.action_in_proj = ActionEmbedding(config.embedding, expert.hidden_size)
        self.action_out_proj = nn.Linear(expert.hidden_size, ACTION_SIZE, bias=config.output_bias)
        self.action_space = ActionSpace(config.action)
        # Of the weights before they were quantised; "" where they never were.
        self.fingerprint = ""

    def velocity(self, action: Tensor, time: Tensor, seen: Memory) -> Tensor:
        """Velocity (S, 64, 2) of the flow at noisy actions (S, 64, 2) and times (S,)."""
        embedded = self.action_in_proj(action, time)
        hidden = run_expert(self.expert, embedded, seen.memory, seen.offset, seen.rope_delta)
        velocity: Tensor = self.action_out_proj(hidden)
        return velocity


def load_model(
    checkpoint: Path,
    sizes: tuple[AlpamayoConfig, Qwen3VLConfig, Qwen3VLTextConfig],
    precision: torch.dtype,
    device: torch.device,
) -> AlpamayoModel:
    """Read the weights; where head and embeddings are one in the backbone's configuration, files need not have both.

    Args:
        checkpoint: folder of the weights.
        sizes: configuration of checkpoint, backbone and expert.
        precision: to compute with.
        device: to compute on.

    Raises:
        SetupError: when no network can be made of the configuration; else see `checkpoint.weights.load_weights`.
    """
    described = f"{checkpoint / CONFIG_FILE}: no network can be made of it and its backbone's"
    model = new_network(lambda: AlpamayoModel(*sizes), described)
    _, vlm, _ = sizes
    load_weights(
        model, checkpoint, precision, device, Naming(optional=frozenset({HEAD} if vlm.tie_word_embeddings else ()))
    )
    head = model.vlm.lm_head
    if head.weight.is_meta:
        head.weight = model.vlm.get_input_embeddings().weight
    return model
