"""Waiting for commands."""

import time
from threading import Timer

from flatrope_planner.domain import DriveCommand
from flatrope_planner.nodes.command_mailbox import CommandMailbox

ONE, TWO = DriveCommand(1.0, 0.0), DriveCommand(2.0, 0.0)
LONG_S = 30.0


def test_the_newest_command_is_fresh_once_and_stays() -> None:
    mailbox = CommandMailbox()
    assert mailbox.take(0.0) == (None, False)
    mailbox.put(ONE)
    mailbox.put(TWO)
    assert mailbox.take(0.0) == (TWO, True)
    assert mailbox.take(0.0) == (TWO, False)


def test_waiting_ends_with_the_command() -> None:
    mailbox = CommandMailbox()
    Timer(0.05, mailbox.put, [ONE]).start()
    assert mailbox.take(LONG_S) == (ONE, True)


def test_closing_ends_all_waiting() -> None:
    mailbox = CommandMailbox()
    begun_s = time.monotonic()
    Timer(0.05, mailbox.close).start()
    assert mailbox.take(LONG_S) == (None, False)
    mailbox.sleep(LONG_S)
    assert mailbox.closed
    assert time.monotonic() - begun_s < LONG_S


def test_a_new_episode_begins_without_a_command() -> None:
    mailbox = CommandMailbox()
    mailbox.put(ONE)
    mailbox.clear()
    assert mailbox.take(0.0) == (None, False)
