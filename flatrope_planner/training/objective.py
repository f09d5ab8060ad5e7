"""What nano is trained for: to write the rationale, to draw the action, and to see what both depend on.

The flow-matching loss reaches the target through its keys and values, so that these carry what the action needs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from flatrope_planner.training.teaching import Lesson, Teacher
from flatrope_planner.vla.cache import KeyValues, RecordingCache
from flatrope_planner.vla.flow import draw_flow_batch
from flatrope_planner.vla.model import NanoModel
from flatrope_planner.vla.vision import VisionFeatures

# Label of tokens that are not trained on.
IGNORED = -100
DRIFT_WEIGHT = 0.1


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
    # int64 (S,): tokens of the prompt, tokens before the padding, and what the prompt adds to sequence indices.
    prompt_length: Tensor
    length: Tensor
    rope_delta: Tensor
    # float (S, 64, 2), normalised.
    action: Tensor
    lesson: Lesson


@dataclass(frozen=True)
class Losses:
    """Means over a batch."""

    # Cross entropy a token (nat).
    rationale: Tensor
    # Squared error of the flow's velocity, normalised actions.
    action: Tensor
    # See `teaching.Teacher`.
    sights: Tensor
    facts: Tensor


def losses(model: NanoModel, teacher: Teacher, batch: Batch, draws: int, generator: torch.Generator) -> Losses:
    """All losses of a batch; the flow loss over several draws of noise and time for each sample."""
    shown = model.vision(batch.pictures)
    index = batch.picture_index.flatten()
    features = VisionFeatures(shown.tokens[index], tuple(level[index] for level in shown.deepstack))
    memory = RecordingCache()
    hidden = model.reader.read(batch.ids, batch.positions, memory, features=features).hidden
    last = hidden[torch.arange(len(hidden)), batch.prompt_length - 1]
    return Losses(
        rationale=_rationale_loss(model, hidden, batch.labels),
        action=_action_loss(model, memory, batch, draws, generator),
        sights=teacher.sight_loss(shown.tokens, batch.lesson),
        facts=teacher.fact_loss(last, batch.lesson),
    )


def seeing_loss(model: NanoModel, teacher: Teacher, batch: Batch) -> Tensor:
    """The vision tower's loss alone."""
    return teacher.sight_loss(model.vision(batch.pictures).tokens, batch.lesson)


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
    return _velocity_loss(velocity.float() - flow.velocity)


def _velocity_loss(error: Tensor) -> Tensor:
    """Mean square of errors (S, 64, 2), and of their sums up to each point.

    A plan adds its actions up, so an error that lasts does more harm than one that changes sign. Sums of n independent
    errors are divided by the root of n; the best answer, the mean, stays the same under any such weighting.
    """
    count = torch.arange(1, error.shape[1] + 1)[:, None]
    drift = error.cumsum(1) / count.sqrt()
    return error.square().mean() + DRIFT_WEIGHT * drift.square().mean()
