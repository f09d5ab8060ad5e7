"""Samples -> tensors."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.domain import Image
from flatrope_planner.simulation.sights import SightMap
from flatrope_planner.training.augmentation import Look, apply_look, draw_look
from flatrope_planner.training.objective import IGNORED, Batch
from flatrope_planner.training.samples import TrainingSample
from flatrope_planner.training.teaching import Lesson, sights_by_token
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.history_tokens import encode_history
from flatrope_planner.vla.pictures import decode_picture
from flatrope_planner.vla.prompt import PromptTokens, build_prompt
from flatrope_planner.vla.tokenizer import NanoTokenizer

# Sequences are padded to a multiple of this, so that few shapes occur.
LENGTH_STEP = 8
# Actions count no farther from their mean than this many standard deviations, about the sharpest bend of a road: the
# few that steer back from far off the lane would outweigh all others.
FARTHEST = 10.0


class Collator:
    """Turns samples into batches for one model."""

    def __init__(self, config: NanoConfig, tokenizer: NanoTokenizer) -> None:
        """Remember what the model wants."""
        self._tokenizer = tokenizer
        self._pictures = config.pictures
        self._mean = np.array(config.action_mean)
        self._std = np.array(config.action_std)

    def collate(self, samples: Sequence[TrainingSample], rng: np.random.Generator | None = None) -> Batch:
        """A batch; `rng` draws a look for each drive, None leaves the pictures as they are."""
        prompts = [self.prompt(sample) for sample in samples]
        answers = [self.answer(sample.rationale) for sample in samples]
        lengths = [len(p.ids) + len(a) for p, a in zip(prompts, answers, strict=True)]
        ids, labels, positions = _padded(prompts, answers, -(-max(lengths) // LENGTH_STEP) * LENGTH_STEP)
        pictures, sights, index = self._distinct_pictures(samples, rng)
        action = (np.stack([sample.action for sample in samples]) - self._mean) / self._std
        action = np.clip(action, -FARTHEST, FARTHEST)
        return Batch(
            pictures=pictures,
            picture_index=index,
            ids=ids,
            positions=positions,
            labels=labels,
            prompt_length=torch.tensor([len(prompt.ids) for prompt in prompts]),
            length=torch.tensor(lengths),
            rope_delta=torch.tensor([prompt.rope_delta for prompt in prompts]),
            action=torch.from_numpy(action.astype(np.float32)),
            lesson=_lesson(sights, samples),
        )

    def prompt(self, sample: TrainingSample) -> PromptTokens:
        """The prompt of a sample."""
        bins = encode_history(sample.history_position_m).tolist()
        return build_prompt(self._tokenizer, self._pictures, bins, sample.command)

    def answer(self, rationale: str) -> list[int]:
        """What the model should write behind the prompt."""
        return [*self._tokenizer.encode(rationale), self._tokenizer.cot_end, self._tokenizer.future_start]

    def denormalise(self, action: Tensor) -> Tensor:
        """Normalised actions (S, 64, 2) -> float64, m/s^2 and 1/m."""
        return action.double() * torch.from_numpy(self._std) + torch.from_numpy(self._mean)

    def _distinct_pictures(
        self, samples: Sequence[TrainingSample], rng: np.random.Generator | None
    ) -> tuple[Tensor, list[SightMap], Tensor]:
        """Pictures (U, H, W, 3) without repetition, what is in them, which each sample shows, (S, pictures)."""
        places: dict[tuple[str, int, bytes], int] = {}
        looks: dict[tuple[str, int], Look] = {}
        pictures: list[Image] = []
        sights: list[SightMap] = []
        index = []
        for sample in samples:
            drive = (sample.family, sample.seed)
            if rng is not None and drive not in looks:
                looks[drive] = draw_look(rng)
            for encoded, shown in zip(sample.pictures, sample.sights, strict=True):
                if (*drive, encoded) not in places:
                    places[(*drive, encoded)] = len(pictures)
                    picture = decode_picture(encoded)
                    pictures.append(picture if rng is None else apply_look(picture, looks[drive], rng))
                    sights.append(shown)
                index.append(places[(*drive, encoded)])
        return torch.from_numpy(np.stack(pictures)), sights, torch.tensor(index).reshape(len(samples), -1)


def _lesson(sights: Sequence[SightMap], samples: Sequence[TrainingSample]) -> Lesson:
    kinds, depth_m = sights_by_token(
        torch.from_numpy(np.stack([shown.kinds for shown in sights]).astype(np.int64)),
        torch.from_numpy(np.stack([shown.depth_m for shown in sights])),
    )
    present = np.stack([sample.situation.present for sample in samples])
    value = np.stack([sample.situation.value for sample in samples]).astype(np.float32)
    return Lesson(kinds, depth_m, torch.from_numpy(present), torch.from_numpy(value))


def _padded(
    prompts: Sequence[PromptTokens], answers: Sequence[Sequence[int]], length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (S, L), labels (S, L) and positions (3, S, L); behind the answer stands token 0, unlabelled."""
    ids = np.zeros((len(prompts), length), dtype=np.int64)
    labels = np.full((len(prompts), length), IGNORED, dtype=np.int64)
    positions = np.empty((3, len(prompts), length), dtype=np.int64)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        start, end = len(prompt.ids), len(prompt.ids) + len(answer)
        ids[row, :start], ids[row, start:end] = prompt.ids, answer
        labels[row, start:end] = answer
        positions[:, row, :start] = prompt.positions
        positions[:, row, start:] = np.arange(start, length) + prompt.rope_delta
    return torch.from_numpy(ids), torch.from_numpy(labels), torch.from_numpy(positions)
