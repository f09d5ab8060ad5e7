"""Leaning out of the lane's middle to get past something that stands there."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.simulation import ego as ego_body
from flatrope_planner.simulation.agents import SIZES_M, TrafficVehicle
from flatrope_planner.simulation.causes import Cause, CauseKind
from flatrope_planner.simulation.road import LANE_WIDTH_M
from flatrope_planner.simulation.world import World

CLEARANCE_M = 0.9
CONE_CLEARANCE_M = 0.55
# Length of the S-curve out of the lane and back (m), for a whole lane; shorter leans take less.
FULL_RAMP_M = 24.0


@dataclass(frozen=True)
class Lean:
    """A smooth shift of the path: out from `from_s_m`, full between `full_s_m` and `hold_s_m`, back by `to_s_m`."""

    from_s_m: float
    full_s_m: float
    hold_s_m: float
    to_s_m: float
    # Positive to the left.
    shift_m: float
    cause: Cause
    slow_mps: float

    def at(self, s_m: float) -> float:
        """The shift (m) at s, cosine ramps at both ends."""
        out = np.clip((s_m - self.from_s_m) / (self.full_s_m - self.from_s_m), 0.0, 1.0)
        back = np.clip((self.to_s_m - s_m) / (self.to_s_m - self.hold_s_m), 0.0, 1.0)
        return float(self.shift_m * (1.0 - np.cos(np.pi * min(out, back))) / 2.0)


def find_leans(world: World) -> list[Lean]:
    """A lean past each standing vehicle and past the cones."""
    leans = []
    for vehicle in world.scene.vehicles:
        if _stands_in_lane(vehicle):
            length, width, _ = SIZES_M[vehicle.kind]
            d = float(vehicle.position[1])
            shift = d + width / 2.0 + CLEARANCE_M + ego_body.WIDTH_M / 2.0
            # Where a lane of our own direction lies beside, change into it altogether.
            shift = LANE_WIDTH_M if world.scene.layout.left and d > -0.9 else shift
            cause = Cause(CauseKind.STOPPED_VEHICLE, left=True, vehicle=vehicle.kind)
            rear, front = float(vehicle.position[0]) - length / 2.0, float(vehicle.position[0]) + length / 2.0
            leans.append(_lean(rear, front, shift, (cause, 10.0)))
    if world.scene.cones:
        inner = max(cone.d_m for cone in world.scene.cones)
        shift = inner + CONE_CLEARANCE_M + 0.2 + ego_body.WIDTH_M / 2.0
        first, last = min(c.s_m for c in world.scene.cones), max(c.s_m for c in world.scene.cones)
        leans.append(_lean(first + 6.0, last, shift, (Cause(CauseKind.CONES, left=True), 7.0)))
    return leans


def _lean(rear_s: float, front_s: float, shift: float, why: tuple[Cause, float]) -> Lean:
    """Full shift from when the ego's front reaches the obstacle until its tail has left it."""
    ramp = 8.0 + (FULL_RAMP_M - 8.0) * min(abs(shift) / LANE_WIDTH_M, 1.0)
    full = rear_s - ego_body.REAR_AXLE_TO_FRONT_M - 2.0
    hold = front_s + 2.5
    return Lean(full - ramp, full, hold, hold + ramp, shift, *why)


def _stands_in_lane(vehicle: TrafficVehicle) -> bool:
    """Parked for good: it stands by script, not because of a queue."""
    return vehicle.parked and abs(float(vehicle.position[1])) < LANE_WIDTH_M


def passes(leans: list[Lean], vehicle: TrafficVehicle) -> bool:
    """Whether the vehicle is one of those leaned around."""
    return bool(leans) and _stands_in_lane(vehicle)
