"""How good a half-trained nano is, on a few scenes it never trains on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.dimensions import FUTURE_PERIOD_S, HISTORY_PERIOD_S
from flatrope_planner.planning.stated_decision import decision_of
from flatrope_planner.training.collation import Collator
from flatrope_planner.training.objective import Batch
from flatrope_planner.training.samples import TrainingSample
from flatrope_planner.vla.cache import RecordingCache
from flatrope_planner.vla.flow import integrate
from flatrope_planner.vla.model import NanoModel
from flatrope_planner.vla.tokenizer import NanoTokenizer
from flatrope_planner.vla.unicycle import action_to_trajectory, estimate_speed
from flatrope_planner.vla.vision import VisionFeatures

# The opening words of a rationale, which stand for the decision, are no longer than this many tokens.
OPENING_TOKENS = 6
ADE_HORIZON_S = 3.0
BATCH_SAMPLES = 32


@dataclass(frozen=True)
class HeldOutScore:
    """Means over the held-out samples."""

    # Share of rationales, written greedily, that open with the right decision.
    decision_accuracy: float
    # Displacement error over 3 s (m) of the action from the middle of the noise, given the right rationale.
    ade_3s_m: float


@torch.inference_mode()
def score(
    model: NanoModel, tokenizer: NanoTokenizer, collator: Collator, samples: Sequence[TrainingSample]
) -> HeldOutScore:
    """Write and act for every sample."""
    right: list[bool] = []
    errors: list[float] = []
    for start in range(0, len(samples), BATCH_SAMPLES):
        part = samples[start : start + BATCH_SAMPLES]
        batch = collator.collate(part)
        shown = model.vision(batch.pictures)
        index = batch.picture_index.flatten()
        features = VisionFeatures(shown.tokens[index], tuple(level[index] for level in shown.deepstack))
        prompt = [len(collator.prompt(sample).ids) for sample in part]
        texts = [tokenizer.decode(ids) for ids in _openings(model, batch, features, prompt)]
        right += [decision_of(text) is sample.decision for text, sample in zip(texts, part, strict=True)]
        errors += _displacement(model, collator, batch, features, part)
    return HeldOutScore(float(np.mean(right)), float(np.mean(errors)))


def _openings(model: NanoModel, batch: Batch, features: VisionFeatures, prompt: Sequence[int]) -> list[list[int]]:
    """The first tokens each sample's rationale gets, greedily."""
    ids = batch.ids.clone()
    rows, place = torch.arange(len(ids)), torch.tensor(prompt)
    for step in range(OPENING_TOKENS):
        hidden = model.reader.read(ids, batch.positions, RecordingCache(), features=features).hidden
        ids[rows, place + step] = model.logits(hidden[rows, place + step - 1]).argmax(-1)
    return [ids[row, start : start + OPENING_TOKENS].tolist() for row, start in enumerate(prompt)]


def _displacement(
    model: NanoModel, collator: Collator, batch: Batch, features: VisionFeatures, samples: Sequence[TrainingSample]
) -> list[float]:
    memory = RecordingCache()
    model.reader.read(batch.ids, batch.positions, memory, features=features)
    velocity = partial(model.expert, memory=memory, offset=batch.length, rope_delta=batch.rope_delta)
    noise = torch.zeros(batch.action.shape)
    action = collator.denormalise(integrate(velocity, noise, model.config.flow_steps))
    position = torch.from_numpy(np.stack([sample.history_position_m for sample in samples]))
    rotation = torch.from_numpy(np.stack([sample.history_rotation for sample in samples]))
    motion = action_to_trajectory(action, estimate_speed(position, rotation, HISTORY_PERIOD_S))
    points = round(ADE_HORIZON_S / FUTURE_PERIOD_S)
    wanted = torch.from_numpy(np.stack([sample.position_m for sample in samples]))[:, :points, :2]
    distance: Tensor = (motion.position_m[:, :points] - wanted).norm(dim=-1).mean(-1)
    return [float(value) for value in distance]
