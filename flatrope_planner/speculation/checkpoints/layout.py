"""What a layout is: the meaning of a configuration, and the names of the weights."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.checkpoints.fields import Fields
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.medusa import MedusaConfig, MedusaHeads

Draft = BlockDraft | EagleDraft | MedusaHeads
AnyConfig = BlockDraftConfig | EagleDraftConfig | MedusaConfig


def network_of(config: AnyConfig) -> Draft:
    """A network of these sizes, with random weights."""
    if isinstance(config, BlockDraftConfig):
        return BlockDraft(config)
    return EagleDraft(config) if isinstance(config, EagleDraftConfig) else MedusaHeads(config)


def renamed(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Weights with parts of their names replaced."""
    return {_renamed(name, names): value for name, value in weights.items()}


def _renamed(name: str, names: Mapping[str, str]) -> str:
    for part, other in names.items():
        if part in name:
            return name.replace(part, other)
    return name


class Layout(Protocol):
    """One way to keep one kind of draft."""

    # As the command line calls it.
    name: str

    def read_config(self, fields: Fields, tapped_layers: tuple[int, ...] | None = None) -> AnyConfig:
        """What the configuration means; `tapped_layers` stands in where it does not say them.

        Raises:
            SetupError: when it is wrong, or asks for what our networks do not do.
        """
        ...

    def write_config(self, config: Any, fingerprint: str | None) -> dict[str, Any]:
        """A configuration that `read_config` reads; without a fingerprint it has no section of ours.

        Raises:
            InputError: when the layout cannot say what the draft needs.
        """
        ...

    def stored(self, config: Any, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the layout's names, of weights by the network's names."""
        ...

    def loaded(self, config: Any, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the network's names, of weights by the layout's names.

        Raises:
            ValueError: when they contradict each other.
        """
        ...
