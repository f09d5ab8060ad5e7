"""One line that says how far long work is and how long it will still take."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")

# Where lines cannot be overwritten (a log file), a new one comes this often.
LOG_PERIOD_S = 30.0
TERMINAL_PERIOD_S = 0.2


def with_progress(items: Iterable[T], total: int, what: str, stream: TextIO | None = None) -> Iterator[T]:
    """Hand the items on and keep a line on the stream (stderr) up to date: count, share, time passed and left."""
    stream = stream or sys.stderr
    started_s = shown_s = time.monotonic()
    period_s, end = (TERMINAL_PERIOD_S, "") if stream.isatty() else (LOG_PERIOD_S, "\n")
    for done, item in enumerate(items, start=1):
        yield item
        now_s = time.monotonic()
        if now_s - shown_s >= period_s or done == total:
            shown_s = now_s
            line = progress_line(what, done, total, now_s - started_s)
            print(f"\r\x1b[K{line}" if end == "" else line, end=end, file=stream, flush=True)
    if end == "":
        print(file=stream)


def progress_line(what: str, done: int, total: int, passed_s: float) -> str:
    """For example `episodes 12/40 (30 %), 1:05 passed, 2:31 left`."""
    left_s = passed_s / done * (total - done)
    return f"{what} {done}/{total} ({100 * done // total} %), {clock(passed_s)} passed, {clock(left_s)} left"


def clock(duration_s: float) -> str:
    """Minutes and seconds, m:ss."""
    return f"{int(duration_s) // 60}:{int(duration_s) % 60:02d}"
