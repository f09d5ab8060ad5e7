"""What comes of a fault, from recordings made up by hand."""

from dataclasses import replace

import pytest
from straight_drive import good_plan, straight_drive

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.fault_benchmark import summary, table
from flatrope_planner.evaluation.fault_injections import BrokenFromTheStart, SensorFault
from flatrope_planner.evaluation.fault_verdict import Trial, Verdict, verdict
from flatrope_planner.evaluation.faults import FAULTS, Fault, faults_named
from flatrope_planner.evaluation.witness_events import Beat, Garbage, PlanSeen, StatusSeen, Timeline, from_line, to_line

# The steady clock shows 1000 s where ROS time shows 0 s.
START_S = 1000.0
FAULT = Fault("odometry_nan", "NaN", SensorFault(("odometry",), "nan"), r"finite")
# From 10 s to 12 s of ROS time, watched until 18 s.
TRIAL = Trial(FAULT, START_S + 10.0, START_S + 12.0, START_S + 18.0)


def seen(t0_s: float, age_s: float = 0.2) -> PlanSeen:
    """A good plan, seen when it was so old."""
    return good_plan(t0_s, age_s, START_S + t0_s + age_s)


def status(time_s: float, level: int, **words: str) -> StatusSeen:
    return StatusSeen(START_S + time_s, dict.fromkeys(words, level), words)


def timeline(*plans: PlanSeen, statuses: tuple[StatusSeen, ...] = ()) -> Timeline:
    beats = [Beat(START_S + 0.05 * i, 50_000_000 * i) for i in range(400)]
    return Timeline(beats=beats, plans=list(plans), statuses=list(statuses))


NAMED = (status(9.0, 0, inputs="all inputs arrive"), status(11.0, 2, inputs="odometry is not finite"))


def judged(known: Timeline, trial: Trial = TRIAL) -> Verdict:
    return verdict(trial, known, straight_drive())


def test_survived_when_it_plans_again_in_time_and_has_said_why_it_did_not() -> None:
    # A plan for a moment before the end does not count, nor does one of a time before the fault.
    result = judged(timeline(seen(9.5), seen(11.9), seen(13.3), seen(13.8), statuses=NAMED))
    assert result.survived
    assert result.recovery_s == pytest.approx(1.5)
    assert result.named is True
    assert result.note == ""
    assert result.status == ("inputs: odometry is not finite",)
    assert result.good_meanwhile == 0


@pytest.mark.parametrize(
    ("plans", "statuses", "trial", "note"),
    [
        ((), NAMED, TRIAL, "no good plan after the fault's end"),
        ((seen(14.0),), NAMED, TRIAL, "recovered only after 2.2 s"),
        ((seen(13.0),), NAMED[:1], TRIAL, "the status said nothing of /finite/"),
        ((seen(13.0),), NAMED, replace(TRIAL, planner_ended="exit code -9"), "exit code -9"),
        # What was said before the fault does not speak of it, nor does what is said long after.
        ((seen(13.0),), (status(9.0, 2, a="finite"), status(11.0, 2, a="finite")), TRIAL, "the status said nothing"),
        ((seen(13.0),), (status(14.1, 2, inputs="not finite"),), TRIAL, "the status said nothing of /finite/"),
        ((seen(13.0),), (status(11.0, 0, inputs="all are finite"),), TRIAL, "the status said nothing of /finite/"),
    ],
)
def test_not_survived(plans: tuple[PlanSeen, ...], statuses: tuple[StatusSeen, ...], trial: Trial, note: str) -> None:
    result = judged(timeline(*plans, statuses=statuses), trial)
    assert not result.survived
    assert result.note.startswith(note)


def test_a_value_in_words_names_the_fault_too() -> None:
    said = StatusSeen(START_S + 11.0, {"inputs": 0}, {"inputs": "all arrive", "inputs.rejection": "x is not finite"})
    assert judged(timeline(seen(13.0), statuses=(said,))).status == ("inputs.rejection: x is not finite",)


def test_bad_plans_are_counted_and_do_not_count_as_recovery() -> None:
    stale, beside = seen(12.5, age_s=1.7), replace(seen(13.0), ego=(70.0, 0.0, 0.0))
    result = judged(timeline(stale, beside, seen(14.5), statuses=NAMED))
    assert result.bad_plans == ("1.70 s old", "starts 5.00 m and 0 degrees from the true pose")
    assert result.recovery_s == pytest.approx(2.7)


def test_a_fallback_is_neither_good_nor_bad_and_its_reason_names_the_fault() -> None:
    fallback = replace(seen(11.0), status=1, reason="the plan is not finite", ego=(0.0, 0.0, 0.0))
    result = judged(timeline(fallback, seen(12.2)))
    assert (result.survived, result.fallbacks, result.bad_plans) == (True, 1, ())


def test_a_harmless_fault_stops_nothing() -> None:
    trial = replace(TRIAL, fault=replace(FAULT, harmless=True, words=""))
    assert judged(timeline(seen(11.0), seen(12.5)), trial).survived
    assert judged(timeline(seen(12.5)), trial).note == "no good plan meanwhile, though the fault is harmless"


def test_of_a_fault_that_does_not_end_the_longest_wait_counts() -> None:
    fault = replace(FAULT, injection=BrokenFromTheStart(), words="")
    trial = Trial(fault, START_S + 10.0, START_S + 16.0, START_S + 16.0)
    result = judged(timeline(seen(12.0), seen(12.5), seen(14.3), seen(14.8)), trial)
    assert result.recovery_s == pytest.approx(1.8)
    assert result.survived
    assert judged(timeline(seen(12.0)), trial).note == "3.8 s without a good plan"
    assert judged(timeline(), trial).note == "no good plan"


def test_stamps_of_damaged_pictures_are_forgotten_when_time_goes_back() -> None:
    known = Timeline()
    known.take(Beat(1.0, 20))
    known.take(Garbage(15))
    known.take(Beat(1.1, 30))
    assert known.garbage_ns == {15}
    known.take(Beat(1.2, 10))
    assert known.garbage_ns == set()


def test_a_leap_back_that_shows_only_after_its_order_ends_when_it_shows() -> None:
    leapt = [Beat(START_S + 12.05 + 0.05 * i, 7_050_000_000 + 50_000_000 * i) for i in range(100)]
    known = timeline()
    known.beats[:] = [beat for beat in known.beats if beat.wall_s <= START_S + 12.0] + leapt
    assert known.clock_at(START_S + 12.0) == 12_000_000_000
    assert known.clock_from(START_S + 12.0) == 7_050_000_000
    # Time that goes on as it should is what it was at that moment.
    assert known.clock_from(START_S + 11.0) == 11_000_000_000


def test_events_survive_a_line_of_output() -> None:
    for event in (seen(3.0), NAMED[0], Beat(1.5, 7)):
        again = from_line(f"[plan_witness] {to_line(event)}")
        assert again == event
    assert from_line("[planner] anything else") is None


def test_the_summary_counts_and_the_table_says_what_is_wrong() -> None:
    good = Verdict(True, 0.5, (), 0, 0, True, (), "")
    bad = Verdict(False, None, ("old", "old"), 0, 1, False, (), "no good plan after the fault's end")
    result = summary({"one": good, "two": bad})
    assert (result["injected"], result["survived"], result["bad_plans_published"]) == (2, 1, 2)
    assert result["max_recovery_s"] == 0.5
    lines = table(result).splitlines()
    assert "never" in lines[2]
    assert "no good plan after the fault's end" in lines[2]
    assert lines[3] == "1 of 2 survived, 2 bad plans published, slowest recovery 0.50 s"


def test_faults_are_chosen_by_name() -> None:
    assert [fault.name for fault in faults_named(["odometry_nan", "camera_missing"])] == [
        "camera_missing",
        "odometry_nan",
    ]
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30
    with pytest.raises(InputError, match="there is no fault 'rain'"):
        faults_named(["rain"])
