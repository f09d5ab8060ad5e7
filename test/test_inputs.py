"""What the planner takes in, and what it says about who does not deliver."""

import numpy as np
import pytest

from flatrope_planner.domain import CameraFrame, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.nodes.inputs import InputRecord, InputRecords, PlannerInputs
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.planning.observation import ObservationSpec, OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

SPEC = ObservationSpec(("wide",), frames_per_camera=2, frame_period_s=0.5)


def feed(inputs: PlannerInputs, until_s: float) -> None:
    """Odometry at 20 Hz along x at 10 m/s, pictures at 10 Hz."""
    for step in range(int(until_s / 0.05) + 1):
        time_s = 1.0 + 0.05 * step
        velocity = np.array([10.0, 0.0, 0.0])
        position = np.array([10.0 * time_s, 0.0, 0.0])
        inputs.add_odometry(OdometrySample(seconds_to_ns(time_s), position, yaw_quaternion(0.0), velocity), "map")
        if step % 2 == 0:
            inputs.add_image("wide", CameraFrame(seconds_to_ns(time_s), np.zeros((2, 2, 3), np.uint8)))


def test_what_comes_before_the_target_is_loaded_is_kept() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    inputs.adopt(SPEC)
    observation, pose, frame_id = inputs.observe()
    assert observation.t0_ns == seconds_to_ns(3.0)
    assert [frame.stamp_ns for frame in observation.frames["wide"]] == [seconds_to_ns(2.5), seconds_to_ns(3.0)]
    assert pose.x_m == pytest.approx(30.0)
    assert frame_id == "map"
    assert inputs.missing() is None


def test_a_target_with_other_cameras_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="cameras are left, the target needs wide"):
        PlannerInputs(("left",)).adopt(SPEC)


def test_cleared_inputs_are_not_ready() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    inputs.clear()
    assert inputs.newest_t0_ns() is None
    with pytest.raises(NotReadyError):
        inputs.observe()
    assert inputs.missing() == "waiting for images of camera wide, odometry"


def test_an_empty_command_ends_the_route_hint() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    inputs.set_command("turn left")
    assert inputs.observe()[0].command == "turn left"
    inputs.set_command("")
    assert inputs.observe()[0].command is None


def test_each_kind_of_silence_has_its_words() -> None:
    record = InputRecord("/image")
    assert record.complaint(0.0, 1.0, publishers=0) == "no publisher on /image"
    assert record.complaint(0.0, 1.0, publishers=1) == "nothing has come on /image"
    record.arrived(5.0)
    assert record.complaint(5.9, 1.0, publishers=1) is None
    assert record.complaint(7.5, 1.0, publishers=1) == "nothing on /image for 2.5 s"


def test_the_report_names_the_silent_and_counts_the_rejected() -> None:
    records = InputRecords(1.0, {"camera wide": InputRecord("/image"), "odometry": InputRecord("/odometry")})
    records.records["odometry"].arrived(9.5)
    records.records["odometry"].reject("no rotation")
    report = records.report(10.0, {"camera wide": 0, "odometry": 1}, "waiting for images of camera wide")
    assert (report.level, report.message) == (Level.ERROR, "no publisher on /image")
    assert report.values["odometry.received"] == "1"
    assert report.values["odometry.rejected"] == "1"
    assert report.values["odometry.rejection"] == "no rotation"


def test_inputs_that_do_not_yet_make_an_observation_are_a_warning() -> None:
    records = InputRecords(1.0, {"odometry": InputRecord("/odometry", last_s=10.0)})
    assert records.report(10.0, {"odometry": 1}, "waiting for history").level is Level.WARN
    assert records.report(10.0, {"odometry": 1}, None).level is Level.OK
