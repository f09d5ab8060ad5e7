"""The kinds of draft that can be trained, each with what teaches it."""

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import torch

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
from flatrope_planner.vla.target import VlaTarget


class DraftKind(Enum):
    """What is trained."""

    BLOCK = "block"
    EAGLE3 = "eagle3"
    MEDUSA = "medusa"


# Which of the sizes below each kind has.
SIZES_OF_KIND = {
    DraftKind.BLOCK: ("scheme", "block_size", "layers", "context_tokens", "portable"),
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
    # Whether the block draft has only what the layouts of others have a place for (DFlash's, vLLM's).
    portable: bool = False


@dataclass(frozen=True)
class Basis:
    """What of a target its drafts are made of."""

    # Their own layers are like its.
    layer: LayerShape
    # A token of prompts that stands for something else there, and is in no text.
    pad: int
    # What they borrow, on the device where they are to learn.
    parts: BorrowedParts

    @classmethod
    def of(cls, target: VlaTarget, device: torch.device | None = None) -> "Basis":
        """That of a target, whose borrowed parts are moved to a device; None: they stay where they are."""
        return cls(target.layer_shape, target.image_pad, target.parts.to(device or target.device))


def new_learner(sizes: DraftSizes, header: TraceHeader, basis: Basis) -> DraftLearner[Any]:
    """A fresh draft for the target that the traces are of, and its teacher.

    Args:
        sizes: kind and sizes that were asked for.
        header: of the traces.
        basis: of the target.
    """
    parts = basis.parts
    match sizes.kind:
        case DraftKind.BLOCK:
            draft = BlockDraft(_block_config(sizes, header, basis)).to(parts.device)
            return BlockLearner(draft, parts)
        case DraftKind.EAGLE3:
            eagle = EagleDraft(_eagle_config(sizes, header, basis.layer)).to(parts.device)
            return EagleLearner(eagle, parts)
        case DraftKind.MEDUSA:
            heads = MedusaHeads(MedusaConfig(header.hidden, header.tapped_layers, heads=sizes.block_size - 1))
            return MedusaLearner(heads.to(parts.device), parts)


def _block_config(sizes: DraftSizes, header: TraceHeader, basis: Basis) -> BlockDraftConfig:
    # Places to be guessed are marked by an embedding of the draft's own, or by that of a token that is in no text.
    plain: dict[str, Any] = {"feature_norm": False, "predecessor_rank": 0, "mask_token": basis.pad}
    return BlockDraftConfig(
        header.hidden,
        header.vocab_size,
        header.tapped_layers,
        **asdict(basis.layer),
        **(plain if sizes.portable else {}),
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
