"""The planner node around a core that fails when told to: slow, raising, or with a plan that nobody may follow.

The node and all that guards it are the real ones; only what `load_planner` returns is wrapped.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from flatrope_planner.domain import Observation, Plan, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.order_pipe import OrderReader
from flatrope_planner.evaluation.witness_events import Obeyed, to_line
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.planner_node import PlannerNode, load_planner
from flatrope_planner.nodes.running import run_node
from flatrope_planner.planning.core import PlanningCore

# Environment variable with the pipe of orders, one of `FAULTS` or "none" a line.
ORDERS = "FLATROPE_FAULT_ORDERS"
SLOW, RAISES = "slow", "raises"
SLOW_S = 3.0
POLL_S = 0.02
TELEPORT_M = 50.0


def _not_finite(plan: Trajectory) -> Trajectory:
    return replace(plan, position_m=np.full_like(plan.position_m, np.nan))


def _teleporting(plan: Trajectory) -> Trajectory:
    return replace(plan, position_m=plan.position_m + TELEPORT_M)


def _reversing(plan: Trajectory) -> Trajectory:
    return replace(plan, position_m=-plan.position_m - plan.time_from_start_s[:, None], speed_mps=-plan.speed_mps - 1.0)


BAD_PLANS: dict[str, Callable[[Trajectory], Trajectory]] = {
    "not_finite": _not_finite,
    "teleports": _teleporting,
    "reverses": _reversing,
}
FAULTS = (SLOW, RAISES, *BAD_PLANS)


class FaultyCore:
    """A core that does what it is told; anything but planning it leaves to the real one."""

    def __init__(self, core: PlanningCore, orders: OrderReader) -> None:
        """Wrap a core."""
        self._core, self._orders = core, orders
        self._fault = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def plan(self, observation: Observation) -> Plan:
        """The real core's plan, late, spoilt, or not at all.

        Raises:
            RuntimeError: when told to.
        """
        self.obey()
        until_s = time.monotonic() + SLOW_S
        while self._fault == SLOW and time.monotonic() < until_s:
            time.sleep(POLL_S)
            self.obey()
        if self._fault == RAISES:
            msg = "the model has failed, as it was told to"
            raise RuntimeError(msg)
        plan = self._core.plan(observation)
        spoil = BAD_PLANS.get(self._fault)
        return plan if spoil is None else replace(plan, trajectory=spoil(plan.trajectory))

    def obey(self) -> None:
        """Take the orders that have come.

        Raises:
            InputError: when one is none.
        """
        for order in self._orders.read():
            _, _, fault = order.partition(" ")
            if fault not in (*FAULTS, "none"):
                msg = f"the planner knows no fault {fault!r}; it knows none, {', '.join(FAULTS)}"
                raise InputError(msg)
            self._fault = fault
            print(to_line(Obeyed(time.monotonic(), order)), flush=True)


def load_faulty_planner(parameters: PlannerParameters) -> PlanningCore:
    """The planner that the parameters ask for, made faulty.

    Raises:
        SetupError: as `load_planner`.
    """
    core: Any = FaultyCore(load_planner(parameters), OrderReader(Path(os.environ[ORDERS])))
    faulty: PlanningCore = core
    return faulty


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(lambda: PlannerNode(load_faulty_planner), lasting=True)
