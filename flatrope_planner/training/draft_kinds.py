"""The kinds of draft that can be trained, each with what teaches it."""

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.draft_config import LayerShape
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.medusa import MedusaConfig, MedusaHeads
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.block_learner import BlockLearner
from flatrope_planner.training.draft import DraftLearner
from flatrope_planner.training.eagle_learner import EagleLearner
from flatrope_planner.training.medusa_learner import MedusaLearner
from flatrope_planner.training.traces import TraceHeader


class DraftKind(Enum):
    """What is trained."""

    BLOCK = "block"
    EAGLE3 = "eagle3"
    MEDUSA = "medusa"


# Which of the sizes below each kind has.
SIZES_OF_KIND = {
    DraftKind.BLOCK: ("scheme", "block_size", "layers", "context_tokens"),
    DraftKind.EAGLE3: ("scheme",),
    DraftKind.MEDUSA: ("block_size",),
}


@dataclass(frozen=True)
class DraftSizes:
    """What a kind may be asked for; see `SIZES_OF_KIND`."""

    kind: DraftKind = DraftKind.BLOCK
    scheme: RotaryScheme = RotaryScheme.FLAT
    # The anchor and the tokens guessed behind it.
    block_size: int = 8
    # Of the block draft.
    layers: int = 2
    # How many of the last tokens the block draft sees besides the ego history, None for all.
    context_tokens: int | None = None


def new_learner(sizes: DraftSizes, header: TraceHeader, layer: LayerShape, parts: BorrowedParts) -> DraftLearner[Any]:
    """A fresh draft for the target that the traces are of, and its teacher.

    Args:
        sizes: kind and sizes that were asked for.
        header: of the traces.
        layer: of the target, which a draft's own layers are made like.
        parts: what it borrows, on the device where it is to learn.
    """
    match sizes.kind:
        case DraftKind.BLOCK:
            draft = BlockDraft(_block_config(sizes, header, layer)).to(parts.device)
            return BlockLearner(draft, parts)
        case DraftKind.EAGLE3:
            eagle = EagleDraft(_eagle_config(sizes, header, layer)).to(parts.device)
            return EagleLearner(eagle, parts)
        case DraftKind.MEDUSA:
            heads = MedusaHeads(MedusaConfig(header.hidden, header.tapped_layers, heads=sizes.block_size - 1))
            return MedusaLearner(heads.to(parts.device), parts)


def _block_config(sizes: DraftSizes, header: TraceHeader, layer: LayerShape) -> BlockDraftConfig:
    return BlockDraftConfig(
        header.hidden,
        header.vocab_size,
        header.tapped_layers,
        **asdict(layer),
        block_size=sizes.block_size,
        layers=sizes.layers,
        context_tokens=sizes.context_tokens,
        scheme=sizes.scheme,
        # A short rationale behind a few hundred tokens wants the target's own base.
        theta=header.rope_theta,
        mrope_section=_section(sizes, header),
    )


def _eagle_config(sizes: DraftSizes, header: TraceHeader, layer: LayerShape) -> EagleDraftConfig:
    return EagleDraftConfig(
        header.hidden,
        header.vocab_size,
        header.tapped_layers,
        **asdict(layer),
        scheme=sizes.scheme,
        theta=header.rope_theta,
        mrope_section=_section(sizes, header),
    )


def _section(sizes: DraftSizes, header: TraceHeader) -> tuple[int, ...] | None:
    return header.mrope_section if sizes.scheme is RotaryScheme.MROPE else None
