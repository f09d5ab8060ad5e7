"""Requests to end: Ctrl-C, SIGTERM, and a terminal that is closed (SIGHUP). To a command all are one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def unless_ignored() -> list[signal.Signals]:
    """All of them; a closed terminal only where `nohup` does not keep it from this process.

    Shells keep Ctrl-C from what runs in their background; whoever sends it there by name is to be heard.
    """
    nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in REQUESTS if number is not signal.SIGHUP or not nohup]


def interrupt_when_asked_to_end() -> None:
    """From now on each is a `KeyboardInterrupt`."""
    for number in unless_ignored():
        signal.signal(number, signal.default_int_handler)


@contextmanager
def heard_afterwards(*, is_ending: bool = False) -> Iterator[None]:
    """What is done within is not left half done: requests to end are heard when it is over. For the main thread.

    Args:
        is_ending: an exception is on its way; nobody needs to be asked again.
    """
    if threading.current_thread() is not threading.main_thread():
        # Nothing interrupts other threads.
        yield
        return
    heard: list[int] = []
    # Handlers that are not Python's own are None, and could not be put back.
    before = {number: handler for number in REQUESTS if (handler := signal.getsignal(number)) is not None}
    for number in before:
        signal.signal(number, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in () if is_ending else heard:
            signal.raise_signal(each)
