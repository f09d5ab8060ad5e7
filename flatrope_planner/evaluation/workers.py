"""Spreads independent tasks over processes, each with one thread, so that results do not depend on their number."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flatrope_planner.errors import InputError

if TYPE_CHECKING:
    from flatrope_planner.vla.loading import VlaPlanner

T = TypeVar("T")
R = TypeVar("R")


def run_in_workers(work: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Each task with its result, as they are done.

    Raises:
        InputError: if there is nothing to do, or nobody to do it.
    """
    if jobs < 1 or not tasks:
        msg = f"there must be work and at least 1 job, got {len(tasks)} tasks and {jobs} jobs"
        raise InputError(msg)
    # Forked copies of a process that has started threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


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
