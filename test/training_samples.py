"""Lessons for made-up training samples."""

import numpy as np

from flatrope_planner.simulation.sights import SightMap
from flatrope_planner.simulation.situation import Fact, Situation
from flatrope_planner.training.samples import PATCHES


def some_sights(seed: int) -> SightMap:
    """Patches with anything in them, and a vehicle's distance in some."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 1 << 12, PATCHES, dtype=np.uint16)
    depth_m = np.where(rng.uniform(size=PATCHES) < 0.3, 20.0, 0.0).astype(np.float32)
    return SightMap(kinds, depth_m)


def some_situation(seed: int) -> Situation:
    """Half of the facts."""
    rng = np.random.default_rng(seed)
    present = rng.uniform(size=len(Fact)) < 0.5
    return Situation(present, np.where(present, rng.normal(size=len(Fact)), 0.0))
