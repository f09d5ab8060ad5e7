"""From the name of a target to a planner that is ready to plan."""

from pathlib import Path

from flatrope_planner.errors import FlatropeError, InputError
from flatrope_planner.planning.planner import Planner
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.vla.drafting import SpeculationOptions, new_drafter
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Running, VlaTarget
from flatrope_planner.vla.targets import NANO, find_target, load_target

__all__ = ["NANO", "VlaPlanner", "load_planner"]

VlaPlanner = Planner[VlaPrompt, VlaState]


def load_planner(
    target: str, weights: Path | None, speculation: SpeculationOptions | None = None, running: Running | None = None
) -> VlaPlanner:
    """A planner with this target; with a draft that cannot be used it plans all the same, and `health` says why.

    Args:
        target: nano, the folder of a checkpoint, or the Hugging Face id of one in the local cache.
        weights: folder of other weights for nano; None: those of the package.
        speculation: how it speculates; None: as well as it can with what lies beside the weights.
        running: cameras, precision and device.

    Raises:
        InputError: for an unknown target, or one that cannot be run as asked.
        SetupError: when weights are missing or do not fit.
    """
    folder = find_target(target)
    if folder is not None and weights is not None:
        msg = f"weights is {str(weights)!r}, expected none: the target {target} is a checkpoint itself"
        raise InputError(msg)
    folder = folder or weights
    loaded = load_target(folder, running=running)
    options = speculation or SpeculationOptions()
    tapping, drafter, problem = _drafting(options, loaded, folder)
    return Planner(tapping, Reasoner(tapping, drafter, options.nodes + 1, options.exactness, problem))


def _drafting(options: SpeculationOptions, target: VlaTarget, weights: Path | None) -> tuple[VlaTarget, Drafter, str]:
    """Target, drafter, and what is wrong with the one that was asked for."""
    try:
        return *new_drafter(options, target, weights), ""
    except FlatropeError as err:
        return target, NoDrafter(), f"the target writes alone: {err}"
