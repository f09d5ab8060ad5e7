"""The nano that a worker process plans with, one thread each, so that results do not depend on their number."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flatrope_planner.vla.loading import VlaPlanner


@cache
def nano_of_this_worker(weights: Path | None) -> "VlaPlanner":
    """A planner with nano, loaded once in each process.

    Raises:
        SetupError: when the weights are missing or do not fit.
    """
    import torch

    from flatrope_planner.vla.loading import NANO, load_planner

    torch.set_num_threads(1)
    return load_planner(NANO if weights is None else str(weights))
