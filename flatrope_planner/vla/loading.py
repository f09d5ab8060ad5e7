"""From the name of a target to a planner that is ready to plan."""

from pathlib import Path

from flatrope_planner.errors import FlatropeError
from flatrope_planner.planning.planner import Planner
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions, new_drafter, retrieval_of
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Running, VlaTarget
from flatrope_planner.vla.targets import NANO, find_target, load_target

__all__ = ["NANO", "VlaPlanner", "load_planner", "load_planner_and_twin", "planner_with"]

VlaPlanner = Planner[VlaPrompt, VlaState]


def load_planner(
    target: str, speculation: SpeculationOptions | None = None, running: Running | None = None
) -> VlaPlanner:
    """A planner with this target; with a draft that cannot be used it plans all the same, and `health` says why.

    Args:
        target: nano, the folder of a checkpoint, or the Hugging Face id of one in the local cache.
        speculation: how it speculates; None: as well as it can with what lies beside the target's weights.
        running: cameras, precision and device.

    Raises:
        InputError: for an unknown target, or one that cannot be run as asked.
        SetupError: when weights are missing or do not fit.
    """
    folder = find_target(target)
    return planner_with(load_target(folder, running=running), folder, speculation)


def load_planner_and_twin(
    target: str, speculation: SpeculationOptions, running: Running | None = None
) -> tuple[VlaPlanner, VlaPlanner]:
    """A planner as `load_planner` makes it, and one that writes alone; they share the network, not what they have seen.

    Args:
        target: as for `load_planner`.
        speculation: how the first of them speculates.
        running: as for `load_planner`.

    Raises:
        InputError: as `load_planner`.
        SetupError: as `load_planner`.
    """
    folder = find_target(target)
    loaded = load_target(folder, running=running)
    planner = planner_with(loaded, folder, speculation)
    # Of its own: pictures that one has encoded would cost the other nothing.
    alone = loaded.tapping(())
    return planner, planner_with(alone, folder, SpeculationOptions(DrafterKind.NONE, nodes=speculation.nodes))


def planner_with(target: VlaTarget, folder: Path | None, speculation: SpeculationOptions | None = None) -> VlaPlanner:
    """A planner with a target that is loaded, as `load_planner` makes it; `folder` is where its weights lie."""
    options = speculation or SpeculationOptions()
    tapping, drafter, problem = _drafting(options, target, folder)
    return Planner(tapping, Reasoner(tapping, drafter, options.nodes + 1, options.exactness, problem))


def _drafting(options: SpeculationOptions, target: VlaTarget, weights: Path | None) -> tuple[VlaTarget, Drafter, str]:
    """Target, drafter, and what is wrong with the one that was asked for."""
    try:
        return *new_drafter(options, target, weights), ""
    except FlatropeError as err:
        return target, *_without_network(options, target, weights, str(err))


def _without_network(
    options: SpeculationOptions, target: VlaTarget, weights: Path | None, complaint: str
) -> tuple[Drafter, str]:
    """Who drafts where the drafter that was asked for cannot, and why: of a hybrid, the half that needs no training."""
    if options.drafter is DrafterKind.HYBRID:
        try:
            return retrieval_of(target, weights, Shape.TREE), f"earlier texts draft alone: {complaint}"
        except FlatropeError as err:
            # Of two faults one would hide the other.
            complaint = complaint if str(err) == complaint else f"{complaint}; {err}"
    return NoDrafter(), f"the target writes alone: {complaint}"
