"""Who plans in a replay: the planner that is judged, and beside it, if asked for, the same one without speculation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from flatrope_planner.domain import Observation, Plan, Trajectory
from flatrope_planner.planning.core import PlanningCore

# Trajectories are drawn with this seed: the same ones in every replay.
SEED = 0


class SamplingCore(PlanningCore, Protocol):
    """A planning core that can also draw trajectories: `planning.planner.Planner`."""

    def plan_with_samples(
        self, observation: Observation, seed: int, samples: int
    ) -> tuple[Plan, tuple[Trajectory, ...]]:
        """The plan, and further trajectories behind the same rationale."""
        ...


@dataclass(frozen=True)
class PlannedMoment:
    """What all contestants answered to one observation."""

    plan: Plan
    samples: tuple[Trajectory, ...] = ()
    # Without speculation.
    plain: Plan | None = None


@dataclass
class Contestants:
    """The planner, how many trajectories it shall draw besides, and its twin that writes alone."""

    planner: SamplingCore
    samples: int = 0
    plain: PlanningCore | None = None
    _count: int = 0

    def reset(self) -> None:
        """A new drive."""
        self._count = 0
        self.planner.reset()
        if self.plain is not None:
            self.plain.reset()

    def plan(self, observation: Observation) -> PlannedMoment:
        """Everybody's answer; who goes first alternates, as the second finds warmer caches."""
        self._count += 1
        if self.plain is None:
            return PlannedMoment(*self._planned(observation))
        if self._count % 2:
            planned = self._planned(observation)
            return PlannedMoment(*planned, self.plain.plan(observation))
        plain = self.plain.plan(observation)
        return PlannedMoment(*self._planned(observation), plain)

    def _planned(self, observation: Observation) -> tuple[Plan, tuple[Trajectory, ...]]:
        if not self.samples:
            return self.planner.plan(observation), ()
        return self.planner.plan_with_samples(observation, SEED, self.samples)


def comparison(plan: Plan, plain: Plan) -> Mapping[str, Any]:
    """Whether two plans are the same to the last bit, and how their times compare."""
    same_tokens = [t.text for t in plan.rationale.tokens] == [t.text for t in plain.rationale.tokens]
    pairs = zip(_arrays(plan.trajectory), _arrays(plain.trajectory), strict=True)
    return {
        "identical_rationale": same_tokens and plan.rationale.text == plain.rationale.text,
        "identical_trajectory": all(np.array_equal(mine, other) for mine, other in pairs),
        "plain_stage_ms": dict(plain.stage_ms),
    }


def _arrays(trajectory: Trajectory) -> tuple[Any, ...]:
    return trajectory.position_m, trajectory.yaw_rad, trajectory.speed_mps, trajectory.action
