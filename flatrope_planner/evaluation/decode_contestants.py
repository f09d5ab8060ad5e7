"""Who takes part in `flatrope bench decode`: every way to propose, each with the width of its blocks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.decode_scores import GENERATE, GENERATE_LOOKUP
from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.hybrid import HybridDrafter
from flatrope_planner.speculation.network_drafter import network_drafter
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.drafting import FLATROPE, draft_of, drafts_beside, retrieval_of
from flatrope_planner.vla.nano import NanoTarget

CHAIN_WIDTH = 8
TREE_NODES = 32
TREE_WIDTH = TREE_NODES + 1

# What the target alone writes, end marks included -> a drafter for this one text.
DrafterFor = Callable[[Sequence[int]], Drafter]


@dataclass(frozen=True)
class Contestant:
    """A drafter and its blocks."""

    drafter_for: DrafterFor
    width: int
    # The target, showing the layers that the drafter wants to see.
    target: NanoTarget
    # Most tokens a block may hold in a row, anchor included.
    reach: int


def contestants(target: NanoTarget, weights: Path | None, extra: Mapping[str, Path]) -> dict[str, Contestant]:
    """All of them by name: `none` first, then those without a network, the trained ones, the rehearsed ones.

    Args:
        target: the target.
        weights: folder of its weights and, beside them, of its drafts; None: those of the package.
        extra: further trained drafts by name.

    Raises:
        InputError: when a further draft has the name of another.
        SetupError: when a draft is broken or for another target.
    """
    retrieval = [retrieval_of(target, weights, shape) for shape in (Shape.CHAIN, Shape.TREE)]
    known: dict[str, Contestant] = {
        "none": _always(NoDrafter(), CHAIN_WIDTH, target, reach=1),
        "prompt-lookup": _always(PromptLookupDrafter(), CHAIN_WIDTH, target),
        "retrieval-chain": _always(retrieval[0], CHAIN_WIDTH, target),
        "retrieval": _always(retrieval[1], TREE_WIDTH, target),
    }
    for name, path in drafts_beside(weights).items():
        known |= _trained(name, path, target, weights)
    rehearsed = _rehearsed(target)
    refuse_taken_names(extra, (*known, *rehearsed))
    for name, path in extra.items():
        known |= _trained(name, path, target, weights)
    return {**known, **rehearsed}


def refuse_taken_names(extra: Iterable[str], known: Iterable[str]) -> None:
    """See to it that a further draft hides nobody that takes part already.

    Raises:
        InputError: for a name that is taken.
    """
    taken = {*known, GENERATE, GENERATE_LOOKUP}
    for name in extra:
        if name in taken:
            msg = f"--draft {name}=...: the name is taken; give a draft one beside {', '.join(sorted(taken))}"
            raise InputError(msg)


def _trained(name: str, folder: Path, target: NanoTarget, weights: Path | None) -> dict[str, Contestant]:
    """A network's chain, and for the one that ships as the default its tree and the hybrid too."""
    draft = draft_of(folder, target)
    width = draft.config.block_size if isinstance(draft, BlockDraft) else CHAIN_WIDTH
    tapping = target.tapping(draft.config.tapped_layers)
    found = {name: _always(network_drafter(draft, target.parts, Shape.CHAIN), width, tapping)}
    if name == FLATROPE:
        tree, other = (network_drafter(draft, target.parts, Shape.TREE) for _ in range(2))
        found[f"{name}-tree"] = _always(tree, TREE_WIDTH, tapping, reach=width)
        found["hybrid"] = _always(HybridDrafter(other, retrieval_of(target, weights, Shape.TREE)), TREE_WIDTH, tapping)
    return found


def _rehearsed(target: NanoTarget) -> dict[str, Contestant]:
    """Drafters that know the text: always right, always wrong, and right at random with several candidates a place."""
    vocabulary = len(target.forbidden)
    cases = {
        "oracle": (Rehearsal(1.0, anticipates=False), CHAIN_WIDTH),
        "always-wrong": (Rehearsal(0.0), CHAIN_WIDTH),
        "random": (Rehearsal(0.5, branches=3), TREE_WIDTH),
    }

    def knowing(rehearsal: Rehearsal) -> DrafterFor:
        return lambda text: RehearsedDrafter(text, vocabulary, rehearsal)

    return {name: Contestant(knowing(how), width, target, width) for name, (how, width) in cases.items()}


def _always(drafter: Drafter, width: int, target: NanoTarget, reach: int | None = None) -> Contestant:
    return Contestant(lambda _: drafter, width, target, reach or width)
