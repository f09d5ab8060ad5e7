"""Drives scenes to their end without ROS, on the same schedule as the nodes.

Odometry and control run at 20 Hz, plans are made every 0.5 s. Only the moments that an observation may ask for are
rendered, as a plan depends on no other picture.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.domain import Decision, DriveCommand, ObservationSpec, Trajectory
from flatrope_planner.planning.core import PlanningCore
from flatrope_planner.planning.observation import ObservationBuffer
from flatrope_planner.planning.pose import Pose2D
from flatrope_planner.planning.stated_decision import decision_of
from flatrope_planner.planning.tracking import track
from flatrope_planner.simulation.driver import ReferenceDriver
from flatrope_planner.simulation.rig import SensorRig
from flatrope_planner.simulation.world import STEP_S, World

PLAN_PERIOD_S = 0.5
STEPS_PER_PLAN = round(PLAN_PERIOD_S / STEP_S)
# The first plan falls due when the history is full; until then the reference driver has the wheel.
FIRST_PLAN_STEP = round(HISTORY_SPAN_S / STEP_S)


@dataclass(frozen=True)
class Tick:
    """One plan of an episode."""

    time_s: float
    rationale: str
    # What the rationale says, None if it says nothing known.
    decision: Decision | None


@dataclass(frozen=True)
class _ActivePlan:
    trajectory: Trajectory
    pose_t0: Pose2D
    t0_s: float


class Pilot(Protocol):
    """Whoever has the wheel."""

    ticks: list[Tick]

    def command(self) -> DriveCommand:
        """The command for the coming step, from the world's present state."""
        ...


class ReferencePilot:
    """The reference driver, planning and tracked on the planner's own schedule."""

    def __init__(self, world: World) -> None:
        """Take the wheel in this world."""
        self._world, self._driver = world, ReferenceDriver(world)
        self._active: _ActivePlan | None = None
        self.ticks: list[Tick] = []

    def command(self) -> DriveCommand:
        """Follow the reference plan, a new one every plan period."""
        if self._active is None or self._world.steps % STEPS_PER_PLAN == 0:
            plan = self._driver.plan()
            self._active = _ActivePlan(plan.trajectory, _pose(self._world), self._world.time_s)
            self.ticks.append(Tick(self._world.time_s, plan.rationale, plan.decision))
        return _follow(self._active, self._world)


class PlannerPilot:
    """A planning core that sees rendered cameras and odometry, as the planner node does."""

    def __init__(self, world: World, core: PlanningCore, *, blind: bool = False, delay_s: float = 0.0) -> None:
        """Take the wheel in this world.

        Args:
            blind: show grey pictures instead of what the cameras see.
            delay_s: scene time between an observation and the moment its plan is driven by.
        """
        self._world, self._core, self._delay_s = world, core, delay_s
        self._buffer = ObservationBuffer(core.observation_spec)
        self._rig = SensorRig(world, self._buffer, _picture_steps(core.observation_spec), blank=blind)
        self._handover = ReferencePilot(world)
        self._active: _ActivePlan | None = None
        self._coming: list[_ActivePlan] = []
        self.ticks: list[Tick] = []

    def command(self) -> DriveCommand:
        """Take in what the sensors show, plan when a plan is due, and follow the newest plan in force."""
        world = self._world
        self._rig.sense()
        if world.steps >= FIRST_PLAN_STEP and (world.steps - FIRST_PLAN_STEP) % STEPS_PER_PLAN == 0:
            plan = self._core.plan(self._buffer.observe())
            self._coming.append(_ActivePlan(plan.trajectory, _pose(world), world.time_s))
            self.ticks.append(Tick(world.time_s, plan.rationale.text, decision_of(plan.rationale.text)))
        while self._coming and world.time_s >= self._coming[0].t0_s + self._delay_s - STEP_S / 2.0:
            self._active = self._coming.pop(0)
        return self._handover.command() if self._active is None else _follow(self._active, world)


@dataclass(frozen=True)
class Episode:
    """How one drive went."""

    success: bool
    failures: tuple[str, ...]
    duration_s: float
    distance_m: float
    ticks: tuple[Tick, ...]


def drive(world: World, pilot: Pilot) -> Episode:
    """Run the world to its end with the pilot at the wheel."""
    while not world.outcome.done:
        world.step(pilot.command())
    outcome = world.outcome
    return Episode(outcome.success, outcome.failures, world.time_s, world.s_m, tuple(pilot.ticks))


def _picture_steps(spec: ObservationSpec) -> int:
    """World steps between pictures so that every moment an observation asks for has one."""
    return math.gcd(round(spec.frame_period_s / STEP_S), STEPS_PER_PLAN, FIRST_PLAN_STEP)


def _pose(world: World) -> Pose2D:
    return Pose2D(world.ego.x_m, world.ego.y_m, world.ego.yaw_rad)


def _follow(plan: _ActivePlan, world: World) -> DriveCommand:
    return track(plan.trajectory, plan.pose_t0, _pose(world), world.ego.speed_mps, world.time_s - plan.t0_s)
