"""What the planner node, the closed loop and the tests know of whoever plans."""

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


def warm_up(core: PlanningCore) -> None:
    """Plan once for a car that stands in the dark: a first plan takes several times as long as those to come.

    Raises:
        SetupError: saying that it was the warm-up plan, when the core cannot plan at all.
    """
    spec = core.observation_spec
    dark = np.zeros(WARM_UP_PICTURE, np.uint8)
    stamps_s = [WARM_UP_T0_S - back * spec.frame_period_s for back in reversed(range(spec.frames_per_camera))]
    frames = tuple(CameraFrame(seconds_to_ns(stamp_s), dark) for stamp_s in stamps_s)
    standing = EgoHistory(np.zeros((HISTORY_POSES, 3)), np.tile(np.eye(3), (HISTORY_POSES, 1, 1)))
    try:
        core.plan(Observation(seconds_to_ns(WARM_UP_T0_S), dict.fromkeys(spec.cameras, frames), standing))
    except Exception as err:
        # Without these words it would be taken for the fault of a picture or a pose that came in.
        msg = f"the warm-up plan: {described(err)}"
        raise SetupError(msg) from err
    core.reset()
