"""Independent tasks spread over processes, none of which outlives this one or speaks when it is interrupted."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from flatrope_planner.errors import FlatropeError, InputError, SetupError, described
from flatrope_planner.interruption import heard_afterwards

T = TypeVar("T")
R = TypeVar("R")


def run_in_workers(work: Callable[[T], R], tasks: Sequence[T], jobs: int, niceness: int = 0) -> Iterator[tuple[T, R]]:
    """Each task with its result, as they are done. Whoever stops early gives up the work in hand.

    Args:
        work: does a task, in a process of its own.
        tasks: what there is to do.
        jobs: processes at work.
        niceness: how far they stand back for other processes.

    Raises:
        InputError: if there is nothing to do, or nobody to do it.
        SetupError: if a process dies.
    """
    if jobs < 1 or not tasks:
        msg = f"there must be work and at least 1 job, got {len(tasks)} tasks and {jobs} jobs"
        raise InputError(msg)
    jobs = min(jobs, len(tasks))
    with pool_of(jobs, begin_work, niceness) as pool:
        # What interrupts this process leaves no lock behind in it, as it might in `as_completed`.
        done = SimpleQueue[Future[R]]()
        with starting(jobs):
            futures = {pool.submit(_done, work, task): task for task in tasks}
            for future in futures:
                future.add_done_callback(done.put)
        try:
            for _ in futures:
                future = done.get()
                yield futures[future], future.result()
        except BrokenProcessPool as err:
            msg = f"one of {jobs} processes at work has died; was there enough memory for all? Try with fewer jobs"
            raise SetupError(msg) from err


@contextmanager
def pool_of(jobs: int, begin: Callable[..., None], *arguments: object) -> Iterator[ProcessPoolExecutor]:
    """Processes that call `begin` first; left by an exception, such as Ctrl-C, they end whatever they do."""
    # Forked copies of a process that has started threads may hang.
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with starting(jobs):
        # Python's own process for what must be cleaned up begins here.
        pool = ProcessPoolExecutor(jobs, context, initializer=begin, initargs=arguments)
    try:
        yield pool
    except BaseException:
        with heard_afterwards(is_ending=True):
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            # One that ended while it sent a result has left a part of it: nobody shall wait for the rest, which as long
            # as this process can write there itself might still come. Python has no public way to say so.
            pool._result_queue._writer.close()  # type: ignore[attr-defined]  # noqa: SLF001
            pool.shutdown(cancel_futures=True)
        raise
    with heard_afterwards():
        pool.shutdown(cancel_futures=True)


@contextmanager
def starting(jobs: int) -> Iterator[None]:
    """Processes started within never hear what a terminal sends to all: this one hears it, and ends them.

    Raises:
        SetupError: if they cannot be started.
    """
    with heard_afterwards():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            yield
        except OSError as err:
            msg = f"{jobs} processes cannot be started: {err.strerror or err}"
            raise SetupError(msg) from err
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_work(niceness: int = 0) -> None:
    """To be called first in a process at work: it ends when the one that has started it does, killed or not."""
    os.nice(niceness)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _done(work: Callable[[T], R], task: T) -> R:
    try:
        return work(task)
    except Exception as err:
        if isinstance(err, FlatropeError) or type(err).__module__ == "builtins":
            raise
        # One that cannot be made anew in another process would be taken for the death of this one.
        raise RuntimeError(described(err)) from err
