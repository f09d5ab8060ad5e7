"""Drives with the reference driver and writes down what the cameras saw, what it did and why.

A teacher that never errs shows a student only good positions. So most episodes are disturbed: kicks at the wheel and at
the pedals push the car off its plan, and the samples show the way back (after DART, Laskey et al. 2017). At times the
car rolls on at its speed whatever the plan says: then its motion does not tell what to do next, only the pictures do.
A student may also drive itself, while the teacher says what it would have done (DAgger, Ross et al. 2011).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import DriveCommand, Observation, Trajectory
from flatrope_planner.errors import NotReadyError
from flatrope_planner.planning.observation import ObservationBuffer, ObservationSpec
from flatrope_planner.planning.pose import Pose2D
from flatrope_planner.planning.tracking import track
from flatrope_planner.simulation.camera import CAMERAS
from flatrope_planner.simulation.driver import ReferenceDriver, ReferencePlan
from flatrope_planner.simulation.rig import SensorRig, ego_pose, stamp_of
from flatrope_planner.simulation.road import LANE_WIDTH_M
from flatrope_planner.simulation.sights import SightMap, find_sights
from flatrope_planner.simulation.situation import situation
from flatrope_planner.simulation.world import STEP_S, Family, Split, World
from flatrope_planner.training.samples import PATCHES, TrainingSample
from flatrope_planner.vla.pictures import encode_picture

TICK_STEPS = 10
DISTURBED_SHARE = 0.7
# Of moments at which the car stands as it stood before, only some are worth keeping.
STANDING_KEEP_SHARE = 0.35
STANDING_MPS = 0.1
# Part of the disturbances that hold the speed, and for how long: the span of the history and more.
HOLD_SHARE = 0.4
HOLD_S = (1.5, 3.0)
# Who drives instead of the reference driver, once there is something to observe.
Student = Callable[[Observation], Trajectory]

# How far ahead the ego's lane is marked in the pictures.
LANE_SIGHT_M = 60.0


@dataclass
class _Kick:
    """A push that lasts: added to the wanted speed (m/s) and yaw rate (rad/s) until `until_s`.

    With `held_mps` the wanted speed is that one instead.
    """

    until_s: float
    speed_mps: float
    yaw_rate_radps: float
    held_mps: float | None = None


class Disturbance:
    """Kicks at random moments; none in an undisturbed episode."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Roll whether this episode is disturbed, and how strongly."""
        self._rng = rng
        self._strength = float(rng.uniform(0.4, 1.0)) if rng.uniform() < DISTURBED_SHARE else 0.0
        self._next_s = float(rng.uniform(0.5, 3.0))
        self._kick = _Kick(0.0, 0.0, 0.0)

    def apply(self, command: DriveCommand, time_s: float, speed_mps: float) -> DriveCommand:
        """The command as the disturbed car receives it."""
        if self._strength and time_s >= self._next_s:
            self._start(time_s, speed_mps)
        if time_s >= self._kick.until_s:
            return command
        wanted = command.speed_mps if self._kick.held_mps is None else self._kick.held_mps
        speed = max(0.0, wanted + self._kick.speed_mps)
        return DriveCommand(speed, command.yaw_rate_radps + self._kick.yaw_rate_radps * min(speed_mps / 5.0, 1.0))

    def _start(self, time_s: float, speed_mps: float) -> None:
        rng = self._rng
        if rng.uniform() < HOLD_SHARE:
            until_s = time_s + float(rng.uniform(*HOLD_S))
            self._kick = _Kick(until_s, 0.0, 0.0, speed_mps)
            self._next_s = until_s + float(rng.uniform(1.0, 4.0))
            return
        at_wheel = rng.uniform() < 0.55
        yaw_rate = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.08, 0.3)) * self._strength
        speed = float(rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 3.5)) * self._strength
        length_s = float(rng.uniform(0.4, 1.0) if at_wheel else rng.uniform(0.6, 2.0))
        self._kick = _Kick(time_s + length_s, 0.0 if at_wheel else speed, yaw_rate if at_wheel else 0.0)
        self._next_s = time_s + length_s + float(rng.uniform(1.0, 4.0))


def collect(
    family: Family, seed: int, spec: ObservationSpec, split: Split = Split.TRAIN, student: Student | None = None
) -> Iterator[TrainingSample]:
    """Samples of one episode, every half second; the same arguments give the same samples.

    What the reference driver would do is what a sample teaches, also where the student drives. An episode that ends in
    a fault ends there.
    """
    world = World(family, seed, split)
    rng = np.random.default_rng([list(Family).index(family), list(Split).index(split), seed, 1])
    disturbance, driver = Disturbance(rng), ReferenceDriver(world)
    buffer = ObservationBuffer(spec)
    picture_steps = math.gcd(round(spec.frame_period_s / STEP_S), TICK_STEPS)
    rig = SensorRig(world, buffer, picture_steps)
    sights = _Sights(world)
    previous: ReferencePlan | None = None
    while not world.outcome.failures and not world.outcome.done:
        rig.sense()
        if world.steps % picture_steps == 0:
            sights.note()
        if world.steps % TICK_STEPS == 0:
            plan, at = driver.plan(), Pose2D(*ego_pose(world))
            followed, moment = plan.trajectory, _moment(buffer)
            if moment is not None:
                if _worth_keeping(world, plan, previous, rng):
                    yield _sample(world, moment, plan, sights.of(moment))
                followed = plan.trajectory if student is None else student(moment)
            previous = plan
        age_s = world.steps % TICK_STEPS * STEP_S
        command = track(followed, at, Pose2D(*ego_pose(world)), world.ego.speed_mps, age_s)
        world.step(disturbance.apply(command, world.time_s, world.ego.speed_mps))


def _moment(buffer: ObservationBuffer) -> Observation | None:
    """What is to be seen now, None while the history is still too short."""
    try:
        return buffer.observe()
    except NotReadyError:
        return None


class _Sights:
    """What the pictures of an episode show, by camera and stamp."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[tuple[str, int], SightMap] = {}

    def note(self) -> None:
        """Note what the cameras show now."""
        world = self._world
        line, half_m = world.scene.layout.line, LANE_WIDTH_M / 2.0
        left, right = (line.polyline(world.s_m, world.s_m + LANE_SIGHT_M, d) for d in (half_m, -half_m))
        view = world.view()
        for camera in CAMERAS:
            found = find_sights(view, camera, ego_pose(world), (left, right), PATCHES)
            self._known[camera.name, stamp_of(world)] = found

    def of(self, observation: Observation) -> tuple[SightMap, ...]:
        """Of all pictures of an observation, in their order."""
        frames = [(camera, frame) for camera, taken in observation.frames.items() for frame in taken]
        return tuple(self._known[camera, frame.stamp_ns] for camera, frame in frames)


def _worth_keeping(world: World, plan: ReferencePlan, previous: ReferencePlan | None, rng: np.random.Generator) -> bool:
    standing = world.ego.speed_mps < STANDING_MPS and previous is not None
    if standing and previous is not None and previous.rationale == plan.rationale:
        return bool(rng.uniform() < STANDING_KEEP_SHARE)
    return True


def _sample(world: World, moment: Observation, plan: ReferencePlan, sights: tuple[SightMap, ...]) -> TrainingSample:
    return TrainingSample(
        pictures=tuple(encode_picture(frame.image) for frames in moment.frames.values() for frame in frames),
        history_position_m=moment.ego_history.position_m,
        history_rotation=moment.ego_history.rotation,
        rationale=plan.rationale,
        decision=plan.decision,
        action=plan.trajectory.action,
        position_m=plan.trajectory.position_m,
        family=world.family.value,
        seed=world.seed,
        time_s=world.time_s,
        sights=sights,
        situation=situation(world),
    )
