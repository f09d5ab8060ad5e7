"""The network of a checkpoint, whichever transformers has saved it."""

from pathlib import Path

import torch
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.checkpoint.weights import Naming, load_weights, new_network

# Beginnings of names as older versions of transformers have written them, and write them still.
RENAMED = {
    "visual.": "model.visual.",
    "model.embed_tokens.": "model.language_model.embed_tokens.",
    "model.layers.": "model.language_model.layers.",
    "model.norm.": "model.language_model.norm.",
}
HEAD = "lm_head.weight"


def to_model(name: str) -> str:
    """The network's own name for a weight of a file."""
    for old, new in RENAMED.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def load_vlm(
    checkpoint: Path, config: Qwen2_5_VLConfig, precision: torch.dtype, device: torch.device
) -> Qwen2_5_VLForConditionalGeneration:
    """Read the weights; a network whose head is its embeddings need not have it in its files.

    Raises:
        SetupError: when no network can be made of the configuration; else see `checkpoint.weights.load_weights`.
    """
    described = f"{checkpoint / CONFIG_FILE}: no network can be made of it"
    vlm = new_network(lambda: Qwen2_5_VLForConditionalGeneration(config), described)
    optional = frozenset({HEAD} if config.tie_word_embeddings else ())
    load_weights(vlm, checkpoint, precision, device, Naming(to_model, optional))
    if config.tie_word_embeddings:
        vlm.lm_head.weight = vlm.get_input_embeddings().weight
    return vlm
