"""Stamps judged by a clock: what passes, what is refused, and in which words."""

import pytest

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.planning.plausibility import StampCheck

WALL_S = 1.8e9


def check(stamp_s: float, now_s: float, max_age_s: float = 1.0) -> None:
    StampCheck(lambda: seconds_to_ns(now_s), max_age_s).check(seconds_to_ns(stamp_s))


@pytest.mark.parametrize("stamp_s", [89.0, 99.0, 100.0, 100.5])
def test_stamps_near_the_present_pass(stamp_s: float) -> None:
    check(stamp_s, 100.0)


@pytest.mark.parametrize(
    ("stamp_s", "now_s", "words"),
    [
        (0.0, 100.0, "stamp is 0 s: whoever publishes this does not set it$"),
        (-1.0, 100.0, "stamp is -1 s: whoever"),
        (5.0, 0.0, "there is no time yet to judge its stamp by: nothing has come on /clock"),
        (100.6, 100.0, "stamp lies 0.60 s ahead of the clock$"),
        (88.9, 100.0, "stamp lies 11.10 s behind the clock$"),
        (WALL_S, 100.0, "1799999900.00 s ahead of the clock: it is wall time, and the planner goes by simulated time"),
        (100.0, WALL_S, "1799999900.00 s behind the clock: it is simulated time, and the planner goes by wall time"),
        (WALL_S - 1e6, WALL_S, "1000000.00 s behind the clock: a recording is played with --clock"),
    ],
)
def test_other_stamps_are_refused_with_the_reason(stamp_s: float, now_s: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check(stamp_s, now_s)


def test_without_a_limit_only_the_future_is_refused() -> None:
    check(100.0, WALL_S, max_age_s=0.0)
    with pytest.raises(InputError, match="ahead of the clock"):
        check(WALL_S + 1.0, WALL_S, max_age_s=0.0)


def test_inputs_too_old_are_named() -> None:
    stamps = StampCheck(lambda: seconds_to_ns(100.0), 1.0)
    newest_ns = {
        "camera wide": seconds_to_ns(99.0),
        "camera tele": seconds_to_ns(98.5),
        "odometry": seconds_to_ns(100.0),
    }
    assert stamps.stale(newest_ns) == "camera tele is 1.50 s old; nothing is planned from more than 1 s"
    assert stamps.stale({"odometry": seconds_to_ns(99.0)}) is None
    assert StampCheck(lambda: seconds_to_ns(1e9), 0.0).stale(newest_ns) is None
