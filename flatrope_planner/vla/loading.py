"""From the name of a target to a planner that is ready to plan."""

from pathlib import Path

from flatrope_planner.errors import FlatropeError, InputError
from flatrope_planner.planning.planner import Planner
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.vla.drafting import SpeculationOptions, new_drafter
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget

NANO = "nano"

NanoPlanner = Planner[NanoPrompt, NanoState]


def load_planner(target: str, weights: Path | None, speculation: SpeculationOptions | None = None) -> NanoPlanner:
    """A planner with this target; with a draft that cannot be used it plans all the same, and `health` says why.

    Args:
        target: its name.
        weights: folder of its weights; None: those of the package.
        speculation: how it speculates; None: as well as it can with what lies beside the weights.

    Raises:
        InputError: for an unknown target.
        SetupError: when weights are missing or do not fit.
    """
    if target != NANO:
        msg = f"there is no target {target!r}; there is {NANO}"
        raise InputError(msg)
    nano = NanoTarget.load(weights)
    options = speculation or SpeculationOptions()
    tapping, drafter, problem = _drafting(options, nano, weights)
    return Planner(tapping, Reasoner(tapping, drafter, options.nodes + 1, options.exactness, problem))


def _drafting(options: SpeculationOptions, nano: NanoTarget, weights: Path | None) -> tuple[NanoTarget, Drafter, str]:
    """Target, drafter, and what is wrong with the one that was asked for."""
    try:
        return *new_drafter(options, nano, weights), ""
    except FlatropeError as err:
        return nano, NoDrafter(), f"the target writes alone: {err}"
