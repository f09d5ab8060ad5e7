"""Stamps that leap, message by message."""

import struct

from flatrope_planner.evaluation.replay.bag_source import RawMessage
from flatrope_planner.evaluation.replay.leaps import MOST_HELD, Leaps
from flatrope_planner.evaluation.replay.rejections import Rejections


def message(recorded_s: float, stamp_s: int) -> RawMessage:
    return RawMessage("/camera", "sensor_msgs/msg/Image", int(recorded_s * 1e9), struct.pack("<4xiI", stamp_s, 0))


def test_a_clock_that_has_stopped_does_not_fill_memory() -> None:
    leaps = Leaps(["/camera"], Rejections())
    sent = [message(0.1 * i, 50) for i in range(3 * MOST_HELD)]
    settled: list[RawMessage] = []
    for number, each in enumerate(sent, start=1):
        settled += leaps.settled(each)
        assert number - len(settled) < MOST_HELD
    assert settled == sent
