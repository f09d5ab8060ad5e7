"""From a trained network to a drafter, whatever its kind."""

from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.speculation.block_drafter import BlockDrafter, Shape
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.speculation.eagle_draft import EagleDraft
from flatrope_planner.speculation.eagle_drafter import EagleDrafter
from flatrope_planner.speculation.hybrid import GuessingDrafter
from flatrope_planner.speculation.medusa import MedusaDrafter


def network_drafter(draft: Draft, parts: BorrowedParts, shape: Shape = Shape.CHAIN) -> GuessingDrafter:
    """Draft with a network for the target that the parts belong to, where it computes."""
    draft.to(parts.device)
    if isinstance(draft, BlockDraft):
        return BlockDrafter(draft, parts, shape)
    return EagleDrafter(draft, parts, shape) if isinstance(draft, EagleDraft) else MedusaDrafter(draft, parts, shape)
