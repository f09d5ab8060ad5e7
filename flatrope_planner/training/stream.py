"""Samples in training order: shuffled anew each epoch, the same for the same seed, resumable at any batch.

What the student met when it drove itself is worth more than what it was shown: such shards come several times an epoch.

A batch is made of clips, consecutive moments of one episode: they share pictures, so the vision tower, which costs
most, sees each of these once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from flatrope_planner.errors import InputError
from flatrope_planner.training.samples import TrainingSample, list_shards, read_shard

CLIP_SAMPLES = 4
# Shards whose clips are mixed with each other; bounds the memory.
WINDOW_SHARDS = 96
PRACTICE_REPEATS = 3
SHOWN, PRACTISED = "samples", "practice"


@dataclass(frozen=True)
class StreamPosition:
    """How far training has read: enough to go on at the next batch."""

    epoch: int
    # Batches of this epoch that were taken.
    batches: int
    # Names of the epoch's shards: what is written during an epoch comes with the next.
    shards: tuple[str, ...]


@dataclass(frozen=True)
class StreamItem:
    """A batch of samples, and the position behind it."""

    samples: list[TrainingSample]
    after: StreamPosition


class SampleStream:
    """Endless batches from two folders of shards below one: what was shown, and what was practised."""

    def __init__(self, root: Path, clips_per_batch: int, seed: int) -> None:
        """Nothing is read yet."""
        self._root = root
        self._clips_per_batch = clips_per_batch
        self._seed = seed

    def start(self, epoch: int = 0) -> StreamPosition:
        """The beginning of an epoch over what the folders hold now.

        Raises:
            InputError: when nothing was shown.
        """
        shown = self._names(SHOWN)
        if not shown:
            msg = f"{self._root / SHOWN}: no training samples; make some with `flatrope train target --stage data`"
            raise InputError(msg)
        return StreamPosition(epoch, 0, (*shown, *PRACTICE_REPEATS * self._names(PRACTISED)))

    def with_practice(self, position: StreamPosition) -> StreamPosition:
        """The position itself, or a new epoch when there has been practice since its own began."""
        begun_with = set(position.shards)
        return position if begun_with.issuperset(self._names(PRACTISED)) else self.start(position.epoch + 1)

    def _names(self, folder: str) -> list[str]:
        return [f"{folder}/{path.name}" for path in list_shards(self._root / folder)]

    def batches(self, position: StreamPosition) -> Iterator[StreamItem]:
        """All batches behind a position, epoch after epoch."""
        while True:
            for taken, samples in enumerate(self._epoch(position.epoch, position.shards), start=1):
                if taken > position.batches:
                    yield StreamItem(samples, StreamPosition(position.epoch, taken, position.shards))
            position = self.start(position.epoch + 1)

    def _epoch(self, epoch: int, shards: tuple[str, ...]) -> Iterator[list[TrainingSample]]:
        rng = np.random.default_rng([self._seed, epoch])
        order = [shards[i] for i in rng.permutation(len(shards))]
        waiting: list[list[TrainingSample]] = []
        for start in range(0, len(order), WINDOW_SHARDS):
            window = [read_shard(self._root / name) for name in order[start : start + WINDOW_SHARDS]]
            clips = [clip for samples in window for clip in _clips(samples, int(rng.integers(CLIP_SAMPLES)))]
            waiting += [clips[i] for i in rng.permutation(len(clips))]
            while len(waiting) >= self._clips_per_batch:
                batch, waiting = waiting[: self._clips_per_batch], waiting[self._clips_per_batch :]
                yield [sample for clip in batch for sample in clip]
        if waiting:
            yield [sample for clip in waiting for sample in clip]


def _clips(samples: list[TrainingSample], phase: int) -> list[list[TrainingSample]]:
    """Cut an episode into clips; where the first cut falls differs from epoch to epoch."""
    cuts = [0, *range(phase or CLIP_SAMPLES, len(samples), CLIP_SAMPLES), len(samples)]
    return [samples[a:b] for a, b in pairwise(cuts)]
