"""Trained drafts on disk: Hugging Face folders in the layouts of others, with a section of our own.

`config.json` says the kind, sizes, tapped layers and, under `flatrope`, the rotary scheme and the target's fingerprint;
`model.safetensors` holds the weights. A draft for another target is refused: it would draft badly and say nothing.
No file of a draft can run: no pickle is read, and no code beside the weights.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.checkpoints.block import BlockLayout
from flatrope_planner.speculation.checkpoints.eagle import EagleLayout
from flatrope_planner.speculation.checkpoints.fields import CONFIG_FILE
from flatrope_planner.speculation.checkpoints.layout import AnyConfig, Draft, Layout, network_of
from flatrope_planner.speculation.checkpoints.medusa import MedusaLayout
from flatrope_planner.speculation.checkpoints.stored import StoredDraft, read_stored, write_stored
from flatrope_planner.speculation.medusa import MedusaConfig


@dataclass(frozen=True)
class DraftCheckpoint:
    """A draft, and the target it belongs to."""

    draft: Draft
    fingerprint: str


@dataclass(frozen=True)
class TargetSizes:
    """What a draft must agree with."""

    hidden: int
    vocab_size: int
    layers: int


def save_draft(directory: Path, draft: Draft, fingerprint: str) -> None:
    """Write a draft of any kind; its weights are rounded to bfloat16."""
    weights = {
        name: value.detach().to("cpu", torch.bfloat16) if value.is_floating_point() else value.cpu()
        for name, value in draft.state_dict().items()
    }
    write_stored(directory, StoredDraft(draft.config, fingerprint, weights), own_layout(draft.config))


def load_draft(directory: Path, fingerprint: str, sizes: TargetSizes | None = None) -> DraftCheckpoint:
    """Read a draft of any kind for the target with this fingerprint and, if given, these sizes.

    Raises:
        SetupError: when there is none, or it is for another target.
    """
    stored = read_stored(directory)
    if stored.fingerprint is None:
        msg = f"{directory / CONFIG_FILE}: no fingerprint of a target; convert it with `flatrope checkpoint convert`"
        raise SetupError(msg)
    if stored.fingerprint != fingerprint:
        msg = f"{directory}: a draft for target {stored.fingerprint}, but the target is {fingerprint}; train one for it"
        raise SetupError(msg)
    if sizes is not None:
        check_sizes(directory, stored.config, sizes)
    draft = network_of(stored.config)
    draft.load_state_dict(
        {name: value.float() if value.is_floating_point() else value for name, value in stored.weights.items()}
    )
    return DraftCheckpoint(draft.eval(), stored.fingerprint)


def check_sizes(directory: Path, config: AnyConfig, sizes: TargetSizes) -> None:
    """Compare a draft with its target.

    Raises:
        SetupError: when they do not fit.
    """
    pairs = [("hidden size", config.hidden, sizes.hidden)]
    if not isinstance(config, MedusaConfig):
        pairs.append(("vocabulary", config.vocab_size, sizes.vocab_size))
    for name, found, expected in pairs:
        if found != expected:
            msg = f"{directory / CONFIG_FILE}: {name} {found}, expected the target's, {expected}"
            raise SetupError(msg)
    if max(config.tapped_layers) >= sizes.layers:
        beyond, last = max(config.tapped_layers), sizes.layers - 1
        msg = f"{directory / CONFIG_FILE}: tapped layer {beyond}, expected 0 to {last}, the target's last"
        raise SetupError(msg)


def own_layout(config: AnyConfig) -> Layout:
    """The layout that a kind of draft is saved in."""
    if isinstance(config, BlockDraftConfig):
        return BlockLayout()
    return MedusaLayout() if isinstance(config, MedusaConfig) else EagleLayout()
