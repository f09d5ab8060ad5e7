"""The planner's managed life, led by a manager over the real middleware."""

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from flatrope_planner.msg import PlannedTrajectory
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node
from ros import Listener, closing, ros, spin_for, spin_until
from stand_ins import StraightCore
from test_planner_node import Sensors

from flatrope_planner.errors import SetupError
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.planning.core import PlanningCore

TRAJECTORY, STATUS = "/planner/output/trajectory", "/planner/output/status"
CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
SHUTDOWN = {
    "unconfigured": Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
    "inactive": Transition.TRANSITION_INACTIVE_SHUTDOWN,
    "active": Transition.TRANSITION_ACTIVE_SHUTDOWN,
}
WAITING = ("-p", "planner:autostart:=false", "-p", "planner:status_period_s:=0.1")


class Loader:
    """Loads stand-ins and keeps none of them."""

    def __init__(self) -> None:
        self.gate = Event()
        self.gate.set()
        self.failure = ""
        self.loaded: list[weakref.ref[StraightCore]] = []

    def __call__(self, _parameters: PlannerParameters) -> PlanningCore:
        self.gate.wait(10.0)
        if self.failure:
            raise SetupError(self.failure)
        core = StraightCore()
        self.loaded.append(weakref.ref(core))
        return core


class Manager:
    """Leads the planner, and hears and feeds it."""

    def __init__(self, planner: PlannerNode, test: Node, executor: Any) -> None:
        self.planner, self.executor = planner, executor
        self.sensors = Sensors(test)
        self.listener = Listener(test, [(PlannedTrajectory, TRAJECTORY), (DiagnosticArray, STATUS)])
        self._change = test.create_client(ChangeState, "/planner/change_state")
        self._get = test.create_client(GetState, "/planner/get_state")
        self.until(lambda: bool(self._change.service_is_ready() and self._get.service_is_ready()))

    def until(self, condition: Callable[[], bool]) -> None:
        spin_until(self.executor, condition, self.sensors.publish)

    def ask(self, transition: int) -> Any:
        return self._change.call_async(ChangeState.Request(transition=Transition(id=transition)))

    def change(self, transition: int) -> bool:
        asked = self.ask(transition)
        self.until(asked.done)
        return bool(asked.result().success)

    def state(self) -> str:
        asked = self._get.call_async(GetState.Request())
        self.until(asked.done)
        return str(asked.result().current_state.label)

    def status(self, task: str) -> DiagnosticStatus:
        """A status that came after this call."""
        seen = len(self.listener[STATUS])
        self.until(lambda: len(self.listener[STATUS]) > seen + 1)
        return {each.name: each for each in self.listener[STATUS][-1].status}[f"planner: {task}"]

    def newest(self, task: str) -> bytes | None:
        """The level of the newest status, None before the first one."""
        named = [each for message in self.listener[STATUS][-1:] for each in message.status]
        return next((each.level for each in named if each.name == f"planner: {task}"), None)

    def plans(self) -> int:
        return len(self.listener[TRAJECTORY])


@contextmanager
def managed(load: Loader, *arguments: str) -> Iterator[Manager]:
    with ros(*WAITING, *arguments):
        test, planner = Node("test"), PlannerNode(load)
        with closing(planner, test) as executor:
            yield Manager(planner, test, executor)


def wait_for_plans(manager: Manager, further: int = 2) -> None:
    before = manager.plans()
    manager.until(lambda: manager.plans() >= before + further)


def test_a_manager_leads_it_through_its_life() -> None:
    load = Loader()
    with managed(load) as manager:
        spin_for(manager.executor, 0.3)
        assert (manager.state(), load.loaded) == ("unconfigured", [])
        assert manager.status("lifecycle").level == DiagnosticStatus.WARN
        assert manager.status("model").message == "no model is loaded"

        assert manager.change(CONFIGURE)
        assert manager.state() == "inactive"
        assert manager.status("model").message == "the model is loaded"
        for _ in range(100):
            manager.sensors.publish()
        spin_for(manager.executor, 0.3)
        assert manager.plans() == 0

        assert manager.change(ACTIVATE)
        assert (manager.state(), manager.status("lifecycle").level) == ("active", DiagnosticStatus.OK)
        wait_for_plans(manager)

        assert manager.change(DEACTIVATE)
        spin_for(manager.executor, 0.2)
        before, received = manager.plans(), _received(manager)
        manager.until(lambda: _received(manager) > received + 50)
        assert (manager.state(), manager.plans()) == ("inactive", before)
        assert manager.change(ACTIVATE)
        wait_for_plans(manager)
        assert len(load.loaded) == 1


def test_when_it_is_active_it_says_where_to_look(capfd: pytest.CaptureFixture[str]) -> None:
    with managed(Loader(), "-r", "~/output/trajectory:=/plan") as manager:
        assert manager.change(CONFIGURE)
        assert "active in" not in capfd.readouterr().err
        assert manager.change(ACTIVATE)
    said = capfd.readouterr().err
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    assert (
        f"active in ROS domain {domain}: plans on /plan, how it is on /planner/output/status and /diagnostics" in said
    )


def _received(manager: Manager) -> int:
    """Messages of odometry that the planner has taken in."""
    return manager.planner._records.records["odometry"].received


def test_while_the_model_is_loaded_nothing_stands_still() -> None:
    load = Loader()
    load.gate.clear()
    with managed(load) as manager:
        asked = manager.ask(CONFIGURE)
        manager.until(lambda: manager.planner.state == "configuring")
        assert manager.state() == "configuring"
        assert manager.status("model").message == "the model is being loaded"
        received = _received(manager)
        manager.until(lambda: _received(manager) > received + 50)
        # One transition at a time.
        assert not manager.change(CONFIGURE)
        assert not asked.done()
        load.gate.set()
        manager.until(asked.done)
        assert asked.result().success
        assert manager.state() == "inactive"


def test_what_does_not_fit_the_state_is_refused_and_ends_nothing() -> None:
    with managed(Loader()) as manager:
        assert not any(manager.change(transition) for transition in (ACTIVATE, DEACTIVATE, CLEANUP, 99))
        assert manager.state() == "unconfigured"
        assert manager.change(CONFIGURE)
        assert not any(manager.change(transition) for transition in (CONFIGURE, DEACTIVATE))
        assert manager.change(ACTIVATE)
        assert not any(manager.change(transition) for transition in (CONFIGURE, ACTIVATE, CLEANUP))
        wait_for_plans(manager)


def test_a_model_that_could_not_be_loaded_can_be_loaded_later() -> None:
    load = Loader()
    load.failure = "no weights in /nowhere"
    with managed(load) as manager:
        for _ in range(2):
            assert not manager.change(CONFIGURE)
            assert manager.state() == "unconfigured"
            model = manager.status("model")
            assert (model.level, model.message) == (
                DiagnosticStatus.ERROR,
                "model not loaded: no weights in /nowhere",
            )
            # What is said of it does not end with configuring, which has just failed.
            failed = "unconfigured: configure has failed, for the reason that model gives: mend that"
            assert manager.status("lifecycle").message.startswith(failed)
        load.failure = ""
        assert manager.change(CONFIGURE)
        assert manager.change(ACTIVATE)
        wait_for_plans(manager)
        assert manager.status("model").level == DiagnosticStatus.OK


def test_nor_does_a_failure_end_a_node_that_starts_itself() -> None:
    load = Loader()
    load.failure = "no weights in /nowhere"
    with managed(load, "-p", "planner:autostart:=true") as manager:
        manager.until(lambda: manager.newest("model") == DiagnosticStatus.ERROR)
        assert manager.state() == "unconfigured"
        load.failure = ""
        assert manager.change(CONFIGURE)
        assert manager.change(ACTIVATE)
        wait_for_plans(manager)


def test_an_error_in_a_transition_is_told_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with managed(Loader()) as manager:
        with monkeypatch.context() as patch:
            patch.setattr(manager.planner, "_create_subscriptions", lambda: 1 / 0)
            assert not manager.change(CONFIGURE)
        assert manager.state() == "unconfigured"
        told = manager.status("lifecycle")
        assert told.level == DiagnosticStatus.ERROR
        assert told.message == "unconfigured: ZeroDivisionError: division by zero"
        assert manager.change(CONFIGURE)
        assert manager.status("lifecycle").level == DiagnosticStatus.WARN


def test_cleanup_frees_the_model_and_cycles_leave_nothing_behind() -> None:
    load = Loader()
    with managed(load) as manager:
        for cycle in range(4):
            assert manager.change(CONFIGURE)
            assert manager.change(ACTIVATE)
            wait_for_plans(manager, 1)
            assert manager.change(DEACTIVATE)
            assert manager.change(CLEANUP)
            kept = _kept(manager)
            if cycle == 0:
                first = kept
            assert kept == first
            gc.collect()
            assert [core() for core in load.loaded] == [None] * (cycle + 1)


def _kept(manager: Manager) -> dict[str, int]:
    """How much there is of what is made anew in every cycle; transitions themselves end in threads of their own."""
    until_s = time.monotonic() + 5.0
    while any(thread.name == "transition" for thread in threading.enumerate()):
        assert time.monotonic() < until_s
        time.sleep(0.01)
    planner = manager.planner
    counts = {name: len(list(getattr(planner, name))) for name in ("subscriptions", "publishers", "timers", "services")}
    return {**counts, "threads": threading.active_count(), "entities": len(planner._managed_entities)}


@pytest.mark.parametrize("state", SHUTDOWN)
def test_shutdown_from_every_state_frees_the_model(state: str) -> None:
    load = Loader()
    with managed(load) as manager:
        if state != "unconfigured":
            assert manager.change(CONFIGURE)
        if state == "active":
            assert manager.change(ACTIVATE)
            wait_for_plans(manager, 1)
        assert manager.change(SHUTDOWN[state])
        assert manager.state() == "finalized"
        assert manager.status("lifecycle").message.startswith("finalized")
        gc.collect()
        assert [core() for core in load.loaded] == [None] * len(load.loaded)
        assert not list(manager.planner._fed_by)


def test_a_plan_from_before_the_rest_is_not_published() -> None:
    load = Loader()
    with managed(load) as manager:
        assert manager.change(CONFIGURE)
        core = load.loaded[0]()
        assert core is not None
        core.gate.clear()
        assert manager.change(ACTIVATE)
        manager.until(core.planning.is_set)
        assert manager.change(DEACTIVATE)
        assert manager.change(ACTIVATE)
        stale_t0_ns = core.seen[0].t0_ns
        core.gate.set()
        wait_for_plans(manager, 1)
        stamp = manager.listener[TRAJECTORY][0].header.stamp
        assert stamp.sec * 10**9 + stamp.nanosec > stale_t0_ns
        # What it remembered of the drive before is forgotten.
        assert core.resets == 1
        del core


def test_closing_does_not_wait_for_a_model_that_is_being_loaded() -> None:
    load = Loader()
    load.gate.clear()
    began_s = time.monotonic()
    with managed(load) as manager:
        manager.ask(CONFIGURE)
        manager.until(lambda: manager.planner.state == "configuring")
    load.gate.set()
    # Far less than the ten seconds that it would have taken.
    assert time.monotonic() - began_s < 8.0
