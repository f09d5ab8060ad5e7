"""Block and EAGLE-3 drafts in the layout of vLLM's speculators.

It counts tapped layers from the embeddings on, so its ids are ours plus one. The layer's configuration stands in a
section of its own, which leaves out what is the default of its model type.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, Qwen3Config

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.checkpoints.block import BLOCKS, LAYERS, BlockLayout, refuse_additions
from flatrope_planner.speculation.checkpoints.eagle import EagleLayout
from flatrope_planner.speculation.checkpoints.fields import Fields
from flatrope_planner.speculation.checkpoints.layout import renamed
from flatrope_planner.speculation.checkpoints.sizes import LAYER_IDS, MAX_TAPS, read_sizes, write_sizes
from flatrope_planner.speculation.eagle_draft import EagleDraftConfig
from flatrope_planner.speculation.rotary import RotaryScheme

KIND, DFLASH, EAGLE3 = "speculators_model_type", "dflash", "eagle3"
LAYER = "transformer_layer_config"
DFLASH_TAPPED, EAGLE_TAPPED = "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids"
# Added to our ids of tapped layers.
SHIFT = 1
_LEFT_OUT = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "rms_norm_eps",
)
_NAMES = {"midlayer.": "layers.0.", "feature_norms.": "fc_norm."}
_VOCABULARY = ("d2t", "t2d")


class SpeculatorsLayout:
    """The names of speculators."""

    name = "speculators"

    def read_config(
        self, fields: Fields, tapped_layers: tuple[int, ...] | None = None
    ) -> BlockDraftConfig | EagleDraftConfig:
        """See `Layout`."""
        fields.only(KIND, DFLASH, EAGLE3)
        block = fields.text(KIND) == DFLASH
        layer = _layer(fields, Qwen3Config() if block else LlamaConfig())
        sizes = read_sizes(layer, _tapped_layers(fields, DFLASH_TAPPED if block else EAGLE_TAPPED, tapped_layers))
        if sizes["scheme"] is not RotaryScheme.FLAT:
            layer.refuse("rope_scaling", "no sections: this layout counts in a line")
        fields.only("target_hidden_size", None, sizes["hidden"])
        return _read_block(fields, layer, sizes) if block else _read_eagle(fields, layer, sizes)

    def write_config(self, config: BlockDraftConfig | EagleDraftConfig, fingerprint: str | None) -> dict[str, Any]:
        """See `Layout`."""
        del fingerprint
        taps = [layer + SHIFT for layer in config.tapped_layers]
        if isinstance(config, BlockDraftConfig):
            refuse_additions(config, self.name)
            own = {
                "architectures": ["DFlashSpeculator"],
                LAYER: {"model_type": "qwen3", **write_sizes(config), "num_hidden_layers": config.layers},
                "draft_vocab_size": config.vocab_size,
                "block_size": config.block_size,
                DFLASH_TAPPED: taps,
                "mask_token_id": config.mask_token,
                "sample_from_anchor": False,
            }
            return {**own, **_algorithm(DFLASH, config.block_size - 1)}
        _refuse_eagle(config)
        own = {
            "architectures": ["Eagle3Speculator"],
            LAYER: {"model_type": "llama", **write_sizes(config), "num_hidden_layers": 1},
            "draft_vocab_size": config.own_vocab_size,
            EAGLE_TAPPED: taps,
            "fc_norm": config.feature_norm,
        }
        return {**own, **_algorithm(EAGLE3, 3)}

    def stored(self, config: BlockDraftConfig | EagleDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        if isinstance(config, BlockDraftConfig):
            return BlockLayout().stored(config, weights)
        found = renamed(EagleLayout().stored(config, weights), _NAMES)
        # A head over the whole vocabulary needs no map.
        whole = config.own_vocab_size == config.vocab_size
        return {name: value for name, value in found.items() if not (whole and name in _VOCABULARY)}

    def loaded(self, config: BlockDraftConfig | EagleDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        if isinstance(config, BlockDraftConfig):
            return BlockLayout().loaded(config, weights)
        whole = {}
        if config.own_vocab_size == config.vocab_size:
            size = config.vocab_size
            whole = {"d2t": torch.zeros(size, dtype=torch.int64), "t2d": torch.ones(size, dtype=torch.bool)}
        back = {theirs: ours for ours, theirs in _NAMES.items()}
        return EagleLayout().loaded(config, {**renamed(weights, back), **whole})


def _layer(fields: Fields, plain: Qwen3Config | LlamaConfig) -> Fields:
    """The section about the layer, what it leaves out filled in."""
    section = fields.section(LAYER)
    section.only("model_type", plain.model_type)
    defaults = {name: getattr(plain, name) for name in _LEFT_OUT}
    if isinstance(plain, Qwen3Config):
        return section.over({**defaults, "head_dim": plain.head_dim})
    # Llama has as many heads for keys as for queries, unless it is said.
    heads = section.over(defaults).integer("num_attention_heads", range(1, 257))
    return section.over({**defaults, "num_key_value_heads": heads})


def _tapped_layers(fields: Fields, name: str, given: tuple[int, ...] | None) -> tuple[int, ...]:
    if fields.has(name) or given is None:
        ids = fields.integers(name, range(SHIFT, LAYER_IDS.stop + SHIFT), MAX_TAPS)
        return tuple(each - SHIFT for each in ids)
    return given


def _read_block(fields: Fields, layer: Fields, sizes: dict[str, Any]) -> BlockDraftConfig:
    fields.only("sample_from_anchor", None, False)
    # A block draft borrows the target's head, all of it.
    fields.only("draft_vocab_size", sizes["vocab_size"])
    return BlockDraftConfig(
        **sizes,
        block_size=fields.integer("block_size", BLOCKS, 8),
        layers=layer.integer("num_hidden_layers", LAYERS),
        feature_norm=False,
        predecessor_rank=0,
        mask_token=fields.integer("mask_token_id", range(sizes["vocab_size"])),
    )


def _read_eagle(fields: Fields, layer: Fields, sizes: dict[str, Any]) -> EagleDraftConfig:
    layer.only("num_hidden_layers", 1)
    for name in ("norm_before_residual", "norm_before_fc", "norm_output"):
        fields.only(name, None, False)
    known = range(1, sizes["vocab_size"] + 1)
    return EagleDraftConfig(
        **sizes,
        feature_norm=fields.flag("fc_norm", default=False),
        own_vocab_size=fields.integer("draft_vocab_size", known, 32_000),
    )


def _refuse_eagle(config: EagleDraftConfig) -> None:
    for problem, there in (("M-RoPE", config.mrope_section), ("no head of its own", config.own_vocab_size is None)):
        if there:
            msg = f"the draft has {problem}, which the layout speculators cannot say; keep it in flatrope's"
            raise InputError(msg)


def _algorithm(kind: str, tokens: int) -> dict[str, Any]:
    greedy = {"proposal_type": "greedy", "speculative_tokens": tokens}
    return {
        KIND: kind,
        "speculators_config": {
            "algorithm": kind,
            "proposal_methods": [greedy],
            "default_proposal_method": "greedy",
            # Whoever serves the draft names the target.
            "verifier": {"name_or_path": None, "architectures": []},
        },
    }
