"""Drafters for a target: what lies beside its weights, made ready for it."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from flatrope_planner.arguments import user_path
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.speculation.draft_checkpoint import load_draft
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.exactness import Exactness
from flatrope_planner.speculation.hybrid import HybridDrafter
from flatrope_planner.speculation.network_drafter import network_drafter
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.speculation.retrieval_drafter import RetrievalDrafter
from flatrope_planner.vla.nano import SHIPPED_WEIGHTS
from flatrope_planner.vla.target import VlaTarget

T = TypeVar("T", bound=VlaTarget)

CORPUS_FILE = "rationales.json"
DRAFTS_FOLDER = "drafts"
# The draft that is taken when none is named.
FLATROPE = "flatrope-8"


class DrafterKind(Enum):
    """Who proposes."""

    NONE = "none"
    PROMPT_LOOKUP = "prompt_lookup"
    RETRIEVAL = "retrieval"
    NETWORK = "network"
    HYBRID = "hybrid"


@dataclass(frozen=True)
class SpeculationOptions:
    """How a planner speculates."""

    drafter: DrafterKind = DrafterKind.HYBRID
    # Folder of a trained draft; None: the FlatRoPE draft beside the target's weights.
    draft: Path | None = None
    # Most candidates of a block.
    nodes: int = 32
    exactness: Exactness = field(default_factory=Exactness)


def new_drafter(options: SpeculationOptions, target: T, weights: Path | None) -> tuple[T, Drafter]:
    """A drafter, and the target showing the layers that it wants to see.

    Args:
        options: what to draft with.
        target: whom to draft for.
        weights: folder of the target's weights; None: those of the package.

    Raises:
        SetupError: when the draft is missing, broken, or for another target.
        InputError: when the corpus is broken.
    """
    match options.drafter:
        case DrafterKind.NONE:
            return target, NoDrafter()
        case DrafterKind.PROMPT_LOOKUP:
            return target, PromptLookupDrafter()
        case DrafterKind.RETRIEVAL:
            return target, retrieval_of(target, weights, Shape.TREE)
    draft = draft_of(user_path(options.draft) if options.draft else beside(weights) / DRAFTS_FOLDER / FLATROPE, target)
    network = network_drafter(draft, target.parts, Shape.TREE)
    tapping = target.tapping(draft.config.tapped_layers)
    if options.drafter is DrafterKind.NETWORK:
        return tapping, network
    return tapping, HybridDrafter(network, retrieval_of(target, weights, Shape.TREE))


def draft_of(folder: Path, target: VlaTarget) -> Draft:
    """A trained draft for this target.

    Raises:
        SetupError: when it is missing, broken, or for another target.
    """
    return load_draft(folder, target.fingerprint, target.sizes).draft


def retrieval_of(target: VlaTarget, weights: Path | None, shape: Shape) -> RetrievalDrafter:
    """Retrieval over the corpus beside the target's weights; over the drive alone where there is none.

    Raises:
        InputError: when the corpus is broken, or of another target.
    """
    file = beside(weights) / CORPUS_FILE
    corpus = RationaleCorpus.load(file, target.sizes.vocab_size) if file.exists() else RationaleCorpus()
    return RetrievalDrafter(corpus.context_counts(), shape)


def drafts_beside(weights: Path | None) -> dict[str, Path]:
    """Folders of the trained drafts beside the target's weights, by name."""
    folder = beside(weights) / DRAFTS_FOLDER
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()} if folder.is_dir() else {}


def beside(weights: Path | None) -> Path:
    """The folder of the target's weights."""
    return weights or SHIPPED_WEIGHTS
