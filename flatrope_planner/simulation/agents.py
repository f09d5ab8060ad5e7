"""Everything that moves or stands in the way: highway-env traffic, pedestrians, lights, signs, cones.

highway-env drives on straight lanes in Frenet coordinates (its x is our s, its y our d); the guide line bends them into
the world. So its IDM and MOBIL models work unchanged on every road.
"""

from dataclasses import dataclass, field

import numpy as np
from highway_env.road.lane import StraightLane
from highway_env.road.road import Road, RoadNetwork
from highway_env.vehicle.behavior import IDMVehicle
from highway_env.vehicle.kinematics import Vehicle

from flatrope_planner.simulation.road import LANE_WIDTH_M, RoadLayout
from flatrope_planner.simulation.view import LightColor, VehicleKind

# Vehicle size by kind: length, width, height (m).
SIZES_M = {
    VehicleKind.CAR: (4.6, 1.9, 1.5),
    VehicleKind.VAN: (5.4, 2.05, 2.2),
    VehicleKind.TRUCK: (7.5, 2.4, 3.2),
}

ALONG = ("start", "end")
AGAINST = ("end", "start")


class TrafficVehicle(IDMVehicle):
    """An IDM vehicle that also obeys a scripted speed, with a comfortable braking of its own."""

    COMFORT_ACC_MAX = 2.0
    COMFORT_ACC_MIN = -3.0
    DISTANCE_WANTED = 8.0
    script_brake_mps2 = 2.2

    kind: VehicleKind
    color: tuple[int, int, int]
    hazard: bool = False
    # Stands here for good, not in a queue.
    parked: bool = False
    # Indicator switched on before a lane change; -1 right, 1 left.
    indicator: int = 0
    # MOBIL is off by default: a scene that wants lane changes says so.
    target_speed: float
    speed: float

    def acceleration(
        self, ego_vehicle: Vehicle, front_vehicle: Vehicle | None = None, rear_vehicle: Vehicle | None = None
    ) -> float:
        """IDM toward the leader; a change of scripted speed is followed at the comfortable braking at most (m/s^2)."""
        idm = float(super().acceleration(ego_vehicle, front_vehicle, rear_vehicle))
        free = float(super().acceleration(ego_vehicle))
        script = (ego_vehicle.target_speed - ego_vehicle.speed) / 0.5
        interaction = idm - free
        return float(max(min(script, self.COMFORT_ACC_MAX), -self.script_brake_mps2)) + interaction

    @property
    def braking(self) -> bool:
        """Whether the brake lamps are lit: slowing down, or held at a standstill."""
        return float(self.action["acceleration"]) < -0.6 or abs(self.speed) < 0.3

    def step(self, dt: float) -> None:
        """Move on by dt (s); traffic never rolls backwards."""
        super().step(dt)
        self.speed = max(float(self.speed), 0.0)


class EgoProxy(Vehicle):
    """The ego as traffic sees it: moved by the world, not by highway-env."""

    def act(self, action: dict[str, float] | str | None = None) -> None:
        """Do nothing: the world drives the ego."""

    def step(self, dt: float) -> None:
        """Do nothing: the world moves the ego."""


def build_traffic(layout: RoadLayout, rng: np.random.RandomState) -> Road:
    """An empty highway-env road with the layout's lanes, ALONG the ego's direction and AGAINST it."""
    network = RoadNetwork()
    first, last = layout.line.first_s_m, layout.line.last_s_m
    for d in layout.lane_offsets_m:
        network.add_lane(*ALONG, StraightLane([first, d], [last, d], width=LANE_WIDTH_M, speed_limit=30.0))
    for d in layout.opposing_offsets_m:
        network.add_lane(*AGAINST, StraightLane([last, d], [first, d], width=LANE_WIDTH_M, speed_limit=30.0))
    return Road(network=network, np_random=rng, record_history=False)


@dataclass(frozen=True)
class TrafficPlace:
    """Where a vehicle starts: centre s (m), lane number of its direction (right to left), offset in the lane (m)."""

    s_m: float
    lane: int
    against: bool = False
    offset_m: float = 0.0


def add_vehicle(
    road: Road, place: TrafficPlace, speed_mps: float, kind: VehicleKind, color: tuple[int, int, int]
) -> TrafficVehicle:
    """Put a vehicle on the road; it keeps its lane and speed until a script or a leader says otherwise."""
    edge = AGAINST if place.against else ALONG
    index = (*edge, place.lane)
    lane = road.network.get_lane(index)
    along = place.s_m - lane.start[0] if not place.against else lane.start[0] - place.s_m
    vehicle = TrafficVehicle(
        road,
        lane.position(along, -place.offset_m if place.against else place.offset_m),
        heading=lane.heading_at(0.0),
        speed=speed_mps,
        target_lane_index=index,
        target_speed=speed_mps,
        enable_lane_change=False,
    )
    vehicle.check_collisions = False
    vehicle.kind, vehicle.color = kind, color
    vehicle.LENGTH, vehicle.WIDTH = SIZES_M[kind][0], SIZES_M[kind][1]
    vehicle.action = {"steering": 0.0, "acceleration": 0.0}
    road.vehicles.append(vehicle)
    return vehicle


@dataclass
class Pedestrian:
    """Someone at s who stands at d until told to walk, then crosses the road at a steady pace."""

    s_m: float
    d_m: float
    # Walking speed across the road (m/s), positive to the left; used once walking.
    pace_mps: float
    height_m: float
    color: tuple[int, int, int]
    walking: bool = False
    walked_m: float = field(default=0.0)

    def step(self, dt_s: float) -> None:
        """Walk on."""
        if self.walking:
            self.d_m += self.pace_mps * dt_s
            self.walked_m += abs(self.pace_mps) * dt_s


@dataclass
class TrafficLight:
    """A signal for the stop line at `stop_s_m`; red until `green_from_s`, and red again from `red_from_s`."""

    stop_s_m: float
    green_from_s: float
    red_from_s: float = float("inf")

    def color_at(self, time_s: float) -> LightColor:
        """What it shows."""
        return LightColor.GREEN if self.green_from_s <= time_s < self.red_from_s else LightColor.RED


@dataclass
class StopSign:
    """A stop line to halt at once; `released` when the ego has stood there long enough."""

    stop_s_m: float
    stood_s: float = 0.0
    released: bool = False


@dataclass(frozen=True)
class Cone:
    """A cone on the road."""

    s_m: float
    d_m: float
