"""Replays many bags on several processes: one that breaks does not stop the others, nor does one that dies."""

import multiprocessing
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from flatrope_planner.errors import on_one_line
from flatrope_planner.evaluation.replay.bag_result import FAILED, replayed
from flatrope_planner.evaluation.replay.task import SCHEMA_VERSION, ReplayTask, contestants_of
from flatrope_planner.workers import begin_work, pool_of, starting

Result = dict[str, Any]
Work = Callable[[ReplayTask, Callable[[float], None]], Result]
# How often progress is looked at (s).
LOOK_S = 0.5

# Filled in each process: how much of each bag has been read (0 to 1).
_SHARED: list[Any] = []


def replay_in_process(task: ReplayTask, told: Callable[[float], None]) -> Result:
    """Replay with planners that this process loads once."""
    return replayed(task, partial(contestants_of, task.lineup), told)


def replay_all(
    tasks: Sequence[ReplayTask], jobs: int, told: Callable[[float], None], work: Work = replay_in_process
) -> Iterator[Result]:
    """The results as they come, in any order.

    Args:
        tasks: what to replay.
        jobs: processes at work.
        told: hears from time to time how much of all bags has been read (0 to 1, by size).
        work: replays one of them in its process, and tells how much of it has been read.
    """
    shares = multiprocessing.get_context("spawn").Array("d", len(tasks), lock=False)
    sizes = [max(task.size, 1) for task in tasks]
    left, alone = dict(enumerate(tasks)), False
    while left:
        # After a process has died, those that may have killed it get one for themselves, until it is known who did.
        batch = dict([next(iter(left.items()))]) if alone else dict(left)
        found = False
        at_work = min(jobs, len(batch))
        with pool_of(at_work, _begin, shares) as pool:
            with starting(at_work):
                futures: dict[Future[Result], int] = {pool.submit(_work, work, n, task): n for n, task in batch.items()}
            for future in _finished(futures, partial(_tell, told, shares, sizes)):
                number = futures[future]
                if isinstance(future.exception(), BrokenProcessPool):
                    if not alone:
                        break
                    found, result = True, died(tasks[number])
                else:
                    result = future.result()
                del left[number]
                shares[number] = 1.0
                yield result
        alone = not found


def _finished(futures: Collection[Future[Result]], look: Callable[[], None]) -> Iterator[Future[Result]]:
    # What interrupts this process leaves no lock behind in it, as it might in `concurrent.futures.wait`.
    done, waiting = SimpleQueue[Future[Result]](), len(futures)
    for future in futures:
        future.add_done_callback(done.put)
    while waiting:
        finished = []
        with suppress(Empty):
            finished.append(done.get(timeout=LOOK_S))
        look()
        yield from finished
        waiting -= len(finished)


def _tell(told: Callable[[float], None], shares: Any, sizes: Sequence[int]) -> None:
    told(sum(share * size for share, size in zip(shares, sizes, strict=True)) / sum(sizes))


def _begin(shares: Any) -> None:
    begin_work()
    _SHARED[:] = [shares]


def _work(work: Work, number: int, task: ReplayTask) -> Result:
    (shares,) = _SHARED

    def told(share: float) -> None:
        shares[number] = share

    return work(task, told)


def died(task: ReplayTask) -> Result:
    """The result of a task whose process is gone."""
    error = f"{task.bag}: the process that replayed it died; it may have run out of memory"
    return {
        "schema": SCHEMA_VERSION,
        "name": task.name,
        "status": FAILED,
        "error": on_one_line(error),
        "run": {"path": str(task.bag)},
    }
