"""What the planner node, the closed loop and the tests know of whoever plans."""

import math
import time
from itertools import cycle
from typing import Protocol

import numpy as np

from flatrope_planner.dimensions import HISTORY_POSES
from flatrope_planner.domain import (
    CameraFrame,
    EgoHistory,
    Observation,
    ObservationSpec,
    Plan,
    SpeculationHealth,
    seconds_to_ns,
)
from flatrope_planner.errors import SetupError, described

# Far enough behind zero that every picture of an observation has a stamp.
WARM_UP_T0_S = 100.0
WARM_UP_PICTURE = (160, 448, 3)
# All that differ, beginning with black.
WARM_UP_SHADES = 256


class PlanningCore(Protocol):
    """What plans: `planning.planner.Planner`, or a stand-in for it."""

    @property
    def observation_spec(self) -> ObservationSpec:
        """What `plan` wants to see."""
        ...

    @property
    def health(self) -> SpeculationHealth:
        """How speculation does."""
        ...

    def plan(self, observation: Observation) -> Plan:
        """The plan for one observation."""
        ...

    def reset(self) -> None:
        """A new drive: nothing of the last one is remembered."""
        ...


def warm_up(core: PlanningCore, enough_s: float = math.inf) -> float:
    """Plan for a car that stands in the dark: a first plan takes several times as long as those to come.

    Args:
        enough_s: a first plan that takes longer says little yet of those to come, so that a second one is made.

    Returns:
        How long the last of these plans took (s of real time).

    Raises:
        SetupError: saying that it was the warm-up plan, when the core cannot plan at all.
    """
    try:
        took_s = _time_of_plan(core, shades=1)
        if took_s > enough_s:
            # Pictures that were seen before, or that are alike, would cost nothing.
            took_s = _time_of_plan(core, shades=WARM_UP_SHADES)
    except Exception as err:
        # Without these words it would be taken for the fault of a picture or a pose that came in.
        msg = f"the warm-up plan: {described(err)}"
        raise SetupError(msg) from err
    return took_s


def _time_of_plan(core: PlanningCore, shades: int) -> float:
    """Plan, forget it, and say how long it took (s); each of `shades` pictures is of a grey of its own."""
    spec = core.observation_spec
    stamps_s = [WARM_UP_T0_S - back * spec.frame_period_s for back in reversed(range(spec.frames_per_camera))]
    greys = cycle(range(shades))
    frames = {
        camera: tuple(CameraFrame(seconds_to_ns(s), np.full(WARM_UP_PICTURE, next(greys), np.uint8)) for s in stamps_s)
        for camera in spec.cameras
    }
    standing = EgoHistory(np.zeros((HISTORY_POSES, 3)), np.tile(np.eye(3), (HISTORY_POSES, 1, 1)))
    begun_s = time.monotonic()
    core.plan(Observation(seconds_to_ns(WARM_UP_T0_S), frames, standing))
    took_s = time.monotonic() - begun_s
    core.reset()
    return took_s
