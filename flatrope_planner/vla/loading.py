"""From the name of a target to a planner that is ready to plan."""

from pathlib import Path

from flatrope_planner.errors import InputError
from flatrope_planner.planning.planner import Planner
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget

NANO = "nano"

NanoPlanner = Planner[NanoPrompt, NanoState]


def load_planner(target: str, weights: Path | None) -> NanoPlanner:
    """A planner with this target; `weights` is the folder of its weights, None for those of the package.

    Raises:
        InputError: for an unknown target.
        SetupError: when weights are missing or do not fit.
    """
    if target != NANO:
        msg = f"there is no target {target!r}; there is {NANO}"
        raise InputError(msg)
    nano = NanoTarget.load(weights)
    return Planner(nano, Decoder(nano))
