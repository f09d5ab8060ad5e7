"""A draft as its files hold it: sizes, the target's name, weights at the precision they are kept at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.checkpoints import block, eagle, medusa, speculators
from flatrope_planner.speculation.checkpoints.fields import Fields, read_config, write_config
from flatrope_planner.speculation.checkpoints.layout import AnyConfig, Layout, network_of
from flatrope_planner.speculation.checkpoints.sizes import read_fingerprint
from flatrope_planner.speculation.checkpoints.weights import WEIGHTS_FILE, read_weights, write_weights
from flatrope_planner.speculation.medusa import MedusaConfig

EMBEDDINGS, HEAD = "embed_tokens.weight", "lm_head.weight"

# Architecture in `config.json` -> how to read the rest.
LAYOUTS: Mapping[str, Layout] = {
    block.ARCHITECTURE: block.BlockLayout(),
    **dict.fromkeys(eagle.ARCHITECTURES, eagle.EagleLayout()),
    medusa.ARCHITECTURE: medusa.MedusaLayout(),
}


@dataclass(frozen=True)
class StoredDraft:
    """What is in the files."""

    config: AnyConfig
    # The target's; None where the file does not say.
    fingerprint: str | None
    # By the network's names.
    weights: Mapping[str, Tensor]
    # Copies of the target's parts that the file brings along: embeddings and head, by the names below.
    borrowed: Mapping[str, Tensor] = field(default_factory=dict)


def read_stored(directory: Path, tapped_layers: tuple[int, ...] | None = None) -> StoredDraft:
    """Read a draft, whosesoever it is; `tapped_layers` stands in where the files do not say them.

    Raises:
        SetupError: when there is none, or none that can be drafted with.
    """
    fields = read_config(directory)
    layout = layout_of(fields)
    config = layout.read_config(fields, tapped_layers)
    with torch.device("meta"):
        wanted = layout.stored(config, network_of(config).state_dict())
    copies = _copies(config, wanted)
    found = read_weights(directory, wanted, copies)
    borrowed = {name: found.pop(name) for name in copies if name in found}
    try:
        return StoredDraft(config, read_fingerprint(fields), layout.loaded(config, found), borrowed)
    except ValueError as err:
        msg = f"{directory / WEIGHTS_FILE}: {err}; expected what config.json says"
        raise SetupError(msg) from err


def write_stored(directory: Path, draft: StoredDraft, layout: Layout) -> None:
    """Write a draft; weights stay at their precision.

    Raises:
        InputError: when the layout cannot say what the draft needs.
        SetupError: when it cannot be written.
    """
    content = layout.write_config(draft.config, draft.fingerprint)
    # A configuration without weights would be taken for another model's, and not be replaced.
    write_weights(directory, {**layout.stored(draft.config, draft.weights), **draft.borrowed})
    write_config(directory, content)


def _copies(config: AnyConfig, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parts of the target that a file may bring along."""
    if isinstance(config, MedusaConfig):
        return {}
    table = torch.empty(config.vocab_size, config.hidden, device="meta")
    return {name: table for name in (EMBEDDINGS, HEAD) if name not in wanted}


def layout_of(fields: Fields) -> Layout:
    """The layout a configuration is in.

    Raises:
        SetupError: when it is none of ours.
    """
    if fields.has(speculators.KIND):
        return speculators.SpeculatorsLayout()
    for architecture in fields.texts("architectures"):
        if architecture in LAYOUTS:
            return LAYOUTS[architecture]
    return fields.refuse("architectures", " or ".join(LAYOUTS))
