"""What stands for a replay in the processes of a crew; they load nothing else."""

import os
import time
from collections.abc import Callable
from typing import Any

from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.replay.task import ReplayTask


def work_or_die(task: ReplayTask, told: Callable[[float], None]) -> dict[str, Any]:
    told(0.5)
    if task.name == "deadly":
        os._exit(9)
    return {"name": task.name, "status": "complete"}


def work_for_ever(task: ReplayTask, told: Callable[[float], None]) -> dict[str, Any]:
    while True:
        told(0.5)
        time.sleep(0.01)


def work_cheaply(task: ReplayTask, told: Callable[[float], None]) -> dict[str, Any]:
    """A replay with a planner that costs nothing."""
    from drives import CheapCore

    from flatrope_planner.evaluation.replay.bag_result import replayed
    from flatrope_planner.evaluation.replay.contestants import Contestants

    return replayed(task, lambda: Contestants(CheapCore()), told)


def work_without_weights(task: ReplayTask, told: Callable[[float], None]) -> dict[str, Any]:
    told(0.5)
    msg = f"no weights for {task.name}"
    raise SetupError(msg)
