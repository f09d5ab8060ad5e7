"""Complaints that differ in seconds only are one reason, told with their range."""

from flatrope_planner.evaluation.replay.reasons import Reasons


def test_seconds_become_a_range() -> None:
    reasons = Reasons()
    assert (reasons.commonest, reasons.counts) == ("", {})
    for behind_s in (4.9, 0.26, 11.0, 0.5):
        reasons.add(f"odometry is {behind_s:.2f} s behind the images; at most 0.25 s are bridged")
    reasons.add("waiting for images of camera front_2")
    assert reasons.commonest == "odometry is 0.26 to 11.00 s behind the images; at most 0.25 s are bridged"
    assert reasons.counts == {
        "odometry is 0.26 to 11.00 s behind the images; at most 0.25 s are bridged": 4,
        "waiting for images of camera front_2": 1,
    }
    assert list(reasons.counts) == sorted(reasons.counts)


def test_of_reasons_heard_as_often_the_first_counts() -> None:
    reasons = Reasons()
    for complaint in ("b waits 1.5 s", "a", "a", "b waits 1.5 s"):
        reasons.add(complaint)
    assert reasons.commonest == "b waits 1.5 s"


def test_a_reason_may_have_any_characters() -> None:
    reasons = Reasons()
    reasons.add("camera \0 waits 1.5 s")
    assert reasons.commonest == "camera \0 waits 1.5 s"
