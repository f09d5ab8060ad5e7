"""Seconds into a recording, whatever clock stamped; stretches without plans, and whose fault they are."""

import pytest

from flatrope_planner.domain import ObservationSpec
from flatrope_planner.evaluation.replay.holes import Holes, needed_s
from flatrope_planner.evaluation.replay.recorded_time import EVERYTHING, RecordedTime, Silence

SECOND_NS = 1_000_000_000
ODOMETRY, CAMERA = "/odometry", "/camera"


def ns(time_s: float) -> int:
    return round(time_s * SECOND_NS)


def hear(time: RecordedTime, stamps_s: list[float], log_s: list[float]) -> None:
    for stamp_s, at_s in zip(stamps_s, log_s, strict=True):
        time.hear_odometry(ODOMETRY, ns(stamp_s), ns(at_s))


@pytest.mark.parametrize(("epoch_s", "slower"), [(1000.0, 1.0), (0.5, 1.0), (1_700_000_000.0, 5.0), (3.0, 0.2)])
def test_seconds_count_from_the_first_message_whatever_the_stamps(epoch_s: float, slower: float) -> None:
    # The recorder runs for 2 s before the first pose comes.
    time = RecordedTime(ns(1000.0))
    steps_s = [i * 0.5 for i in range(21)]
    hear(time, [epoch_s + step_s for step_s in steps_s], [1002.0 + slower * step_s for step_s in steps_s])
    assert time.into_s(ns(epoch_s + 4.0)) == pytest.approx(6.0)
    assert time.end_s == pytest.approx(12.0)
    assert time.silences == [Silence(EVERYTHING, 0.0, 2.0)]


def test_stamps_that_begin_anew_go_on_after_the_last_drive() -> None:
    time = RecordedTime(ns(100.0))
    hear(time, [50.0, 50.5, 51.0], [100.0, 100.5, 101.0])
    time.begin_anew()
    hear(time, [50.0, 50.5], [104.0, 104.5])
    assert time.into_s(ns(50.5)) == pytest.approx(4.5)
    assert set(time.silences) == {Silence(EVERYTHING, 1.0, 4.0), Silence(ODOMETRY, 1.0, 4.0)}


def test_a_stamp_that_leads_astray_moves_nothing_and_three_do() -> None:
    time = RecordedTime(0)
    hear(time, [10.0, 10.5, 4_000.0, 11.0], [0.0, 0.5, 0.6, 1.0])
    assert (time.into_s(ns(11.0)), time.end_s) == (1.0, 1.0)
    hear(time, [4_000.0, 4_000.5, 4_001.0, 4_001.5], [1.5, 2.0, 2.5, 3.0])
    assert time.into_s(ns(4_001.5)) == pytest.approx(3.0)


def test_pictures_tell_of_silence_but_do_not_lead() -> None:
    time = RecordedTime(0)
    time.hear_picture(CAMERA, ns(7.0), 0)
    hear(time, [5.0 + i for i in range(6)], [float(i) for i in range(6)])
    time.hear_picture(CAMERA, ns(5.0), 0)
    time.hear_picture(CAMERA, ns(9.0), ns(4.0))
    time.hear_picture(CAMERA, ns(9_000.0), ns(4.5))
    time.close()
    assert time.end_s == 5.0
    silences = [silence for silence in time.silences if silence.topic == CAMERA]
    assert silences == [Silence(CAMERA, 0.0, 4.0), Silence(CAMERA, 4.0, 5.0)]


def test_pictures_that_come_before_all_poses_are_something() -> None:
    time = RecordedTime(ns(10.0))
    for i in range(30):
        time.hear_picture(CAMERA, ns(1000.0 + 0.1 * i), ns(12.0 + 0.1 * i))
    hear(time, [1003.0], [15.0])
    assert time.silences == [Silence(EVERYTHING, 0.0, 2.0)]
    assert time.into_s(ns(1003.0)) == 5.0


def lines(silences: list[Silence], planned_s: list[float], end_s: float, refused: str = "") -> list[str]:
    holes = Holes(0.5, silences)
    for t0_s in planned_s:
        holes.planned(t0_s, refused)
    return holes.lines(end_s, "")


STEADY = [1.5 + 0.5 * i for i in range(8)]


def test_where_plans_follow_each_other_there_is_no_hole() -> None:
    assert lines([], STEADY, 5.7) == []
    # After a history of 1.5 s a plan every 0.5 s, each at most 0.25 s late.
    assert lines([], [2.25], 3.0) == []
    assert lines([], [2.3], 3.0) == ["no plan from 0.0 s to 2.3 s"]
    assert lines([], [2.0, 2.76], 3.0) == ["no plan from 2.0 s to 2.8 s"]
    assert lines([], [2.0], 2.8) == ["no plan from 2.0 s to 2.8 s"]


def test_how_long_a_stretch_may_be_depends_on_the_interval_and_on_how_often_pictures_come() -> None:
    def told(period_s: float, gap_s: float, spacing_s: float = 0.1) -> bool:
        holes = Holes(period_s, [])
        for t0_s in (1.5, 1.5 + gap_s):
            holes.planned(t0_s, "")
        return bool(holes.lines(1.5 + gap_s, "", spacing_s))

    # Interval, a quarter of it but at least 0.25 s, and the time between two pictures.
    for period_s, longest_s in ((0.1, 0.45), (0.5, 0.85), (1.0, 1.35), (4.0, 5.1)):
        assert not told(period_s, longest_s - 0.01)
        assert told(period_s, longest_s + 0.01)
    assert not told(0.6, 1.0, spacing_s=0.5)
    # With many pictures to look at, more history is waited for.
    assert needed_s(ObservationSpec(("front",), 4, 0.1)) == 1.5
    assert needed_s(ObservationSpec(("front",), 5, 0.5)) == 2.0


def test_where_stamps_begin_anew_a_history_has_to_follow() -> None:
    holes = Holes(0.5, [])
    holes.planned(1.5, "")
    holes.begin_anew()
    holes.planned(3.5, "")
    holes.planned(5.5, "")
    assert holes.lines(5.6, "") == ["no plan from 3.5 s to 5.5 s"]


def test_a_hole_is_blamed_on_what_refused_or_on_who_was_silent() -> None:
    assert lines([], [1.5, 8.0], 8.0, "odometry has a gap") == ["no plan from 1.5 s to 8.0 s (odometry has a gap)"]
    silences = [Silence(CAMERA, 2.0, 7.5), Silence(ODOMETRY, 2.0, 3.2)]
    assert lines(silences, [1.5, 8.0], 8.0) == [f"no plan from 1.5 s to 8.0 s (nothing on {CAMERA})"]


def test_what_was_not_recorded_is_not_missed() -> None:
    assert lines([Silence(EVERYTHING, 1.6, 60.0)], [1.5, 61.9], 62.0) == []
    # Of silences that lie elsewhere nothing counts.
    elsewhere = [Silence(EVERYTHING, 0.0, 1.0), Silence(EVERYTHING, 90.0, 99.0)]
    assert len(lines([elsewhere[0], elsewhere[1]], [2.5, 61.9], 62.0)) == 1
    assert len(lines([Silence(EVERYTHING, 1.6, 60.0)], [1.5, 65.0], 65.0)) == 1


def test_of_many_holes_three_are_named() -> None:
    found = lines([], [10.0 * i for i in range(1, 7)], 60.0)
    assert len(found) == 4
    assert found[-1] == "and 3 more stretches without a plan"
