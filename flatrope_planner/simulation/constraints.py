"""What binds the ego's speed: vehicles in its way, and points it must not go past for now."""

from dataclasses import dataclass

from flatrope_planner.simulation import ego as ego_body
from flatrope_planner.simulation.agents import SIZES_M, Pedestrian, StopSign, TrafficVehicle
from flatrope_planner.simulation.causes import Cause, CauseKind
from flatrope_planner.simulation.passing import Lean, passes
from flatrope_planner.simulation.view import LightColor
from flatrope_planner.simulation.world import World

# Beyond this a vehicle ahead says nothing about the next seconds.
LEADER_RANGE_M = 60.0
# A vehicle counts as being in our way when its side is this near the middle of the lane.
CORRIDOR_M = 1.35
PEDESTRIAN_CORRIDOR_M = 2.3
PEDESTRIAN_NOTICE_S = 3.2
STANDING_MPS = 0.3
# How long to stand at a stop sign, somewhat longer than it takes to obey it (`world.STOP_HOLD_S`).
STOP_WAIT_S = 2.0


@dataclass(frozen=True)
class Leader:
    """A vehicle in our way: rear bumper s (m), speed (m/s), acceleration (m/s^2)."""

    rear_s_m: float
    speed_mps: float
    accel_mps2: float
    cause: Cause

    def predict(self, after_s: float) -> tuple[float, float]:
        """Its speed and rear bumper s, braking on until it stands if it brakes now, else going on steadily."""
        if self.accel_mps2 > -0.6 or self.speed_mps <= 0.0:
            return self.speed_mps, self.rear_s_m + self.speed_mps * after_s
        until = min(after_s, self.speed_mps / -self.accel_mps2)
        travelled = self.speed_mps * until + self.accel_mps2 * until * until / 2.0
        return self.speed_mps + self.accel_mps2 * until, self.rear_s_m + travelled


@dataclass(frozen=True)
class StopPoint:
    """Where the front bumper must not go past for now (s, m)."""

    s_m: float
    cause: Cause


def find_leaders(world: World, leans: list[Lean]) -> list[Leader]:
    """Vehicles ahead in the ego's corridor, those moving into it included, those it will pass left out."""
    return [
        _leader(vehicle, world)
        for vehicle in world.scene.vehicles
        if _in_the_way(vehicle, world) and not passes(leans, vehicle)
    ]


def _in_the_way(vehicle: TrafficVehicle, world: World) -> bool:
    length, width, _ = SIZES_M[vehicle.kind]
    ahead = float(vehicle.position[0]) - length / 2.0 - world.front_s_m
    if vehicle.lane_index[0] != "start" or not -1.5 < ahead < LEADER_RANGE_M:
        return False
    d = float(vehicle.position[1])
    moving_over = (
        abs(vehicle.lane.local_coordinates(vehicle.position)[1]) > 0.5
        and vehicle.target_lane_index[2] == world.scene.layout.right
    )
    return abs(d) - width / 2.0 < CORRIDOR_M or moving_over


def _leader(vehicle: TrafficVehicle, world: World) -> Leader:
    speed, accel = float(vehicle.speed), float(vehicle.action["acceleration"])
    d = float(vehicle.position[1])
    changing = abs(d) > 0.5 and vehicle.target_lane_index[2] == world.scene.layout.right
    if changing and world.scene.ramp_s_m is not None:
        kind = CauseKind.MERGE
    elif changing:
        kind = CauseKind.CUT_IN
    elif speed < STANDING_MPS:
        kind = CauseKind.LEAD_STANDS
    else:
        kind = CauseKind.LEAD_BRAKES if accel < -0.6 else CauseKind.LEAD
    rear = float(vehicle.position[0]) - SIZES_M[vehicle.kind][0] / 2.0
    return Leader(rear, speed, accel, Cause(kind, left=d > 0.0, vehicle=vehicle.kind))


def find_stop_points(world: World) -> list[StopPoint]:
    """Red lights, stop signs not yet obeyed, and crossing pedestrians ahead."""
    front = world.front_s_m
    points = [
        StopPoint(light.stop_s_m, Cause(CauseKind.RED_LIGHT))
        for light in world.scene.lights
        if light.color_at(world.time_s) is LightColor.RED and light.stop_s_m > front - 1.0
    ]
    points += [
        StopPoint(sign.stop_s_m, Cause(CauseKind.STOP_SIGN))
        for sign in world.scene.stop_signs
        if _holds(sign, world) and sign.stop_s_m > front - 1.0
    ]
    points += [
        StopPoint(person.s_m - 2.5, Cause(CauseKind.PEDESTRIAN, left=person.d_m > 0.0))
        for person in world.scene.pedestrians
        if person.s_m > front - ego_body.LENGTH_M and _will_block(person)
    ]
    return points


def _holds(sign: StopSign, world: World) -> bool:
    """Not yet obeyed, or obeyed only just: who waits no longer than asked errs half of the time."""
    return not sign.released or (world.ego.speed_mps < STANDING_MPS and sign.stood_s < STOP_WAIT_S)


def _will_block(person: Pedestrian) -> bool:
    """On the ego's corridor, or about to step into it."""
    if abs(person.d_m) < PEDESTRIAN_CORRIDOR_M:
        return True
    if not person.walking:
        return False
    toward = person.d_m * person.pace_mps < 0.0
    return toward and abs(person.d_m) - PEDESTRIAN_CORRIDOR_M < PEDESTRIAN_NOTICE_S * abs(person.pace_mps)
