"""The planning thread: when it plans, what it drops, and that nothing ends it but us."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

import pytest
from stand_ins import SPEC, StraightCore, feed

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import SetupError
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.worker import FinishedTick, PlanningWorker
from flatrope_planner.planning.core import PlanningCore

PATIENCE_S = 10.0


def wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.002)


@contextmanager
def working(
    inputs: PlannerInputs, load: Callable[[], PlanningCore]
) -> Iterator[tuple[PlanningWorker, list[FinishedTick]]]:
    delivered: list[FinishedTick] = []
    worker = PlanningWorker(inputs, load, delivered.append, period_s=0.5)
    worker.start()
    try:
        yield worker, delivered
    finally:
        worker.close()


def polled_until(worker: PlanningWorker, condition: Callable[[], bool]) -> None:
    def poll() -> bool:
        worker.poll()
        return condition()

    wait_for(poll)


def levels(worker: PlanningWorker) -> dict[str, Level]:
    return {report.task: report.level for report in worker.reports()}


def test_plans_once_per_period_of_the_inputs_time() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, lambda: len(delivered) == 1)
        feed(inputs, 3.05, 3.4)
        for _ in range(20):
            worker.poll()
            time.sleep(0.001)
        assert len(delivered) == 1
        feed(inputs, 3.45, 3.5)
        polled_until(worker, lambda: len(delivered) == 2)
    assert [tick.ego.t0_ns for tick in delivered] == [seconds_to_ns(3.0), seconds_to_ns(3.5)]
    assert all(tick.plan is not None and tick.plan.t0_ns == tick.ego.t0_ns for tick in delivered)
    # The pose belongs to t0: 5 m/s from the start.
    assert delivered[1].ego.pose.x_m == pytest.approx(17.5)
    assert delivered[1].ego.motion.speed_mps == pytest.approx(5.0)
    assert (delivered[1].ego.frame_id, delivered[1].ticks, delivered[1].dropped_ticks) == ("map", 2, 0)


def test_ticks_that_fall_due_while_one_is_in_flight_are_dropped_and_counted() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    core.gate.clear()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, core.planning.is_set)
        worker.poll()
        assert worker.dropped_ticks == 0
        for from_s, until_s in ((3.05, 3.5), (3.55, 4.0), (4.05, 4.2)):
            feed(inputs, from_s, until_s)
            for _ in range(3):
                worker.poll()
        assert worker.dropped_ticks == 2
        core.gate.set()
        polled_until(worker, lambda: len(delivered) >= 1)
        (report,) = (each for each in worker.reports() if each.task == "planning")
        assert (report.level, "2 more fell due and were dropped" in report.message) == (Level.WARN, True)
        polled_until(worker, lambda: len(delivered) == 2)
        assert worker.dropped_ticks == 2
        assert levels(worker)["planning"] is Level.OK
    # Then it goes on with the newest observation, not with a queued one.
    assert [observation.t0_ns for observation in core.seen] == [seconds_to_ns(3.0), seconds_to_ns(4.2)]


def test_a_leap_of_the_inputs_time_drops_nothing() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    core.gate.clear()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, _):
        polled_until(worker, core.planning.is_set)
        worker.poll()
        feed(inputs, 20.0, 20.1)
        worker.poll()
        assert worker.dropped_ticks == 0
        # Ticks that fall due after the leap count as ever.
        feed(inputs, 20.15, 20.7)
        worker.poll()
        assert worker.dropped_ticks == 1
        core.gate.set()


def test_an_incomplete_observation_is_no_tick_and_is_tried_again() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    feed(inputs, 0.0, 0.4)
    with working(inputs, lambda: core) as (worker, delivered):
        wait_for(lambda: levels(worker)["model"] is Level.OK)
        for _ in range(20):
            worker.poll()
            time.sleep(0.001)
        assert not delivered
        assert (worker.ticks, worker.dropped_ticks, worker.failed_ticks) == (0, 0, 0)
        feed(inputs, 0.45, 1.6)
        polled_until(worker, lambda: len(delivered) == 1)


def test_a_model_that_cannot_be_loaded_is_told() -> None:
    def load() -> PlanningCore:
        msg = "weights are missing"
        raise SetupError(msg)

    with working(PlannerInputs(SPEC.cameras), load) as (worker, _):
        wait_for(lambda: levels(worker)["model"] is Level.ERROR)
        worker.poll()
        assert worker.reports()[0].message == "model not loaded: weights are missing"


def test_a_model_that_needs_other_cameras_is_told() -> None:
    with working(PlannerInputs(("left",)), StraightCore) as (worker, _):
        wait_for(lambda: levels(worker)["model"] is Level.ERROR)
        assert "the target needs front_wide, front_tele" in worker.reports()[0].message


class PanicException(BaseException):
    """As libraries in Rust raise it: no Exception."""


@pytest.mark.parametrize("error", [PanicException("index out of bounds"), SystemExit(3)])
def test_a_library_that_panics_while_loading_is_told(error: BaseException) -> None:
    def load() -> PlanningCore:
        raise error

    with working(PlannerInputs(SPEC.cameras), load) as (worker, _):
        assert not worker.wait_until_loaded()
        assert f"model not loaded: {type(error).__name__}: {error} (load, line" in worker.reports()[0].message


@pytest.mark.parametrize("kind", [ValueError, PanicException, SystemExit])
def test_one_bad_tick_is_told_and_the_next_one_is_planned(kind: type[BaseException]) -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    feed(inputs, 0.0, 3.0)

    def burst() -> None:
        raise kind("out of cheese")  # noqa: EM101

    core.fail = burst
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, lambda: levels(worker)["planning"] is Level.ERROR)
        assert f"{kind.__name__}: out of cheese" in worker.reports()[1].message
        # Whoever guards the plans hears of it.
        assert [(tick.plan, tick.ego.t0_ns, tick.ticks) for tick in delivered] == [(None, seconds_to_ns(3.0), 0)]
        assert "out of cheese" in delivered[0].failure
        core.fail = lambda: None
        feed(inputs, 3.05, 3.5)
        polled_until(worker, lambda: len(delivered) == 2)
        assert levels(worker)["planning"] is Level.OK
        assert (worker.ticks, worker.failed_ticks) == (1, 1)


def test_how_long_ticks_take_is_told_in_flight_and_afterwards() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    core.gate.clear()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, core.planning.is_set)
        assert worker.idle_s() == 0.0
        wait_for(lambda: float(worker.reports()[1].values["in_flight_s"]) >= 0.05)
        assert worker.reports()[1].message.startswith("no plan yet: the first one has been in the making for 0.")
        core.gate.set()
        polled_until(worker, lambda: len(delivered) == 1)
        assert delivered[0].took_s >= 0.04
        assert worker.reports()[1].message == f"1 plans made, the last in {delivered[0].took_s:.2f} s"
        # Nothing more to plan from.
        wait_for(lambda: (worker.idle_s() or 0.0) > 0.02)


def test_until_the_model_is_loaded_the_draft_is_not_known() -> None:
    worker = PlanningWorker(PlannerInputs(SPEC.cameras), StraightCore, lambda _: None, 0.5)
    assert (worker.reports()[2].message, worker.idle_s()) == ("no model is loaded, and no draft", None)
    gate = Event()

    def load() -> PlanningCore:
        gate.wait(PATIENCE_S)
        return StraightCore()

    with working(PlannerInputs(SPEC.cameras), load) as (worker, _):
        assert worker.reports()[2] == TaskReport("draft", Level.OK, "the model is being loaded, and the draft with it")
        gate.set()
        wait_for(lambda: worker.reports()[2].message == "the target writes alone")


def test_a_planner_that_cannot_be_reset_or_a_plan_that_cannot_be_sent_ends_no_thread() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    feed(inputs, 0.0, 3.0)
    sent: list[FinishedTick] = []

    def deliver(tick: FinishedTick) -> None:
        sent.append(tick)
        if len(sent) == 1:
            raise ValueError("nobody at home")  # noqa: EM101

    worker = PlanningWorker(inputs, lambda: core, deliver, period_s=0.5)
    worker.start()
    try:
        polled_until(worker, lambda: levels(worker)["planning"] is Level.ERROR)
        assert "nobody at home" in worker.reports()[1].message
        feed(inputs, 3.05, 3.5)
        polled_until(worker, lambda: len(sent) == 2)
        wait_for(lambda: levels(worker)["planning"] is Level.OK)
        del core.resets
        worker.reset()
        polled_until(worker, lambda: "resets" in worker.reports()[1].message)
        core.resets = 0
        feed(inputs, 3.55, 4.0)
        polled_until(worker, lambda: len(sent) == 3)
    finally:
        worker.close()


def test_a_plan_from_before_the_clock_was_set_back_is_not_delivered() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    core.gate.clear()
    feed(inputs, 0.0, 30.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, core.planning.is_set)
        inputs.clear()
        worker.reset()
        core.gate.set()
        feed(inputs, 1.0, 3.0)
        polled_until(worker, lambda: len(delivered) == 1)
    assert delivered[0].ego.t0_ns == seconds_to_ns(3.0)


def test_closing_waits_for_the_plan_in_flight_but_does_not_deliver_it() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    core.gate.clear()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, core.planning.is_set)
        worker._ending = True
        core.gate.set()
    assert not delivered
    assert not worker._thread.is_alive()
