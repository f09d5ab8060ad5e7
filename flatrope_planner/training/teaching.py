"""Lessons beside the target's own task: where things are in each picture, and what matters of the moment.

The words of a rationale and the points of a plan say little about pictures; a simulator knows everything that is in
them. So two linear readers, which do not ship, ask the vision tower's tokens what their patches show and how far it is,
and the prompt's last token what a driver has to know.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from flatrope_planner.simulation.sights import Sight
from flatrope_planner.simulation.situation import Fact
from flatrope_planner.vla.config import MERGE, NanoConfig

# Metres are told as the logarithm of this part of them, about 0 for things near enough to matter.
DEPTH_UNIT_M = 15.0
DEPTH_WEIGHT = 0.5


@dataclass(frozen=True)
class Lesson:
    """The right answers for the U pictures and S samples of a batch."""

    # bool (U, tokens, 4, sights) and float (U, tokens, 4): by patch within a token; a depth of 0 is none.
    sights: Tensor
    depth_m: Tensor
    # bool and float (S, facts).
    present: Tensor
    value: Tensor


class Teacher(nn.Module):
    """Reads answers off hidden states."""

    def __init__(self, config: NanoConfig) -> None:
        """Random weights."""
        super().__init__()
        self.sight = nn.Linear(config.text_hidden, MERGE**2 * (len(Sight) + 1))
        self.fact = nn.Linear(config.text_hidden, 2 * len(Fact))

    def sight_loss(self, tokens: Tensor, lesson: Lesson) -> Tensor:
        """How badly the vision tower's tokens (U, tokens, hidden) show what their patches do (nat a patch)."""
        read = self.sight(tokens).float().unflatten(-1, (MERGE**2, len(Sight) + 1))
        kinds = F.binary_cross_entropy_with_logits(read[..., :-1], lesson.sights.float(), reduction="none").sum(-1)
        shown = lesson.depth_m > 0.0
        depth = F.smooth_l1_loss(read[..., -1][shown], (lesson.depth_m[shown] / DEPTH_UNIT_M).log(), reduction="sum")
        return kinds.mean() + DEPTH_WEIGHT * depth / shown.sum().clamp(min=1)

    def fact_loss(self, hidden: Tensor, lesson: Lesson) -> Tensor:
        """How badly the prompts' last hidden states (S, hidden) tell the facts (mean over facts)."""
        presence, value = self.fact(hidden).float().chunk(2, dim=-1)
        known = F.binary_cross_entropy_with_logits(presence, lesson.present.float())
        error = F.smooth_l1_loss(value, lesson.value, reduction="none", beta=0.2) * lesson.present
        return known + error.sum() / lesson.present.sum().clamp(min=1)


def sights_by_token(kinds: Tensor, depth_m: Tensor) -> tuple[Tensor, Tensor]:
    """Int (U, rows, columns) bits and float depths of patches -> (U, tokens, 4, sights) and (U, tokens, 4)."""
    bits = (kinds[..., None] >> torch.arange(len(Sight))) & 1
    return _merge(bits).bool(), _merge(depth_m[..., None])[..., 0]


def _merge(patches: Tensor) -> Tensor:
    """(U, rows, columns, K) -> (U, tokens, 4, K): the 2 x 2 patches that become one token together."""
    count, rows, columns, size = patches.shape
    blocks = patches.reshape(count, rows // MERGE, MERGE, columns // MERGE, MERGE, size)
    return blocks.transpose(2, 3).reshape(count, rows * columns // MERGE**2, MERGE**2, size)
