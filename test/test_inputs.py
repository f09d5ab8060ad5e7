"""What the planner takes in: checked by the clock, aligned, behind a lock that nothing leaves held."""

import numpy as np
import pytest

from flatrope_planner.domain import CameraFrame, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.planning.observation import ObservationSpec, OdometrySample
from flatrope_planner.planning.plausibility import StampCheck
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


class Now:
    """A clock of the test's own."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> int:
        return seconds_to_ns(self.now_s)


def timed(now_s: float, max_age_s: float = 1.0) -> tuple[PlannerInputs, Now]:
    now = Now(now_s)
    inputs = PlannerInputs(("wide",), StampCheck(now, max_age_s))
    inputs.adopt(SPEC)
    return inputs, now


def test_nothing_is_planned_from_what_is_too_old() -> None:
    inputs, now = timed(3.0)
    feed(inputs, 2.0)
    now.now_s = 4.0
    assert inputs.observe()[0].t0_ns == seconds_to_ns(3.0)
    now.now_s = 4.01
    stale = "camera wide is 1.01 s old, odometry is 1.01 s old; nothing is planned from more than 1 s"
    with pytest.raises(NotReadyError, match=stale):
        inputs.observe()
    state = inputs.state()
    assert state.stale == state.missing == stale
    assert state.ages_s == pytest.approx({"camera wide": 1.01, "odometry": 1.01})


def test_without_a_limit_a_recording_is_planned_from_by_any_clock() -> None:
    inputs, _ = timed(1.7e9, max_age_s=0.0)
    feed(inputs, 2.0)
    assert inputs.observe()[0].t0_ns == seconds_to_ns(3.0)
    assert inputs.state().stale is None


def test_a_stamp_from_the_future_harms_nothing() -> None:
    inputs, now = timed(3.0)
    feed(inputs, 2.0)
    for ahead_s in (0.6, 1e9):
        with pytest.raises(InputError, match="ahead of the clock"):
            inputs.add_image("wide", CameraFrame(seconds_to_ns(3.0 + ahead_s), np.zeros((2, 2, 3), np.uint8)))
        with pytest.raises(InputError, match="ahead of the clock"):
            inputs.add_odometry(still(3.0 + ahead_s), "map")
    now.now_s = 3.1
    inputs.add_image("wide", CameraFrame(seconds_to_ns(3.1), np.zeros((2, 2, 3), np.uint8)))
    assert inputs.observe()[0].t0_ns == seconds_to_ns(3.1)


def still(time_s: float) -> OdometrySample:
    return OdometrySample(seconds_to_ns(time_s), np.zeros(3), yaw_quaternion(0.0), np.zeros(3))


def test_a_source_that_begins_anew_is_told_once_and_without_the_lock() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    told: list[int | None] = []
    # Asks for what the lock guards: it would wait for ever if the lock were held.
    inputs.on_restart = lambda: told.append(inputs.newest_t0_ns())
    for time_s in (0.1, 0.15):
        with pytest.raises(InputError, match="behind the newest one"):
            inputs.add_odometry(still(time_s), "map")
    assert not told
    inputs.add_odometry(still(0.2), "map")
    assert told == [None]
    assert inputs.missing() == "waiting for images of camera wide"


@pytest.mark.parametrize("method", ["add_image", "add_odometry", "observe", "clear", "set_command", "newest_t0_ns"])
def test_no_exception_leaves_the_lock_held(method: str) -> None:
    inputs = PlannerInputs(("wide",))
    arguments = {
        "add_image": ("wide", CameraFrame(1, np.zeros((2, 2, 3), np.uint8))),
        "add_odometry": (still(1.0), "map"),
        "set_command": ("left",),
    }

    class Broken:
        def __getattr__(self, _: str) -> object:
            raise ZeroDivisionError

        def __setattr__(self, _: str, __: object) -> None:
            raise ZeroDivisionError

    whole, inputs._buffer = inputs._buffer, Broken()  # type: ignore[assignment]
    with pytest.raises(ZeroDivisionError):
        getattr(inputs, method)(*arguments.get(method, ()))
    inputs._buffer = whole
    assert not inputs._lock.locked()
    feed(inputs, 2.0)
    assert inputs.newest_t0_ns() == seconds_to_ns(3.0)


def test_pictures_of_another_camera_under_the_same_name_do_not_mix_with_the_old_ones() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    inputs.adopt(SPEC)
    inputs.forget_camera("wide")
    assert inputs.missing() == "waiting for images of camera wide"
    inputs.add_image("wide", CameraFrame(seconds_to_ns(3.1), np.zeros((2, 2, 3), np.uint8)))
    assert inputs.missing() == "waiting for an image of camera wide from 0.50 s before t0"


def test_a_localisation_that_was_corrected_ends_what_was_planned_before_it() -> None:
    inputs = PlannerInputs(("wide",))
    feed(inputs, 2.0)
    told: list[int | None] = []
    inputs.on_restart = lambda: told.append(inputs.newest_t0_ns())
    # 3 m ahead and 2 m to the left of where it drives, with and without another name of the frame.
    for number, (time_s, frame_id) in enumerate(((3.05, ""), (3.1, "odom"))):
        position = np.array([33.0 + 0.5 * number, 2.0, 0.0])
        velocity = np.array([10.0, 0.0, 0.0])
        sample = OdometrySample(seconds_to_ns(time_s), position, yaw_quaternion(0.0), velocity, frame_id=frame_id)
        inputs.add_odometry(sample, frame_id)
    # Pictures are as good as before.
    assert told == [seconds_to_ns(3.0)] * 2
    assert "as it was of '' in '' and is of '' in 'odom'" in str(inputs.missing())
