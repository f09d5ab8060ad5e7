"""Trained drafts on disk: a Hugging Face folder in z-lab's DFlash layout, with a section of our own.

`config.json` says sizes, tapped layers and, under `flatrope`, the rotary scheme and the target's fingerprint;
`model.safetensors` holds the weights. A draft for another target is refused: it would draft badly and say nothing.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.rotary import RotaryScheme

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
ARCHITECTURE = "DFlashDraftModel"
# z-lab's name for the attention of a layer, and ours; and the parts of a feed-forward block, which it nests.
_RENAMED = {".attention.": ".self_attn.", **{f".{part}_proj.": f".mlp.{part}_proj." for part in ("gate", "up", "down")}}


@dataclass(frozen=True)
class DraftCheckpoint:
    """A draft, and the target it belongs to."""

    draft: BlockDraft
    fingerprint: str


def save_draft(directory: Path, draft: BlockDraft, fingerprint: str) -> None:
    """Write a draft; its weights are rounded to bfloat16."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONFIG_FILE).write_text(
        json.dumps(_config_of(draft.config, fingerprint), indent=1) + "\n", encoding="utf-8"
    )
    weights = {_stored_name(name): value.detach().to(torch.bfloat16) for name, value in draft.named_parameters()}
    save_file(weights, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    # safetensors leaves the file readable to its owner alone.
    (directory / WEIGHTS_FILE).chmod(0o644)


def load_draft(directory: Path, fingerprint: str) -> DraftCheckpoint:
    """Read a draft for the target with this fingerprint.

    Raises:
        SetupError: when there is none, or it is for another target.
    """
    config, belongs_to = _read_config(directory)
    if belongs_to != fingerprint:
        msg = f"{directory}: a draft for target {belongs_to}, but the target is {fingerprint}; train one for it"
        raise SetupError(msg)
    draft = BlockDraft(config)
    try:
        stored = load_file(directory / WEIGHTS_FILE)
    except (OSError, SafetensorError) as err:
        msg = f"{directory / WEIGHTS_FILE}: no weights of a draft ({err})"
        raise SetupError(msg) from err
    wanted = {_stored_name(name): name for name, _ in draft.named_parameters()}
    shapes = {_stored_name(name): value.shape for name, value in draft.named_parameters()}
    if shapes != {name: value.shape for name, value in stored.items()}:
        msg = f"{directory / WEIGHTS_FILE}: weights do not fit the configuration beside them"
        raise SetupError(msg)
    draft.load_state_dict({wanted[name]: value.float() for name, value in stored.items()}, strict=False)
    return DraftCheckpoint(draft.eval(), belongs_to)


def _stored_name(name: str) -> str:
    for ours, theirs in _RENAMED.items():
        name = name.replace(ours, theirs)
    return name


def _config_of(config: BlockDraftConfig, fingerprint: str) -> dict[str, Any]:
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "qwen3",
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab_size,
        "block_size": config.block_size,
        "rope_theta": config.theta,
        # The draft's own positions; never taken from the target.
        "rope_scaling": {"mrope_section": list(config.mrope_section)} if config.mrope_section else None,
        "dflash_config": {"target_layer_ids": list(config.tapped_layers), "mask_token_id": None},
        "flatrope": {
            "scheme": config.scheme.value,
            "target": fingerprint,
            "feature_norm": True,
            "predecessor_rank": config.predecessor_rank,
        },
    }


def _read_config(directory: Path) -> tuple[BlockDraftConfig, str]:
    path = directory / CONFIG_FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ours, scaling = content["flatrope"], content["rope_scaling"]
        config = BlockDraftConfig(
            hidden=content["hidden_size"],
            vocab_size=content["vocab_size"],
            tapped_layers=tuple(content["dflash_config"]["target_layer_ids"]),
            block_size=content["block_size"],
            layers=content["num_hidden_layers"],
            heads=content["num_attention_heads"],
            kv_heads=content["num_key_value_heads"],
            head_dim=content["head_dim"],
            intermediate=content["intermediate_size"],
            scheme=RotaryScheme(ours["scheme"]),
            theta=content["rope_theta"],
            mrope_section=tuple(scaling["mrope_section"]) if scaling else None,
            predecessor_rank=ours["predecessor_rank"],
        )
        return config, str(ours["target"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        msg = f"{path}: no configuration of a draft ({err!r}); train one with `flatrope train draft`"
        raise SetupError(msg) from err
