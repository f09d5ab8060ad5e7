"""Stand-ins for what is slow, shared by the tests of the nodes."""

from collections.abc import Callable
from threading import Event

import numpy as np

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import (
    CameraFrame,
    Observation,
    Plan,
    Rationale,
    SpeculationHealth,
    SpeculationStats,
    Trajectory,
    seconds_to_ns,
)
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.planning.observation import ObservationSpec, OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

SPEC = ObservationSpec(("front_wide", "front_tele"), frames_per_camera=2, frame_period_s=0.5)
SPEED_MPS = 5.0


def straight(speed_mps: float = SPEED_MPS) -> Trajectory:
    """Straight ahead at constant speed."""
    time_s = np.arange(1, FUTURE_POINTS + 1) * 0.1
    position = np.stack([speed_mps * time_s, np.zeros_like(time_s), np.zeros_like(time_s)], axis=1)
    zeros = np.zeros(FUTURE_POINTS)
    return Trajectory(position, zeros, np.full(FUTURE_POINTS, speed_mps), np.zeros((FUTURE_POINTS, 2)))


class StraightCore:
    """Plans straight ahead; waits at the gate while it is closed."""

    observation_spec = SPEC

    def __init__(self) -> None:
        """With an open gate."""
        self.gate = Event()
        self.gate.set()
        self.planning = Event()
        self.seen: list[Observation] = []
        self.fail: Callable[[], None] = lambda: None
        self.health = SpeculationHealth()
        self.resets = 0

    def reset(self) -> None:
        """Count."""
        self.resets += 1

    def plan(self, observation: Observation) -> Plan:
        """The same plan for everything."""
        self.seen.append(observation)
        self.planning.set()
        self.gate.wait(10.0)
        self.fail()
        stages = {"vision": 1.0, "prefill": 2.0, "reasoning": 3.0, "action": 4.0, "total": 10.0}
        return Plan(observation.t0_ns, straight(), Rationale("Keep going."), SpeculationStats(5, 0, 0, 5), stages)


def odometry(time_s: float) -> OdometrySample:
    """At 5 m/s along x."""
    position, velocity = np.array([SPEED_MPS * time_s, 0.0, 0.0]), np.array([SPEED_MPS, 0.0, 0.0])
    return OdometrySample(seconds_to_ns(time_s), position, yaw_quaternion(0.0), velocity)


def feed(inputs: PlannerInputs, from_s: float, until_s: float) -> None:
    """Odometry at 20 Hz and pictures of both cameras at 10 Hz, both ends included."""
    for step in range(round(from_s / 0.05), round(until_s / 0.05) + 1):
        inputs.add_odometry(odometry(step * 0.05), "map")
        if step % 2 == 0:
            for camera in SPEC.cameras:
                frame = CameraFrame(seconds_to_ns(step * 0.05), np.zeros((2, 2, 3), np.uint8))
                inputs.add_image(camera, frame)
