"""Makes the training samples: episodes of all trained families, in parallel, each written once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flatrope_planner.planning.observation import ObservationSpec
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Family, Split
from flatrope_planner.training.collection import Student, collect
from flatrope_planner.training.samples import shard_path, write_shard
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.workers import run_in_workers

# So that what is trained on beside it is not slowed down.
NICENESS = 5


@dataclass(frozen=True)
class Drives:
    """Which episodes to drive, and where their samples go."""

    directory: Path
    seeds: Sequence[int]
    split: Split
    spec: ObservationSpec
    # Weights of the student that drives, None for the reference driver.
    student: Path | None = None


@dataclass(frozen=True)
class _Episode:
    family: Family
    seed: int
    drives: Drives


def make_samples(drives: Drives, jobs: int) -> int:
    """Drive these seeds of each trained family that are not there yet; returns how many were missing."""
    wanted = [_Episode(family, seed, drives) for seed in drives.seeds for family in TRAINED_FAMILIES]
    missing = [task for task in wanted if not shard_path(drives.directory, task.family.value, task.seed).exists()]
    if not missing:
        return 0
    for _ in with_progress(run_in_workers(_make, missing, jobs, NICENESS), len(missing), "episodes"):
        pass
    return len(missing)


def _make(task: _Episode) -> None:
    drives = task.drives
    student = None if drives.student is None else _student(drives.student)
    samples = list(collect(task.family, task.seed, drives.spec, drives.split, student))
    if samples:
        write_shard(shard_path(drives.directory, task.family.value, task.seed), samples)


@cache
def _student(weights: Path) -> Student:
    """A trained nano at the wheel, loaded once in each process."""
    import torch

    torch.set_num_threads(1)
    planner = load_planner(str(weights))
    return lambda observation: planner.plan(observation).trajectory
