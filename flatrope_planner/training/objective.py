"""What nano is trained for: to write the rationale, and to draw the action, each through the other's eyes.

The flow-matching loss reaches the target through its keys and values, so that these carry what the action needs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from flatrope_planner.vla.cache import KeyValues, RecordingCache
from flatrope_planner.vla.flow import draw_flow_batch
from flatrope_planner.vla.model import NanoModel
from flatrope_planner.vla.vision import VisionFeatures

# Label of tokens that are not trained on.
IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """S samples as tensors; a picture that several of them show is in it once."""

    # uint8 (U, 160, 448, 3), and which of them each sample shows, int64 (S, pictures).
    pictures: Tensor
    picture_index: Tensor
    # int64 (S, L): prompt, rationale, `<|cot_end|><|traj_future_start|>`, padding; int64 (3, S, L) positions.
    ids: Tensor
    positions: Tensor
    # int64 (S, L): the token itself where the model has to predict it, else IGNORED.
    labels: Tensor
    # int64 (S,): tokens before the padding, and what the prompt adds to sequence indices.
    length: Tensor
    rope_delta: Tensor
    # float (S, 64, 2), normalised.
    action: Tensor


@dataclass(frozen=True)
class Losses:
    """Means over a batch."""

    # Cross entropy a token (nat).
    rationale: Tensor
    # Mean squared error of the flow's velocity, normalised actions.
    action: Tensor


def losses(model: NanoModel, batch: Batch, draws: int, generator: torch.Generator) -> Losses:
    """Both losses of a batch; the flow loss over several draws of noise and time for each sample."""
    shown = model.vision(batch.pictures)
    index = batch.picture_index.flatten()
    features = VisionFeatures(shown.tokens[index], tuple(level[index] for level in shown.deepstack))
    memory = RecordingCache()
    hidden = model.read(batch.ids, batch.positions, memory, features=features).hidden
    return Losses(_rationale_loss(model, hidden, batch.labels), _action_loss(model, memory, batch, draws, generator))


def _rationale_loss(model: NanoModel, hidden: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy; the vocabulary is only computed where a token is predicted."""
    targets = labels[:, 1:]
    predicted = targets != IGNORED
    return F.cross_entropy(model.logits(hidden[:, :-1][predicted]).float(), targets[predicted])


def _action_loss(model: NanoModel, memory: KeyValues, batch: Batch, draws: int, generator: torch.Generator) -> Tensor:
    flow = draw_flow_batch(batch.action.repeat_interleave(draws, 0), generator)
    repeated = KeyValues(
        [key.repeat_interleave(draws, 0) for key in memory.keys],
        [value.repeat_interleave(draws, 0) for value in memory.values],
    )
    offset, delta = batch.length.repeat_interleave(draws), batch.rope_delta.repeat_interleave(draws)
    velocity = model.expert(flow.noisy, flow.time, repeated, offset, delta)
    return F.mse_loss(velocity.float(), flow.velocity)
