"""Block drafts in z-lab's DFlash layout: as published, or with a section of our own.

Without the section there are no norms of single taps and no predecessor term, and a token of the target stands for the
places to be guessed.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.block_draft import BlockDraftConfig
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

ARCHITECTURE = "DFlashDraftModel"
SECTION = "dflash_config"
BLOCKS, LAYERS, RANKS, CONTEXTS = range(2, 257), range(1, 65), range(4097), range(1_000_001)
# Our names of a layer's attention and feed-forward parts, and z-lab's.
_PARTS = {".attention.": ".self_attn.", **{f".{part}_proj.": f".mlp.{part}_proj." for part in ("gate", "up", "down")}}
# What DFlash2 adds to a layer and to the choice of tokens.
_SECOND_GENERATION = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")


class BlockLayout:
    """z-lab's names."""

    name = "z-lab"

    def __init__(self, target_layers: int | None = None) -> None:
        """Layout for a target with so many layers: z-lab's own loader wants to know, and fails where it is not said."""
        self._target_layers = target_layers

    def read_config(self, fields: Fields, tapped_layers: tuple[int, ...] | None = None) -> BlockDraftConfig:
        """See `Layout`."""
        section = fields.section(SECTION)
        if section.has("target_layer_ids") or tapped_layers is None:
            tapped_layers = section.integers("target_layer_ids", LAYER_IDS, MAX_TAPS)
        own = fields.section(OURS) if fields.has(OURS) else None
        for part in (fields, section):
            for name in _SECOND_GENERATION:
                part.only(name, None, 0)
        sizes = read_sizes(fields, tapped_layers)
        # Newer writers keep it with the rest of what is DFlash's own.
        block = fields if fields.has("block_size") else section
        return BlockDraftConfig(
            **sizes,
            block_size=block.integer("block_size", BLOCKS),
            layers=fields.integer("num_hidden_layers", LAYERS),
            feature_norm=own.flag("feature_norm", default=True) if own else False,
            predecessor_rank=own.integer("predecessor_rank", RANKS) if own else 0,
            mask_token=_mask_token(section, sizes["vocab_size"], own),
            # 0 for all of the prompt.
            context_tokens=(own.integer("context_tokens", CONTEXTS, 0) or None) if own else None,
        )

    def write_config(self, config: BlockDraftConfig, fingerprint: str | None) -> dict[str, Any]:
        """See `Layout`."""
        content = {
            "architectures": [ARCHITECTURE],
            "model_type": "qwen3",
            **write_sizes(config),
            "num_hidden_layers": config.layers,
            "block_size": config.block_size,
            SECTION: {"target_layer_ids": list(config.tapped_layers), "mask_token_id": config.mask_token},
        }
        if fingerprint is None:
            refuse_additions(config, self.name)
            return {**content, "num_target_layers": self._target_layers}
        own = {
            "scheme": config.scheme.value,
            "target": fingerprint,
            "feature_norm": config.feature_norm,
            "predecessor_rank": config.predecessor_rank,
            "context_tokens": config.context_tokens or 0,
        }
        return {**content, OURS: own}

    def stored(self, config: BlockDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        del config
        return renamed(weights, _PARTS)

    def loaded(self, config: BlockDraftConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        del config
        return renamed(weights, {theirs: ours for ours, theirs in _PARTS.items()})


def refuse_additions(config: BlockDraftConfig, layout: str) -> None:
    """Refuse what only our own layout can say.

    Raises:
        InputError: when the draft has any of it.
    """
    additions = {
        "norms of single taps": config.feature_norm,
        "a predecessor term": config.predecessor_rank,
        "a mask embedding of its own": config.mask_token is None,
        "M-RoPE": config.mrope_section,
        "a window on the prompt": config.context_tokens,
    }
    for addition, there in additions.items():
        if there:
            msg = f"the draft has {addition}, which the layout {layout} cannot say; keep it in flatrope's"
            raise InputError(msg)


def _mask_token(section: Fields, vocab_size: int, own: Fields | None) -> int | None:
    if own is not None and not section.has("mask_token_id"):
        return None
    return section.integer("mask_token_id", range(min(vocab_size, VOCABULARIES.stop)))
