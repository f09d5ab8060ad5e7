"""What is said about who delivers and who does not: levels, words and figures, by times that are handed in."""

import pytest

from flatrope_planner.errors import InputError
from flatrope_planner.nodes.input_records import InputRecord, InputRecords
from flatrope_planner.nodes.inputs import InputState
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.publishers import Publishers
from flatrope_planner.planning.observation import CameraLag

DRIVER = Publishers(heard=("/driver",))
NOBODY = Publishers()
DEAF = Publishers(unheard=("/driver (QoS mismatch: offers best_effort, asked for is reliable)",))
LAG = CameraLag("tele", "wide", 0.6)


def refused() -> None:
    msg = "image of 0 bytes"
    raise InputError(msg)


def unforeseen() -> None:
    raise ZeroDivisionError


def used() -> None:
    pass


def test_each_kind_of_silence_has_its_words() -> None:
    record = InputRecord("/image")
    assert record.complaint(0.0, 1.0, NOBODY) == "no publisher on /image"
    assert record.complaint(0.0, 1.0, DRIVER) == "nothing has come on /image, though /driver publishes there"
    assert record.complaint(0.0, 1.0, DEAF) == f"/image cannot be heard: {DEAF.unheard[0]}"
    record.take(5.0, used)
    assert record.complaint(6.0, 1.0, DRIVER) is None
    assert record.complaint(7.5, 1.0, DRIVER) == "nothing on /image for 2.5 s, though /driver publishes there"
    assert record.complaint(7.5, 1.0, NOBODY) == "no publisher on /image"


def test_a_topic_whose_messages_are_all_refused_does_not_deliver() -> None:
    record = InputRecord("/image")
    record.take(5.0, used)
    for second in range(6, 9):
        assert record.take(float(second), refused) == "image of 0 bytes"
    assert record.complaint(6.0, 1.0, DRIVER) is None
    assert record.complaint(8.0, 1.0, DRIVER) == "nothing on /image can be used: image of 0 bytes"
    assert (record.received, record.rejected) == (4, 3)
    record.take(9.0, used)
    assert record.complaint(9.0, 1.0, DRIVER) is None


def test_no_exception_leaves_a_callback() -> None:
    record = InputRecord("/image")
    assert record.take(1.0, unforeseen) == "ZeroDivisionError: ZeroDivisionError"
    assert (record.received, record.rejected) == (1, 1)


def test_rates_are_of_arrivals_and_nothing_is_divided_by_zero() -> None:
    record = InputRecord("/image")
    assert record.rate_hz(0.0, 1.0) == 0.0
    record.take(10.0, used)
    assert record.rate_hz(10.0, 1.0) == 0.0
    # A burst at one moment of a coarse clock.
    record.take(10.0, used)
    assert record.rate_hz(10.0, 1.0) == 0.0
    for i in range(1, 200):
        record.take(10.0 + 0.05 * i, used)
    assert record.rate_hz(19.95, 1.0) == pytest.approx(20.0)
    assert record.rate_hz(21.0, 1.0) == 0.0


def test_another_frame_id_is_told_and_then_forgotten() -> None:
    record = InputRecord("/image", used_s=0.0)
    changes = [record.changes_frame(float(i), frame) for i, frame in enumerate(("wide", "wide", "rear", "rear"))]
    assert changes == [False, False, True, False]
    assert record.warnings(12.0, DRIVER) == ["frame_id of /image was 'wide' and is 'rear'"]
    assert record.warnings(12.1, DRIVER) == []
    assert record.frame_changes == 1


def test_several_publishers_and_those_that_are_not_heard_are_named() -> None:
    record = InputRecord("/image")
    assert record.warnings(0.0, Publishers(("/a", "/b"), DEAF.unheard)) == [
        f"/image: {DEAF.unheard[0]}",
        "/image has several publishers: /a, /b",
    ]


def test_a_rejection_of_long_ago_is_told_as_that() -> None:
    record = InputRecord("/image")
    record.take(5.0, refused)
    record.take(5.1, used)
    assert record.values(305.0, 1.0, DRIVER)["rejection"] == "image of 0 bytes (300 s ago)"


def test_what_is_odd_about_messages_that_can_be_used_is_a_warning() -> None:
    record = InputRecord("/odometry", oddity="header.frame_id is empty")
    record.take(5.0, used)
    state = InputState()
    report = InputRecords(1.0, {"odometry": record}).report(5.5, {"odometry": DRIVER}, state)
    assert (report.level, report.message) == (Level.WARN, "/odometry: header.frame_id is empty")


def records(**used_s: float) -> InputRecords:
    return InputRecords(1.0, {name: InputRecord(f"/{name}", last_s=at, used_s=at) for name, at in used_s.items()})


def test_the_report_names_the_silent_and_counts_the_rejected() -> None:
    both = records(image=0.0, odometry=9.5)
    both.records["odometry"].take(9.6, refused)
    state = InputState(missing="waiting for images", ages_s={"odometry": 0.0314})
    report = both.report(10.0, {"image": NOBODY, "odometry": DRIVER}, state)
    assert (report.level, report.message) == (Level.ERROR, "no publisher on /image")
    assert report.values == {
        "image.topic": "/image",
        "image.publishers": "0",
        "image.rate_hz": "0.0",
        "image.received": "0",
        "image.rejected": "0",
        "odometry.topic": "/odometry",
        "odometry.publishers": "1",
        "odometry.rate_hz": "0.0",
        "odometry.received": "1",
        "odometry.rejected": "1",
        "odometry.rejection": "image of 0 bytes (0 s ago)",
        "odometry.age_s": "0.031",
    }


@pytest.mark.parametrize(
    ("state", "level", "message"),
    [
        (InputState(), Level.OK, "all inputs arrive"),
        (InputState(missing="waiting for history"), Level.WARN, "waiting for history"),
        (InputState(lag=LAG), Level.WARN, "camera tele is 0.60 s behind camera wide"),
        (
            InputState(missing="old", stale="camera tele is 1.20 s old", lag=LAG),
            Level.STALE,
            "camera tele is 1.20 s old; camera tele is 0.60 s behind camera wide",
        ),
    ],
)
def test_levels_of_inputs_that_arrive(state: InputState, level: Level, message: str) -> None:
    report = records(image=10.0).report(10.0, {"image": DRIVER}, state)
    assert (report.level, report.message) == (level, message)


def test_an_optional_input_may_be_silent_but_not_unheard() -> None:
    command = InputRecords(1.0, {"command": InputRecord("/command", optional=True)})
    assert command.report(10.0, {"command": NOBODY}, InputState()).level is Level.OK
    report = command.report(10.0, {"command": DEAF}, InputState())
    assert (report.level, report.message) == (Level.WARN, f"/command: {DEAF.unheard[0]}")
