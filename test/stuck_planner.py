"""A planner node that is stuck in something: `python stuck_planner.py WHAT [ROS arguments]`. Run by test_running.

It says "stuck" when it is.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from ros import ANY_AGE
from stand_ins import StraightCore

from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.nodes.running import run_node

MINUTE_S = 60.0


def sleep() -> None:
    """Wait, as for a device."""
    time.sleep(MINUTE_S)


def hash_much() -> None:
    """One call into C after the other."""
    data = bytes(2**28)
    while True:
        hashlib.sha256(data)


def multiply() -> None:
    """Products of matrices, seconds each."""
    matrix = np.ones((3000, 3000))
    while True:
        matrix @ matrix


def loop() -> None:
    """Nothing but Python."""
    while True:
        pass


AT: dict[str, Callable[[], None]] = {"sleep": sleep, "hash": hash_much, "product": multiply, "loop": loop}


class StuckNode(PlannerNode):
    """Holds up the main thread itself, and not in Python."""

    def close(self) -> None:
        """Never end."""
        os.read(os.pipe()[0], 1)


def main() -> None:
    """Run the node."""
    what = sys.argv[1]
    core = StraightCore()

    def be_stuck() -> None:
        print("stuck", flush=True)
        AT.get(what, sleep)()

    def load(_parameters: object) -> StraightCore:
        if what == "load":
            be_stuck()
        return core

    def make() -> PlannerNode:
        return StuckNode(load) if what == "closing" else PlannerNode(load)

    core.fail = be_stuck
    sys.argv[1:2] = ["--ros-args", *ANY_AGE]
    run_node(make)


if __name__ == "__main__":
    main()
