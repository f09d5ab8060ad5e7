"""Makes the training samples: episodes of all trained families, in parallel, each written once."""

import os
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from flatrope_planner.planning.observation import ObservationSpec
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Family, Split
from flatrope_planner.training.collection import collect
from flatrope_planner.training.samples import shard_path, write_shard


@dataclass(frozen=True)
class _Episode:
    directory: Path
    family: Family
    seed: int
    split: Split
    spec: ObservationSpec


def make_samples(directory: Path, episodes: int, split: Split, spec: ObservationSpec, jobs: int) -> int:
    """Drive the first `episodes` seeds of each trained family that are not there yet; returns how many were missing."""
    wanted = [_Episode(directory, family, seed, split, spec) for seed in range(episodes) for family in TRAINED_FAMILIES]
    missing = [task for task in wanted if not shard_path(directory, task.family.value, task.seed).exists()]
    if not missing:
        return 0
    # A fresh interpreter: forking one in which PyTorch runs threads may hang.
    with get_context("spawn").Pool(jobs, initializer=_be_nice) as pool:
        for _ in with_progress(pool.imap_unordered(_make, missing, chunksize=4), len(missing), "episodes"):
            pass
    return len(missing)


def _be_nice() -> None:
    os.nice(5)


def _make(task: _Episode) -> None:
    samples = list(collect(task.family, task.seed, task.spec, task.split))
    if samples:
        write_shard(shard_path(task.directory, task.family.value, task.seed), samples)
