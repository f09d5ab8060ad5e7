"""Finished weights as they ship: safetensors, configuration, tokenizer, model card."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from flatrope_planner.speculation.checkpoints.weights import write_tensors
from flatrope_planner.training.model_card import model_card
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.nano import WEIGHTS_FILE
from flatrope_planner.vla.tokenizer import NanoTokenizer

CARD_FILE = "README.md"


def export(
    directory: Path,
    weights: Mapping[str, Tensor],
    config: NanoConfig,
    tokenizer: NanoTokenizer,
    facts: Mapping[str, object],
) -> None:
    """Write all files of a model; weights are rounded to bfloat16 and computed with in float32."""
    directory.mkdir(parents=True, exist_ok=True)
    config.save(directory)
    tokenizer.save(directory)
    rounded = {name: value.to(torch.bfloat16).contiguous() for name, value in weights.items()}
    write_tensors(directory / WEIGHTS_FILE, rounded)
    parameters = sum(value.numel() for value in weights.values())
    (directory / CARD_FILE).write_text(model_card(config, parameters, facts), encoding="utf-8")
