"""Samples in training order: shuffled anew each epoch, the same for the same seed, resumable at any batch.

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
    """Endless batches from a folder of shards."""

    def __init__(self, directory: Path, clips_per_batch: int, seed: int) -> None:
        """Nothing is read yet."""
        self._directory = directory
        self._clips_per_batch = clips_per_batch
        self._seed = seed

    def start(self, epoch: int = 0) -> StreamPosition:
        """The beginning of an epoch over what the folder holds now.

        Raises:
            InputError: when it holds nothing.
        """
        shards = tuple(path.name for path in list_shards(self._directory))
        if not shards:
            msg = f"{self._directory}: no training samples; make some with `flatrope train target --stage data`"
            raise InputError(msg)
        return StreamPosition(epoch, 0, shards)

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
            window = [read_shard(self._directory / name) for name in order[start : start + WINDOW_SHARDS]]
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
