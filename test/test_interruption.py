"""Requests to end: what they interrupt, and what they do not."""

import signal
from collections.abc import Iterator

import pytest

from flatrope_planner.interruption import REQUESTS, heard_afterwards, interrupt_when_asked_to_end


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in REQUESTS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", REQUESTS)
def test_what_must_not_be_left_half_done_is_done_before_a_request_is_heard(number: signal.Signals) -> None:
    interrupt_when_asked_to_end()
    done = []

    def work() -> None:
        with heard_afterwards():
            signal.raise_signal(number)
            done.append(number)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [number]
    assert signal.getsignal(number) is signal.default_int_handler


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt_when_asked_to_end()
    with heard_afterwards():
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
