"""The simulation's loop: steps a world through its episodes at the pace asked for, under commands from outside.

Knows no ROS: what is to be seen of each moment goes to a `Stage`, commands come from a mailbox.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.domain import DriveCommand, seconds_to_ns
from flatrope_planner.nodes.command_mailbox import CommandMailbox
from flatrope_planner.planning.pose import Pose2D
from flatrope_planner.planning.tracking import track
from flatrope_planner.simulation.driver import ReferenceDriver, ReferencePlan
from flatrope_planner.simulation.world import STEP_S, Family, Split, World

# Odometry every step, pictures at 10 Hz, the reference driver's view at 2 Hz.
CAMERA_STEPS = 2
REFERENCE_STEPS = 10
# Until the planner can know the history it needs, the reference driver has the wheel; as in the benchmark.
HANDOVER_STEPS = round(HISTORY_SPAN_S / STEP_S)
# The clock begins here, as zero means "no stamp", and leaps this far between episodes: nothing of the last one is
# then young enough to be mistaken for the next.
EPOCH_S = 1.0
GAP_S = 5.0


@dataclass(frozen=True)
class Moment:
    """One step of an episode, ready to be shown."""

    world: World
    stamp_ns: int
    # The reference driver's plan, at the steps that have one.
    reference: ReferencePlan | None

    @property
    def has_pictures(self) -> bool:
        """Whether the cameras expose now."""
        return self.world.steps % CAMERA_STEPS == 0


class Stage(Protocol):
    """Where the simulation is seen."""

    def show(self, moment: Moment) -> None:
        """Publish a moment."""
        ...

    def conclude(self, world: World, control_timeouts: int) -> None:
        """Publish how an episode ended, and how often the car went on because no command had come in time."""
        ...

    def warn(self, text: str) -> None:
        """Say what a person should know."""
        ...


@dataclass(frozen=True)
class DrivingSettings:
    """What to drive and how fast."""

    families: tuple[Family, ...]
    split: Split
    seed: int
    # 0: as fast as possible.
    real_time_factor: float
    wait_for_command: bool
    # Longest wait for the very first command, and for any other (s of wall time).
    start_timeout_s: float
    control_timeout_s: float
    # Drive all families once, or again and again with other seeds.
    once: bool


class Driving:
    """Runs episodes until they are done or the mailbox is closed."""

    def __init__(self, settings: DrivingSettings, mailbox: CommandMailbox, stage: Stage) -> None:
        """Prepare; `run` drives."""
        self._settings, self._mailbox, self._stage = settings, mailbox, stage
        self._steering = _Steering(settings, mailbox, stage)
        self._stamp_ns = seconds_to_ns(EPOCH_S)

    def run(self) -> None:
        """Drive all episodes."""
        for family, seed in self._episodes():
            self._drive(World(family, seed, self._settings.split))
            if self._mailbox.closed:
                return
            self._stamp_ns += seconds_to_ns(GAP_S)

    def _episodes(self) -> Iterator[tuple[Family, int]]:
        seeds = [self._settings.seed] if self._settings.once else count(self._settings.seed)
        return ((family, seed) for seed in seeds for family in self._settings.families)

    def _drive(self, world: World) -> None:
        """One episode."""
        self._steering.begin_anew()
        reference = _ReferenceWheel(world)
        pace = _Pace(self._settings.real_time_factor)
        while not world.outcome.done and not self._mailbox.closed:
            plan = reference.plan() if world.steps % REFERENCE_STEPS == 0 else None
            self._stage.show(Moment(world, self._stamp_ns, plan))
            handed_over = world.steps >= HANDOVER_STEPS
            command = self._steering.command(reference.command) if handed_over else reference.command()
            world.step(command)
            self._stamp_ns += seconds_to_ns(STEP_S)
            self._mailbox.sleep(pace.rest_s())
        if world.outcome.done:
            self._stage.show(Moment(world, self._stamp_ns, None))
            self._stage.conclude(world, self._steering.timeouts)


class _ReferenceWheel:
    """The reference driver, and the command that follows its last plan."""

    def __init__(self, world: World) -> None:
        self._world, self._driver = world, ReferenceDriver(world)

    def plan(self) -> ReferencePlan:
        self._plan, self._pose_t0, self._t0_s = self._driver.plan(), _pose(self._world), self._world.time_s
        return self._plan

    def command(self) -> DriveCommand:
        world, age_s = self._world, self._world.time_s - self._t0_s
        return track(self._plan.trajectory, self._pose_t0, _pose(world), world.ego.speed_mps, age_s)


class _Steering:
    """The commands from outside, waited for if they are late."""

    def __init__(self, settings: DrivingSettings, mailbox: CommandMailbox, stage: Stage) -> None:
        self._settings, self._mailbox, self._stage = settings, mailbox, stage
        self._steps_without = CAMERA_STEPS
        self._timeout_s = settings.start_timeout_s
        self._warned = False
        # Waits of this episode that have ended without a command.
        self.timeouts = 0

    def begin_anew(self) -> None:
        """Forget the command of the last episode."""
        self._mailbox.clear()
        self.timeouts = 0
        self._steps_without = CAMERA_STEPS

    def command(self, otherwise: Callable[[], DriveCommand]) -> DriveCommand:
        """The newest command; `otherwise` as long as none has come in this episode."""
        late = self._settings.wait_for_command and self._steps_without >= CAMERA_STEPS
        command, fresh = self._mailbox.take(self._timeout_s if late else 0.0)
        if late and not fresh:
            self.timeouts += 1
            self._warn("the reference driver goes on" if command is None else "the last one goes on")
        if fresh or late:
            self._steps_without = 0
            self._timeout_s = self._settings.control_timeout_s
        self._warned &= not fresh
        self._steps_without += 1
        return otherwise() if command is None else command

    def _warn(self, consequence: str) -> None:
        """Warn once about each stretch without commands."""
        if not self._warned and not self._mailbox.closed:
            self._stage.warn(f"no command for {self._timeout_s:.1f} s: {consequence}, one picture at a time")
            self._warned = True


class _Pace:
    """Keeps simulated time from running faster than asked for; time lost while waiting is not made up for."""

    def __init__(self, real_time_factor: float) -> None:
        self._step_s = STEP_S / real_time_factor if real_time_factor > 0.0 else 0.0
        self._next_s = time.monotonic()

    def rest_s(self) -> float:
        """How long to wait before the next step."""
        now_s = time.monotonic()
        self._next_s = max(self._next_s + self._step_s, now_s)
        return self._next_s - now_s


def _pose(world: World) -> Pose2D:
    return Pose2D(world.ego.x_m, world.ego.y_m, world.ego.yaw_rad)
