"""What the planner node, the closed loop and the tests know of whoever plans."""

from typing import Protocol

from flatrope_planner.domain import Observation, ObservationSpec, Plan


class PlanningCore(Protocol):
    """What plans: `planning.planner.Planner`, or a stand-in for it."""

    @property
    def observation_spec(self) -> ObservationSpec:
        """What `plan` wants to see."""
        ...

    def plan(self, observation: Observation) -> Plan:
        """The plan for one observation."""
        ...
