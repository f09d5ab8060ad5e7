"""EAGLE-3 drafts in the layout of SafeAILab, SGLang and SpecForge: as published, or with a section of our own.

A published draft has a head of its own over part of the vocabulary: `d2t` says how far the target's id of each of its
tokens is from its place, `t2d` which of the target's tokens it knows.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.checkpoints.fields import Fields
from flatrope_planner.speculation.checkpoints.layout import renamed
from flatrope_planner.speculation.checkpoints.sizes import (
    LAYER_IDS,
    MAX_TAPS,
    OURS,
    VOCABULARIES,
    read_sizes,
    write_sizes,
)
from flatrope_planner.speculation.eagle_draft import EagleDraftConfig

ARCHITECTURE = "LlamaForCausalLMEagle3"
# SGLang's and SpecForge's, vLLM's, SafeAILab's.
ARCHITECTURES = (ARCHITECTURE, "Eagle3LlamaForCausalLM", "LlamaForCausalLM")
# What newer writers may ask for, and our layer does not do.
NOT_DONE = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")
SECTION = "eagle_config"
TAPPED = "eagle_aux_hidden_state_layer_ids"
# First parts of our names, and where they stand in the published ones.
_PARTS = {
    **{part: f"midlayer.{part}" for part in ("input_layernorm", "hidden_norm", "post_attention_layernorm")},
    **{f"{part}_proj": f"midlayer.self_attn.{part}_proj" for part in ("q", "k", "v", "o")},
    **{f"{part}_proj": f"midlayer.mlp.{part}_proj" for part in ("gate", "up", "down")},
    "own_head": "lm_head",
}
_KNOWN = "t2d"


class EagleLayout:
    """SGLang's names."""

    name = "eagle3"

    def read_config(self, fields: Fields, tapped_layers: tuple[int, ...] | None = None) -> EagleDraftConfig:
        """See `Layout`."""
        own = fields.section(OURS) if fields.has(OURS) else None
        if own is None:
            # What tells a draft from an ordinary model of the same architecture.
            fields.integer("draft_vocab_size", VOCABULARIES)
        fields.only("num_hidden_layers", None, 1)
        sizes = read_sizes(fields, _tapped_layers(fields, tapped_layers))
        fields.only("target_hidden_size", None, sizes["hidden"])
        for name in NOT_DONE:
            fields.only(name, None, False)
        borrowed = own is not None and not fields.has("draft_vocab_size")
        known = range(1, sizes["vocab_size"] + 1)
        return EagleDraftConfig(
            **sizes,
            feature_norm=own.flag("feature_norm") if own else False,
            own_vocab_size=None if borrowed else fields.integer("draft_vocab_size", known),
        )

    def write_config(self, config: EagleDraftConfig, fingerprint: str | None) -> dict[str, Any]:
        """See `Layout`."""
        content = {
            "architectures": [ARCHITECTURE],
            "model_type": "llama",
            **write_sizes(config),
            "num_hidden_layers": 1,
            "draft_vocab_size": config.own_vocab_size,
            SECTION: {TAPPED: list(config.tapped_layers)},
        }
        if fingerprint is not None:
            own = {"scheme": config.scheme.value, "target": fingerprint, "feature_norm": config.feature_norm}
            return {**content, OURS: own}
        for addition, there in (("norms of single taps", config.feature_norm), ("no head", not config.own_vocab_size)):
            if there:
                msg = f"the draft has {addition}, which the layout {self.name} cannot say; keep it in flatrope's"
                raise InputError(msg)
        return content

    def stored(self, config: EagleDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        found = renamed(weights, {f"{ours}.": f"{theirs}." for ours, theirs in _PARTS.items()})
        if config.own_vocab_size is None:
            return found
        offset = found.pop("own_offset")
        return {**found, "d2t": offset, _KNOWN: known_tokens(config, offset)}

    def loaded(self, config: EagleDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        found = renamed(weights, {f"{theirs}.": f"{ours}." for ours, theirs in _PARTS.items()})
        if config.own_vocab_size is None:
            return found
        offset, known = found.pop("d2t"), found.pop(_KNOWN)
        if not torch.equal(known, known_tokens(config, offset)):
            msg = "t2d does not mark the tokens that d2t leads to"
            raise ValueError(msg)
        return {**found, "own_offset": offset}


def known_tokens(config: EagleDraftConfig, offset: Tensor) -> Tensor:
    """Which of the target's tokens the draft's own head knows, bool (vocabulary,).

    Raises:
        ValueError: when one is not the target's, or is there twice.
    """
    ids = offset + torch.arange(len(offset), device=offset.device)
    known = torch.zeros(config.vocab_size, dtype=torch.bool, device=offset.device)
    if offset.is_meta:
        return known
    within = int(ids.min()) >= 0 and int(ids.max()) < config.vocab_size
    if within:
        known[ids] = True
    if not within or int(known.sum()) < len(ids):
        msg = f"d2t leads to tokens outside 0 to {config.vocab_size - 1}, or to one twice"
        raise ValueError(msg)
    return known


def _tapped_layers(fields: Fields, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Of the file; what the command line says stands in where the file is silent. Never guessed."""
    section = fields.section(SECTION) if fields.has(SECTION) else fields
    if section.has(TAPPED):
        return section.integers(TAPPED, LAYER_IDS, MAX_TAPS)
    if given is None:
        section.refuse(TAPPED, "the tapped layers: name them with --tapped-layers")
    return given
