"""What a recording says of itself: numbers worked out by hand."""

import pytest

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes.picture_losses import PictureLosses
from flatrope_planner.nodes.recording_tally import (
    ODOMETRY_TYPE,
    PICTURE_TYPES,
    PictureTally,
    RecordingTally,
    TopicTally,
)

LARGE = 896 * 320 * 3


def pictures_of(frames: list[int]) -> PictureTally:
    """A camera of 10 Hz of which the pictures with these numbers came."""
    tally = PictureTally(PictureLosses(raw=True, fast_dds=True, share_lost=0.25))
    for frame in frames:
        tally.take(seconds_to_ns(50.0 + 0.1 * frame), LARGE)
    return tally


def test_losses_are_those_of_the_whole_recording_not_of_its_end() -> None:
    # 64 pictures as three of four came, then 64 without loss. Windows of 32: 31 gaps of which every third is double.
    lossy = [4 * (n // 3) + n % 3 for n in range(64)]
    after = [lossy[-1] + 1 + n for n in range(64)]
    tally = pictures_of([*lossy, *after])
    # 10 of the first window's 31 gaps are double, 11 of the second's.
    sent = 32 * (31 + 10) / 31 + 32 * (31 + 11) / 31 + 2 * 32
    assert tally.share_lost() == pytest.approx(1.0 - 4 * 32 / sent)
    assert pictures_of(list(range(100))).share_lost() == pytest.approx(0.0)


def test_a_warning_comes_at_the_share_that_is_asked_for() -> None:
    # Two of three came: 31 gaps of which 15 are double, a third is lost.
    two_of_three = [3 * (n // 2) + n % 2 for n in range(32)]
    assert "about 33% of the pictures are lost" in pictures_of(two_of_three).newest.warning()
    unmoved = PictureLosses(raw=True, fast_dds=True)
    for frame in two_of_three:
        unmoved.take(seconds_to_ns(50.0 + 0.1 * frame), LARGE)
    assert unmoved.warning() == ""


def test_the_line_at_the_end_counts_by_kind() -> None:
    tally = RecordingTally()
    raw, compressed = PICTURE_TYPES
    for name, kind, times_s in (
        ("/right", raw, (10.5, 11.0)),
        ("/left", compressed, (10.0,)),
        ("/odom", ODOMETRY_TYPE, (9.0, 10.0, 13.5)),
        ("/hint", "std_msgs/msg/String", (11.0,)),
    ):
        tally.topics[name] = TopicTally(kind)
        for time_s in times_s:
            tally.topics[name].take(time_s)
    assert str(tally) == "4.5 s, 3 pictures (/left 1, /right 2), 3 of odometry, 1 other messages"
    assert tally.count(PICTURE_TYPES, ["/left", "/odom", "/none"]) == 1
    tally.topics["/right"].pictures = pictures_of([3 * (n // 2) + n % 2 for n in range(32)])
    tally.topics["/left"].pictures = pictures_of(list(range(32)))
    assert tally.losses() == ["about 33% of the pictures on /right"]
