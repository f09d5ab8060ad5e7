"""Medusa heads: a layout of our own, as published ones keep a copy of the target's head for each place."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.checkpoints.fields import Fields
from flatrope_planner.speculation.checkpoints.sizes import LAYER_IDS, MAX_TAPS, OURS, WIDTHS
from flatrope_planner.speculation.medusa import MedusaConfig

ARCHITECTURE = "FlatropeMedusaHeads"
HEADS = range(1, 65)


class MedusaLayout:
    """Our own names."""

    name = "medusa"

    def read_config(self, fields: Fields, tapped_layers: tuple[int, ...] | None = None) -> MedusaConfig:
        """See `Layout`."""
        del tapped_layers
        own = fields.section(OURS)
        return MedusaConfig(
            hidden=fields.integer("hidden_size", WIDTHS),
            tapped_layers=own.integers("tapped_layers", LAYER_IDS, MAX_TAPS),
            heads=fields.integer("num_heads", HEADS),
        )

    def write_config(self, config: MedusaConfig, fingerprint: str | None) -> dict[str, Any]:
        """See `Layout`."""
        if fingerprint is None:
            msg = "Medusa heads have no layout but flatrope's"
            raise InputError(msg)
        return {
            "architectures": [ARCHITECTURE],
            "model_type": "medusa",
            "hidden_size": config.hidden,
            "num_heads": config.heads,
            OURS: {"target": fingerprint, "tapped_layers": list(config.tapped_layers)},
        }

    def stored(self, config: MedusaConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        del config
        return dict(weights)

    def loaded(self, config: MedusaConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Layout`."""
        del config
        return dict(weights)
