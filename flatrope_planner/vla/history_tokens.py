"""Ego history as tokens: steps between poses, cut into bins (Alpamayo's delta tokenizer)."""

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.dimensions import HISTORY_POSES
from flatrope_planner.domain import Floats, require_array
from flatrope_planner.vla.tokenizer import HISTORY_BINS

# Range of one step (m): x, y, z. What lies outside falls into the first or last bin.
STEP_MIN_M = np.array([-4.0, -4.0, -10.0])
STEP_MAX_M = np.array([4.0, 4.0, 10.0])


def encode_history(position_m: Floats) -> NDArray[np.int64]:
    """Bins of a history, flattened over (pose, xyz).

    The first step leads from the origin to the oldest pose, so its x falls into bin 0 whenever the ego drove more
    than 4 m in 1.5 s; the others tell the speed.

    Args:
        position_m: float64 (16, 3), ego frame, m.

    Returns:
        int64 (48,), 0..999.
    """
    require_array("history positions", position_m, (HISTORY_POSES, 3), np.float64)
    steps = np.diff(position_m, axis=0, prepend=np.zeros((1, 3)))
    share = (steps - STEP_MIN_M) / (STEP_MAX_M - STEP_MIN_M)
    bins = np.clip(np.rint(share * (HISTORY_BINS - 1)), 0, HISTORY_BINS - 1)
    return np.asarray(bins, dtype=np.int64).reshape(-1)


def decode_history(bins: NDArray[np.int64]) -> Floats:
    """Positions (16, 3) whose steps are the middles of the bins (48,)."""
    share = bins.reshape(-1, 3) / (HISTORY_BINS - 1)
    return np.cumsum(share * (STEP_MAX_M - STEP_MIN_M) + STEP_MIN_M, axis=0)
